#!/usr/bin/env python3
"""What looks cost a job: processor time with and without them, in pairs whose order alternates, of a job of fixed work; and
that of the recorder's own thread, which a busy machine disturbs less.

usage: looks_cost.py [PAIRS [STEPS]]    6 pairs of 2,500 steps (13 s each on a 2-core machine)
"""
import glob
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

src, build = os.environ["TFH_SRC"], os.environ["TFH_BUILD"]
PAIRS, STEPS = ([int(a) for a in sys.argv[1:]] + [6, 2500][len(sys.argv) - 1:])[:2]
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


def run(looks):
    """Seconds: of processor time in all, of it the recorder's thread's, and wall."""
    with tempfile.TemporaryDirectory() as tmp:
        env = {**os.environ, "LD_LIBRARY_PATH": build + "/sim", "LD_PRELOAD": build + "/lib/libtfhook.so", "TFHOOK_DIR": tmp,
               "TFHOOK_LOOKS": looks, "TFHOOK_CUPTI": "off"}
        began = time.time()
        _, status, used = os.wait4(subprocess.Popen([sys.executable, "-c", JOB, str(STEPS), src + "/tests/jobs"], env=env).pid, 0)
        wall = time.time() - began
        assert status == 0, status
        notes = b"".join(subprocess.run(["zstd", "-dcq", f], stdout=subprocess.PIPE).stdout
                         for f in glob.glob(tmp + "/**/*.tft", recursive=True))
        return used.ru_utime + used.ru_stime, int(re.search(rb"end\.flusher_cpu_ns=(\d+)", notes)[1]) / 1e9, wall


more, own = [], []
for pair in range(PAIRS):
    told = {looks: run(looks) for looks in ("01" if pair % 2 else "10")}
    more.append(told["1"][0] / told["0"][0] - 1)
    own.append((told["1"][1] - told["0"][1]) / told["1"][2])
print("%d pairs: with looks %+.2f %% of processor time (median; %+.2f to %+.2f)" % (
    PAIRS, 100 * statistics.median(more), 100 * min(more), 100 * max(more)))
print("the recorder's own thread: %.2f %% of a processor more" % (100 * statistics.median(own)))
