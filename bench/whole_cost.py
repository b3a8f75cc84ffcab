#!/usr/bin/env python3
"""What recording costs whole processes, start and end included: the same job with `tfhook run` and without, in turns, and the processor time
of all processes of each. Beside it, of each recorded process, what the recorder's own threads and `tfhook run` used, which the kernel counts
exactly: two processes that do the same work differ by several percent, so that the pairs alone tell little.

usage: whole_cost.py [PAIRS [STEPS [JOB...]]]    12 pairs of 1,500 steps of the jobs of profiler_cost.py

What recording costs in the job's own threads is the difference of the pairs without the recorder's part; paused_cost.py measures that closer.
"""
import os
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import side_by_side  # noqa: E402
from profiler_cost import JOBS, build, python_of  # noqa: E402

PAIRS, STEPS = ([int(a) for a in sys.argv[1:3]] + [12, 1500][len(sys.argv[1:3]):])
BAR = 0.005
JOB = """
import os, sys, tempfile
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
where = sys.argv[2]
%s
run(int(sys.argv[1]))
def used(process, names):
    total = 0
    for tid in os.listdir("/proc/%%d/task" %% process):
        with open("/proc/%%d/task/%%s/comm" %% (process, tid)) as name:
            if not name.read().startswith(names):
                continue
        with open("/proc/%%d/task/%%s/schedstat" %% (process, tid)) as stat:
            total += int(stat.read().split()[0])
    return total / 1e9
with open(where + "/used", "w") as out:
    print(used(os.getpid(), "tfhook-"), used(os.getppid(), "tfhook"), file=out)
"""


def used(argv, env):
    """Seconds of processor time of a process and those that it waited for, and of the recorder's threads and of `tfhook run` in it."""
    with tempfile.TemporaryDirectory() as tmp:
        cpu = side_by_side.run_once([*argv, str(STEPS), tmp], env)[1]
        with open(f"{tmp}/used") as f:
            return cpu, *map(float, f.read().split())


def measure(job, tmp):
    python, env = python_of(job, tmp)
    plain, n = [python, "-c", JOB % JOBS[job]], 0
    pairs = []
    for _ in range(PAIRS + 1):  # the first one fills caches
        n += 1
        recorded = [f"{build}/bin/tfhook", "run", "-q", "-o", f"{tmp}/{n}", "--", *plain]
        first = random.random() < 0.5
        one = used(recorded if first else plain, env)
        other = used(plain if first else recorded, env)
        pairs.append((other, one) if first else (one, other))
    pairs = pairs[1:]
    off = statistics.median(p[0][0] for p in pairs)
    pair = side_by_side.interval([on[0] / plain[0] - 1 for plain, on in pairs])
    threads, parent = (side_by_side.interval([on[i] / on[0] for _, on in pairs]) for i in (1, 2))
    print(f"{job:9} {off:7.2f} s {100 * pair[0]:+13.2f} % ({100 * pair[1]:+.2f} .. {100 * pair[2]:+.2f})"
          f" {100 * threads[0]:9.2f} % ({100 * threads[1]:.2f} .. {100 * threads[2]:.2f})"
          f" {100 * parent[0]:8.2f} % ({100 * parent[1]:.2f} .. {100 * parent[2]:.2f})", flush=True)
    return threads[2] + parent[2]


def main():
    print(f"{PAIRS} pairs of {STEPS} steps; processor time of whole processes")
    print("%-9s %9s %35s %28s %27s" % ("job", "without", "with, beyond that", "the recorder's threads", "tfhook run"))
    own = {}
    for job in sys.argv[3:] or JOBS:
        with tempfile.TemporaryDirectory() as tmp:
            own[job] = measure(job, tmp)
    print("; ".join("%s: the recorder's own part is %s 0.5 %%" % (job, "below" if most < BAR else "above") for job, most in own.items()))


main()
