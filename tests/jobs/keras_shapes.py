#!/usr/bin/env python3
"""Keras' fit with a validation, over a cache, and a loop of one's own: epochs, training and evaluation steps of the run's tree,
and the steps of the report, are those that the job counts."""
import concurrent.futures
import json
import os
import subprocess
import sys

build, tmp, python = os.environ["TFH_BUILD"], os.environ["TFH_TMP"], os.environ["TFH_PY"]
KINDS = ("epoch", "train", "evaluate", "predict", "step")


def counts(part, out):
    for p in part["parts"]:
        if p["kind"] in KINDS:
            out[p["kind"]] = out.get(p["kind"], 0) + p["count"]
        counts(p, out)
    return out


def run(name):
    out = f"{tmp}/{name}"
    job = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keras_shapes_job.py")
    subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", out, python, job, name, f"{out}.truth"], check=True,
                   stdout=subprocess.DEVNULL)
    report = json.loads(subprocess.run([f"{build}/bin/tfhook", "report", "--json", out], stdout=subprocess.PIPE, check=True).stdout)
    return json.load(open(f"{out}.truth")), counts(report["tree"], {}), report["steps"]["total"]


bad = 0
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    names = ("fit_with_validation", "fit_with_long_validation", "fit_cached", "own_loop")
    for name, (truth, found, steps) in zip(names, pool.map(run, names)):
        if found != truth or steps != truth.get("train", truth.get("step")):
            bad += 1
            print("WRONG", name, "made", truth, "found", found, "and", steps, "steps")
sys.exit(bad != 0)
