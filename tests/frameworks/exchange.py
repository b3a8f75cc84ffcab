#!/usr/bin/env python3
"""Two ranks of a real PyTorch job that exchange over gloo: what they wait for is communication, with the line of the backward pass or
of the exchange; a rank that is late leads with its own cause and line, and the other one only waits for it.

Where the environment `torch` exists already. More such jobs: exchange_jobs.py, in tests/frameworks/scenarios.
"""
import json
import os
import subprocess
import sys

SRC = os.environ.get("TFH_SRC") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SRC, "tests", "tf"))
from tfrun import BUILD, SKIP, TMP, check  # noqa: E402

TOOL = os.path.join(BUILD, "bin", "tfhook")
JOBS = os.path.join(SRC, "tests", "frameworks", "exchange_jobs.py")
PYTHON = os.path.join(os.environ.get("TFH_VENVS") or os.path.join(SRC, "build", "venv"), "torch", "bin", "python")

if not os.path.exists(PYTHON):
    print("no environment `torch`: make check-frameworks makes it")
    sys.exit(SKIP)


def judged(job):
    place = os.path.join(TMP, job)
    subprocess.run([TOOL, "run", "-q", "-o", place, "--", PYTHON, JOBS, job], env=dict(os.environ, TFH_TMP=TMP), check=True,
                   stdout=subprocess.DEVNULL)
    return json.loads(subprocess.run([TOOL, "report", "--json", place], stdout=subprocess.PIPE, check=True).stdout)


def marked(job):
    """The line of a job that has the mark."""
    with open(JOBS) as f:
        text = f.read().split("\n")
    at = next(i for i, line in enumerate(text) if line.startswith("def %s(" % job))
    return next(i + 1 for i in range(at, len(text)) if "# here" in text[i])


# On a busy machine ranks also wait for each other, and for CPUs.
BUSY = ["communication.jitter", "host.cpu-contention"]
for job, cause in (("gradients", "communication.transfer"), ("averaged_by_hand", "communication.transfer"), ("quota", "host.sleep")):
    found = judged(job)
    verdict, ranks = found["verdict"], {r["rank"]: r for r in found["ranks"]}
    check(verdict["cause"] in [cause, *BUSY], "%s: %s" % (job, verdict))
    if verdict["cause"] != BUSY[1]:
        check(verdict["place"] and verdict["place"]["line"] == marked(job), "%s: %s" % (job, verdict["place"]))
    check(all(r["breakdown"]["communication"] > 0 for r in ranks.values()), "%s: %s" % (job, ranks))
    if job == "quota" and verdict["cause"] == cause:
        check(ranks[1]["straggler"] and ranks[0]["cause"] in BUSY, "quota: %s" % ranks)

# Ranks that no launcher numbers.
found = judged("spawned")
verdict, ranks = found["verdict"], {r["rank"]: r for r in found["ranks"]}
check(sorted(ranks) == [0, 1] and found["world"]["ranks"] == 2 and found["steps"]["total"] == 80, "spawned: %s, %s" % (ranks, found["steps"]["total"]))
if verdict["cause"] != BUSY[1]:
    check(verdict["cause"] == "compute.cpu" and ranks[1]["straggler"], "spawned: %s, %s" % (verdict, ranks))
