#!/usr/bin/env python3
"""The verdict covers the time in and between steps: checkpoints, kernels made for new shapes and evaluations are it where they hold the run up
for longer than its steps do, with their cause; the steps keep a verdict of their own. What is rare, cheap or over in the first
steps changes nothing. The report says when steps become slower."""
import concurrent.futures
import json
import os
import subprocess
import sys

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"}
# Class and cause, and what they are about; None: the steps, whatever they are bound by on a busy machine.
JOBS = {
    "saves": ("host-bound", "host.checkpoint", "checkpoint"),
    "saves_little": None,
    "new_shapes": ("host-bound", "host.compile", None),  # looks may see steps compile, too
    "first_shapes": None,
    "one_save": None,
    "slow_evaluation": ("host-bound", "host.sleep", "eval"),
    "short_evaluation": None,
    "slower": None,
}


def run(name):
    out = f"{tmp}/{name}"
    job = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recurs_jobs.py")
    subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", out, sys.executable, job, name], env=env, check=True, stdout=subprocess.DEVNULL)
    return json.loads(subprocess.run([f"{build}/bin/tfhook", "report", "--json", out], stdout=subprocess.PIPE, check=True).stdout)


bad = 0
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for (name, expected), report in zip(JOBS.items(), pool.map(run, JOBS)):
        v, about = report["verdict"], [x for x in report["recurs"] if x["verdict"]]
        wrong = len(about) != 1 or not report["steady"]["class"]
        if expected:
            wrong |= (v["class"], v["cause"]) != expected[:2] or about != report["recurs"][:1] or not 0.2 < v["share"] <= 1
            wrong |= expected[2] not in (None, about[0]["kind"]) or not v["text"]
            wrong |= (about[0]["kind"] != "train") != ("the steps themselves" in " ".join(v["evidence"]))
        else:
            wrong |= (v["class"], v["cause"]) != (report["steady"]["class"], report["steady"]["cause"]) or about[0]["kind"] != "train"
        if name == "slower":  # told near the 81st step
            wrong |= not any(abs(c["step"] - 80) <= 8 and c["to_s"] > c["from_s"] and c["part"] == "host" for c in report["changes"])
        if wrong:
            bad += 1
            print("WRONG", name, "is", expected, "found", v["class"], v["cause"], v["share"], report["recurs"], report["steady"])
sys.exit(bad != 0)
