"""A job with two halves: batches that take 8 ms to unpack, then batches that are ready; each step computes for 4 ms.

usage: top_job.py FAST DONE    the second half begins when a file FAST is there, and ends with a file DONE
"""
import os
import random
import sys
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "jobs"))
from device import Device  # noqa: E402

PACKED = zlib.compress(random.Random(1).randbytes(1 << 16) * 24)


def load_batch():
    until = time.perf_counter() + 8e-3
    while time.perf_counter() < until:
        zlib.decompress(PACKED)  # here


def main():
    fast, done = sys.argv[1:]
    end = time.monotonic() + 140  # whatever becomes of the test
    d = Device()
    while not os.path.exists(done) and time.monotonic() < end:
        if not os.path.exists(fast):
            load_batch()
        d.up()
        d.train(4)
        d.down()


main()
