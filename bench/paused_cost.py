#!/usr/bin/env python3
"""What recording costs the thread that trains, within one process: blocks of steps with recording and with recording paused, in
turns, and the thread's processor time of each. Two processes that do the same work differ by several percent, as their memory is laid
out differently; blocks of one process do not, so that half a percent can be told.

usage: paused_cost.py [PAIRS [STEPS]]    400 pairs of blocks of 20 steps: three minutes

What stays in a paused process is the preload itself: a test of a flag in each call (`make bench T=hook`: up to 2 ns). The recorder's
own thread is not counted here but by job_cost.py. Each pair is two blocks, one of each kind, in an order drawn at random; the interval is
that of the mean of the pairs' ratios. A pair that the machine disturbed is as it is: none is left out.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import side_by_side  # noqa: E402

src, build = os.environ["TFH_SRC"], os.environ["TFH_BUILD"]
PAIRS, STEPS = ([int(a) for a in sys.argv[1:]] + [400, 20][len(sys.argv) - 1:])[:2]
BAR = 0.005
VARIANTS = {"no samples": {"TFHOOK_CUPTI": "off", "TFHOOK_SAMPLES": "0", "TFHOOK_PYTHON": "0"}, "all": {"TFHOOK_CUPTI": "off"}}
JOB = """
import ctypes, json, random, sys, time, zlib
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
block(True), block(False)
pairs = []
for _ in range(int(sys.argv[1])):
    first = random.random() < 0.5
    took = {kind: block(kind) for kind in (first, not first)}
    pairs.append((took[True], took[False]))
json.dump(pairs, sys.stdout)
"""


def run(settings):
    """Nanoseconds of the thread in each pair of blocks: with recording, and paused."""
    with tempfile.TemporaryDirectory() as tmp:
        env = {k: v for k, v in os.environ.items() if not k.startswith("TFHOOK") and k != "LD_PRELOAD"}
        env.update(settings, LD_LIBRARY_PATH=build + "/sim", LD_PRELOAD=build + "/lib/libtfhook.so", TFHOOK_DIR=tmp,
                   TFHOOK_STACKS="slow:1ms")
        done = subprocess.run([sys.executable, "-c", JOB, str(PAIRS), str(STEPS), src + "/tests/jobs"], env=env, check=True,
                              stdout=subprocess.PIPE)
    return json.loads(done.stdout)


widest = 0
print(f"{PAIRS} pairs of {STEPS} steps, processor time of the thread that trains")
print("%-12s %14s %32s" % ("", "per step", "recording (95 % interval)"))
for name, settings in VARIANTS.items():
    pairs = run(settings)
    mid, low, high = side_by_side.interval([on / off - 1 for on, off in pairs])
    widest = max(widest, (high - low) / 2)
    step = side_by_side.interval([off / STEPS for _, off in pairs], 1)[0]
    print(f"{name:12} {step / 1e6:11.3f} ms {100 * mid:+14.2f} % ({100 * low:+.2f} .. {100 * high:+.2f})")
print("half a percent can be told" if widest < BAR else f"half a percent cannot be told: the interval is +-{100 * widest:.1f} % wide")
