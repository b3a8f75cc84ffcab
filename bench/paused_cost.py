#!/usr/bin/env python3
"""What recording costs the thread that trains, within one process: blocks of steps with recording and with recording paused, in
turns, and the thread's processor time of each. Two processes that do the same work differ by several percent, as their memory is laid
out differently; blocks of one process do not, so that half a percent can be told.

usage: paused_cost.py [PAIRS [STEPS [PROCESSES]]]    of each variant 3,600 pairs of blocks of 10 steps, in 6 processes: ten minutes

Processes of the variants take turns. Each pair is two blocks, one of each kind, in an order drawn at random. The figure is the mean of the
pairs' ratios without the tenth of them that is lowest and the tenth that is highest, in which the machine disturbed one of the blocks;
the last column has the mean of all. What stays in a paused process is the preload itself: a test of a flag in each call (`make bench
T=hook`: up to 2 ns). What the recorder's own threads used is counted by the kernel, and given as a share of the recorded blocks' time.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import side_by_side  # noqa: E402

src, build = os.environ["TFH_SRC"], os.environ["TFH_BUILD"]
GIVEN = [int(a) for a in sys.argv[1:]]
PAIRS, STEPS, PROCESSES = GIVEN + [3600, 10, 6][len(GIVEN):]
BAR = 0.005
VARIANTS = {"calls": {"TFHOOK_SAMPLES": "0", "TFHOOK_PYTHON": "0"}, "and lines": {"TFHOOK_SAMPLES": "0"}, "and samples": {}}
JOB = """
import ctypes, json, os, random, sys, time, zlib
sys.path.insert(0, sys.argv[3])
from device import Device
tfhook = ctypes.CDLL(None)
d, data = Device(), bytes(1 << 18)
def step():
    x = 0
    for i in range(20000):
        x = (x * 31 + i) & 0xffff
    for i in range(4):
        zlib.crc32(data)
    time.sleep(0.0005)
    d.up(), d.train(1), d.down()
def block(recorded):
    if not recorded:
        tfhook.tfhook_pause()
    begin = time.thread_time_ns()
    for _ in range(int(sys.argv[2])):
        step()
    took = time.thread_time_ns() - begin
    if not recorded:
        tfhook.tfhook_resume()
    return took
def recorder():
    total = 0
    for tid in os.listdir("/proc/self/task"):
        with open("/proc/self/task/%s/comm" % tid) as name, open("/proc/self/task/%s/schedstat" % tid) as stat:
            total += int(stat.read().split()[0]) if name.read().startswith("tfhook-") else 0
    return total
for _ in range(10):
    block(True), block(False)
pairs, before = [], recorder()
for _ in range(int(sys.argv[1])):
    first = random.random() < 0.5
    took = {kind: block(kind) for kind in (first, not first)}
    pairs.append((took[True], took[False]))
json.dump({"pairs": pairs, "recorder": recorder() - before}, sys.stdout)
"""


def run(settings):
    """Nanoseconds of the thread in each pair of blocks, with recording and paused; those of the recorder's threads."""
    with tempfile.TemporaryDirectory() as tmp:
        env = {k: v for k, v in os.environ.items() if not k.startswith("TFHOOK") and k != "LD_PRELOAD"}
        env.update(settings, LD_LIBRARY_PATH=build + "/sim", LD_PRELOAD=build + "/lib/libtfhook.so", TFHOOK_DIR=tmp,
                   TFHOOK_STACKS="slow:1ms", TFHOOK_CUPTI="off")
        done = subprocess.run([sys.executable, "-c", JOB, str(PAIRS // PROCESSES), str(STEPS), src + "/tests/jobs"], env=env, check=True,
                              stdout=subprocess.PIPE)
    return json.loads(done.stdout)


runs = {name: [] for name in VARIANTS}
for _ in range(PROCESSES):
    for name, settings in VARIANTS.items():
        runs[name].append(run(settings))
print(f"{PAIRS} pairs of {STEPS} steps in {PROCESSES} processes, processor time of the thread that trains")
print("%-12s %12s %32s %22s %20s %12s" % ("", "per step", "recording (95 % interval)", "each process", "recorder's threads", "all pairs"))
widest = 0
for name, of in runs.items():
    ratios = [[on / off - 1 for on, off in r["pairs"]] for r in of]
    mean, width = side_by_side.trimmed(sum(ratios, []))
    each = [100 * side_by_side.trimmed(r)[0] for r in ratios]
    own = statistics.mean(r["recorder"] / sum(on for on, _ in r["pairs"]) for r in of)
    step = statistics.median(off / STEPS for r in of for _, off in r["pairs"])
    widest = max(widest, width)
    print(f"{name:12} {step / 1e6:9.3f} ms {100 * mean:+14.2f} % ({100 * (mean - width):+.2f} .. {100 * (mean + width):+.2f})"
          f" {min(each):+12.2f} .. {max(each):+.2f} % {100 * own:18.2f} % {100 * statistics.mean(sum(ratios, [])):+10.2f} %")
print("half a percent can be told" if widest < BAR / 2 else f"half a percent cannot be told: the interval is +-{100 * widest:.2f} % wide")
