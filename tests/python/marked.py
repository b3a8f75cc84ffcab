#!/usr/bin/env python3
"""What must hold: a program that makes no call that is recorded, but marks its steps, gets a verdict: each step counts, the cause is
what samples of its main thread show, and the line is that of the work."""
import json
import os
import subprocess
import sys

if os.environ.get("TFH_SAN"):
    sys.exit(77)
TOOL, TMP, SRC = os.path.join(os.environ["TFH_BUILD"], "bin", "tfhook"), os.environ["TFH_TMP"], os.environ["TFH_SRC"]
STEPS = 150
JOB = """
import time
import tfhook
def score(n):
    end = time.perf_counter() + 0.008
    while time.perf_counter() < end:
        n = sum(range(200))  # works
    return n
for i in range(%d):
    with tfhook.step_scope("generation"):
        score(i)
        time.sleep(0.002)
""" % STEPS
WORKS = 1 + next(i for i, line in enumerate(JOB.splitlines()) if "# works" in line)
with open(os.path.join(TMP, "job.py"), "w") as f:
    f.write(JOB)
out = os.path.join(TMP, "out")
env = dict(os.environ, PYTHONPATH=os.path.join(SRC, "lib", "python"))
done = subprocess.run([TOOL, "run", "-o", out, "--", sys.executable, os.path.join(TMP, "job.py")], env=env, capture_output=True, text=True)
assert done.returncode == 0, done
assert "HOST-BOUND" in done.stderr, done.stderr
report = json.loads(subprocess.run([TOOL, "report", "--json", out], capture_output=True, text=True, check=True).stdout)
verdict = report["verdict"]
print(verdict, report["steps"])
assert report["steps"]["total"] == STEPS and report["steps"]["clock"] == "mark", report["steps"]
assert (verdict["class"], verdict["cause"]) == ("host-bound", "host.python"), verdict
assert verdict["place"]["function"] == "score" and verdict["place"]["line"] in (WORKS - 1, WORKS), verdict["place"]
