"""Jobs whose batches are made by other threads, or after a long start: producers.py NAME. With "-simple" through a
queue in C, whose get() has no frame."""
import os
import queue
import random
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "jobs"))
from device import Device  # noqa: E402

STEPS = 80
PACKED = zlib.compress(random.Random(1).randbytes(1 << 20))


def inflate(batches):  # gives the global lock back
    for _ in range(STEPS):
        until = time.perf_counter() + 0.01
        while time.perf_counter() < until:
            zlib.decompress(PACKED)  # inflates
        batches.put(1)


def read(batches):
    for _ in range(STEPS):
        time.sleep(0.012)  # reads
        batches.put(1)


def train(d, get):
    for _ in range(STEPS):
        get()
        d.up(20000)
        d.train(1)
        d.sync()


def deep(n, until):
    if n:
        return deep(n - 1, until)
    while time.perf_counter() < until:
        sum(range(100))


def prepare():
    until = time.perf_counter() + 0.01
    while time.perf_counter() < until: pass  # prepares


def main(name):
    d = Device()
    if name == "prepares":
        for i in range(12):
            deep(40 + 12 * i, time.perf_counter() + 0.25)
        return train(d, prepare)
    made, _, simple = name.partition("-")
    batches = queue.SimpleQueue() if simple else queue.Queue(2)
    threading.Thread(target={"inflates": inflate, "reads": read}[made], args=(batches,), daemon=True).start()
    train(d, batches.get)


main(sys.argv[1])
