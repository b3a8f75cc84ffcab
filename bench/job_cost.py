#!/usr/bin/env python3
"""What recording costs a whole job of fixed work: processor time of the job's own threads and of the recorder's thread apart, with
and without it, in turns. One round runs each variant once, in an order drawn at random; differences are taken within rounds.

usage: job_cost.py [ROUNDS [STEPS]]    12 rounds of 2,500 steps (13 s each on a 2-core machine)

"all" is everything but CUPTI, which the simulator answers; "no looks" is without looks and lines; "cupti" adds device times. The
last line tells whether the rounds were enough to tell half a percent: the 95 % interval of the job's own threads is that narrow.
"""
import glob
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import side_by_side  # noqa: E402

src, build = os.environ["TFH_SRC"], os.environ["TFH_BUILD"]
ROUNDS, STEPS = ([int(a) for a in sys.argv[1:]] + [12, 2500][len(sys.argv) - 1:])[:2]
BAR = 0.005
VARIANTS = {"off": None, "no looks": {"TFHOOK_CUPTI": "off", "TFHOOK_SAMPLES": "0", "TFHOOK_PYTHON": "0"},
            "all": {"TFHOOK_CUPTI": "off"}, "cupti": {}}
JOB = """
import sys, time, zlib
sys.path.insert(0, sys.argv[2])
from device import Device
d, data = Device(), bytes(1 << 18)
def computed():
    x = 0
    for i in range(20000):
        x = (x * 31 + i) & 0xffff
def native():
    for i in range(4):
        zlib.crc32(data)
for step in range(int(sys.argv[1])):
    computed(), native(), time.sleep(0.002)
    d.up(), d.train(1), d.down()
"""


def run(settings):
    """Seconds of processor time: of all threads but the recorder's, and of that."""
    with tempfile.TemporaryDirectory() as tmp:
        env = {k: v for k, v in os.environ.items() if not k.startswith("TFHOOK") and k != "LD_PRELOAD"}
        env["LD_LIBRARY_PATH"] = build + "/sim"
        if settings is not None:
            env.update(settings, LD_PRELOAD=build + "/lib/libtfhook.so", TFHOOK_DIR=tmp, TFHOOK_STACKS="slow:1ms")
        job = subprocess.Popen([sys.executable, "-c", JOB, str(STEPS), src + "/tests/jobs"], env=env)
        _, status, used = os.wait4(job.pid, 0)
        assert status == 0, status
        notes = b"".join(subprocess.run(["zstd", "-dcq", f], stdout=subprocess.PIPE).stdout
                         for f in glob.glob(tmp + "/**/*.tft", recursive=True))
        own = re.search(rb"end\.flusher_cpu_ns=(\d+)", notes)
        own = int(own[1]) / 1e9 if own else 0.0
        return used.ru_utime + used.ru_stime - own, own


rounds = []
for _ in range(ROUNDS):
    order = list(VARIANTS)
    random.shuffle(order)
    told = {name: run(VARIANTS[name]) for name in order}
    rounds.append(told)
base = statistics.median(r["off"][0] for r in rounds)
print(f"{ROUNDS} rounds of {STEPS} steps, {base:.2f} s of processor time without recording")
print("%-10s %34s %26s" % ("", "the job's threads (95 % interval)", "the recorder's thread"))
widest = 0
for name in list(VARIANTS)[1:]:
    mid, low, high = side_by_side.interval([r[name][0] / r["off"][0] - 1 for r in rounds])
    own = statistics.median(r[name][1] for r in rounds)
    widest = max(widest, (high - low) / 2)
    print(f"{name:10} {100 * mid:+12.2f} % ({100 * low:+.2f} .. {100 * high:+.2f}) {own * 1e3:18.0f} ms, {100 * own / base:.2f} %")
print("half a percent can be told" if widest < BAR else f"half a percent cannot be told: the interval is +-{100 * widest:.1f} % wide")
