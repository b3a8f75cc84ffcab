#!/usr/bin/env python3
"""Loops of many shapes (epochs, evaluations short and long, micro-steps, rollouts, requests, sweeps, batches of any size, rare
checkpoints) stand in the run's tree with the counts that the job itself counted; what repeats inside a step of the step clock
is a part of it; where training can be told from evaluation, steps are those of training."""
import concurrent.futures
import json
import os
import subprocess
import sys

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"}
# Kinds with their counts, an outer loop before what it holds; `steps`: of the report, where one number is right.
SHAPES = {
    "plain": ("80 step", 80),
    "epochs_eval": ("4 epoch [100 train, 40 evaluate]", 100),
    "eval_every": ("5 epoch [100 train, 40 evaluate]", 100),
    "long_eval": ("3 epoch [60 train, 180 evaluate]", 60),
    "sweep": ("4 epoch [120 train, 20 evaluate]", 120),
    "accumulate": ("20 step", 20),
    "accumulate_tail": ("90 step", 90),
    "gan": ("60 step", 60),
    "critics": ("50 step", 50),
    "gathered": (None, 48),
    "sampled": (None, 120),
    "rollout": ("12 epoch [192 evaluate, 48 train]", 48),
    "decode": ("15 step", 15),
    "checkpoints": ("4 loop [120 step]", 120),
    "two_models": ("50 step, 70 step", None),
    "varying": ("70 step", 70),
    "warm_compile": ("60 step", 60),
    "loss_fetch": ("90 step", 90),
    "ahead": ("120 step", 120),
    "every_second": (None, 50),
    "seeded": (None, 80),
    "recompiled": ("40 step", 40),
    "rarely": (None, 100),
    "resident": (None, 40),
    "tiny": ("30 step", 30),
    "agent": (None, 48),
    "scalars_gathered": (None, 60),
}
LOOPS = ("epoch", "loop", "train", "evaluate", "predict", "step")


def shape(part):
    return ", ".join(f"{p['count']} {p['kind']}" + (f" [{shape(p)}]" if p["parts"] and shape(p) else "")
                     for p in part["parts"] if p["kind"] in LOOPS)


def run(name):
    out = f"{tmp}/{name}"
    job = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes_jobs.py")
    subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", out, sys.executable, job, name, f"{out}.truth"], env=env, check=True,
                   stdout=subprocess.DEVNULL)
    return json.loads(subprocess.run([f"{build}/bin/tfhook", "report", "--json", out], stdout=subprocess.PIPE, check=True).stdout)


bad = 0
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for (name, (expected, steps)), report in zip(SHAPES.items(), pool.map(run, SHAPES)):
        found, total = shape(report["tree"]), report["steps"]["total"]
        if expected not in (None, found) or steps not in (None, total):
            bad += 1
            print("WRONG", name, "is", expected, "and", steps, "steps, found", found, "and", total)
sys.exit(bad != 0)
