#!/usr/bin/env python3
"""Looks find the lines of Python that a thread is at, in about the shares that the job counts itself: code full of calls, flat
loops, C functions, sleep, locks, pipes. The report names a line of the job's, with what it takes of a step.

usage: samples.py [SECONDS]; from 30 on, shares must be within 5 points."""
import json
import os
import re
import subprocess
import sys

BUILD, SRC, TMP = (os.environ[k] for k in ("TFH_BUILD", "TFH_SRC", "TFH_TMP"))
TOOL, JOB = os.path.join(BUILD, "bin", "tfhook"), os.path.join(SRC, "tests", "python", "jobs", "shares.py")
SECONDS = sys.argv[1] if len(sys.argv) > 1 else "2.5"
OFF = 0.05 if float(SECONDS) >= 30 else 0.15  # of the time: a short run has some 100 samples
ENOUGH = 60

if os.environ.get("TFH_SAN"):
    sys.exit(77)
run = os.path.join(TMP, "run")
env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"))
done = subprocess.run([TOOL, "run", "-q", "-o", run, "--", sys.executable, JOB, SECONDS], env=env, capture_output=True, text=True)
assert not done.returncode, done
*_, waited, spent = map(json.loads, done.stdout.splitlines()[-2:])
# On a crowded machine who looks gets a processor while the thread sleeps rather than while it runs.
OFF += waited / sum(spent.values())


def report(*flags):
    return subprocess.run([TOOL, "report", *flags, run], capture_output=True, text=True, check=True).stdout


whole = json.loads(report("--json"))
seen, n = {}, 0
for line in report("--folded").splitlines():
    stack, us = line.rsplit(" ", 1)
    if stack.startswith("(workers)"):
        continue
    part = [f.split("_(")[0] for f in stack.split(";")]
    name = next((p for p in part if p in spent), None)
    seen[name] = seen.get(name, 0) + int(us)
printed = re.search(r"\((\d+) samples\)", report("--where"))
n = int(printed.group(1)) if printed else 0
print("%d samples" % n)
if n < ENOUGH:
    print("too few samples on this machine")
    sys.exit(77 if not n else 0)
wrong = []
for name in spent:
    true, found = spent[name] / sum(spent.values()), seen.get(name, 0) / sum(seen.values())
    print("%-8s true %4.1f %%  seen %4.1f %%  %+.1f" % (name, 100 * true, 100 * found, 100 * (found - true)))
    if abs(true - found) > OFF:
        wrong.append(name)
place = whole["verdict"]["place"]
print(whole["verdict"]["cause"], place)
assert not wrong, wrong
assert place and os.path.basename(place["file"]) == "shares.py", place
