#!/usr/bin/env python3
"""A report on a job of many ranks from its hosts' digests: 16,384 ranks with 10,000 steps, with ten planted defects, and half of the ranks,
and half of the steps, to see how time and memory grow. Needs 4 GB of disk in TMPDIR, and minutes to make the digests up. Bar: 60 s and
1 GB on two processors.

usage: ranks.py [HOSTS STEPS]    2048 hosts of 8 ranks, 10,000 steps
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["TFH_BUILD"]
HOSTS, STEPS = (int(x) for x in sys.argv[1:] or (2048, 10000))
LOCAL, SEED = 8, 1


def report(where):
    """Seconds, memory, and what was found."""
    begin = time.monotonic()
    child = subprocess.Popen([BUILD + "/bin/tfhook", "report", "--ranks", "--json", where], stdout=subprocess.PIPE)
    out = child.stdout.read()
    took = time.monotonic() - begin
    used = os.wait4(child.pid, 0)[2]
    child.returncode = 0
    return took, used.ru_maxrss * 1024, json.loads(out)


def found(planted, said):
    """How many of what was planted, and how much else, is said."""
    want = {("slow-host", planted["host"]), ("slow-rank", planted["device"]), ("slow-rank", planted["loader"]), ("slow-rank", planted["halfway"]),
            ("slow-rail", planted["rail"]), ("slow-switch", planted["switch"] + "-node"), ("rare-steps", planted["checkpoint"]), ("clock", planted["clock"])}
    key = {"slow-host": "host", "slow-rail": "local_rank", "slow-switch": "rack", "clock": "host"}
    have = {(f["what"], f[key.get(f["what"], "rank")]) for f in said["findings"]}
    more = (said["missing"] == [planted["missing"]]) + ([h["rank"] for h in said["hangs"]] == [planted["hung"]])
    return len(want & have) + more, len(have - want)


def measure(hosts, steps):
    where = tempfile.mkdtemp(prefix="ranks.")
    try:
        made = subprocess.run([BUILD + "/tests/ranks/digests", where, str(hosts), str(LOCAL), str(steps), str(SEED), "all"],
                              stdout=subprocess.PIPE, text=True, check=True)
        size = sum(os.path.getsize(os.path.join(where, n)) for n in os.listdir(where))
        took, memory, said = min((report(where) for _ in range(3)), key=lambda x: x[0])
        right, wrong = found(json.loads(made.stdout), said)
        done = sum(r["steps"] for r in said["ranks"])
        print("%6d ranks %6d steps: %5.2f GB, %4.1f bytes a step and rank; report %5.1f s, %4.0f MB; found %d of 10, invented %d" % (
            hosts * LOCAL, steps, size / 1e9, size / done, took, memory / 1e6, right, wrong), flush=True)
    finally:
        shutil.rmtree(where)


if not os.path.exists(BUILD + "/tests/ranks/digests"):
    sys.exit("make tests first")
measure(HOSTS // 4, STEPS)
measure(HOSTS // 2, STEPS // 2)
measure(HOSTS // 2, STEPS)
measure(HOSTS, STEPS)
