#!/usr/bin/env python3
"""What a place of the program gains is what that place takes, and not what all of the host's code does: of two functions, one that
computes and one that sleeps, each is removed by itself, and the first screen gives the gain of the one that the verdict names. A
line of the function that has the loop is a place of its own."""
import json
import os
import subprocess
import sys

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"}
jobs = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "jobs")
JOB = """
import sys, time
sys.path.insert(0, %r)
from device import Device
d = Device()
def features():
    end = time.perf_counter() + 0.012
    while time.perf_counter() < end:
        t = sum([i * i for i in range(50)])
def pace():
    time.sleep(0.004)
for i in range(80):
    d.up(); d.train(1); d.sync()
    features()
    pace()
    if len(sys.argv) > 1: time.sleep(0.012)  # inline
""" % jobs
with open(f"{tmp}/job.py", "w") as f:
    f.write(JOB)
bad = []


def run(*args):
    out = f"{tmp}/run{len(args)}"
    subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", out, sys.executable, f"{tmp}/job.py", *args], env=env, check=True)
    text = subprocess.run([f"{build}/bin/tfhook", "report", out], stdout=subprocess.PIPE, check=True, text=True).stdout
    report = json.loads(subprocess.run([f"{build}/bin/tfhook", "report", "--json", out], stdout=subprocess.PIPE, check=True).stdout)
    return report, text


def expect(ok, what, *more):
    if not ok:
        bad.append(what)
        print("WRONG", what, *more)


report, text = run()
places = {p["function"]: p for p in report["whatif_places"]}
host = next(w for w in report["whatif"] if w["remove"] == "host")
expect(set(places) >= {"features", "pace"}, "both functions are places", places)
if not bad:
    features, pace = places["features"], places["pace"]
    expect(all(p["whole"] for p in (features, pace)), "functions are removed as a whole", places)
    expect(host["low_s"] < features["low_s"] < features["high_s"] < pace["high_s"], "the larger one gains more, both less than all", host, places)
    expect(features["s_per_step"] > pace["s_per_step"], "of 12 and 4 ms, the first takes most", places)
    expect(features["verdict"] and "without features: step" in text, "the screen gives the gain of the line's place", text)
    expect(features["run_saved_s"] < host["run_saved_s"], "it saves less of the run", host, places)

report, text = run("inline")
lines = [p for p in report["whatif_places"] if not p["whole"]]
inline = JOB.splitlines().index("    if len(sys.argv) > 1: time.sleep(0.012)  # inline") + 1
expect([p["line"] for p in lines] == [inline], "the loop's own line is removed by itself", report["whatif_places"])
sys.exit(len(bad) != 0)
