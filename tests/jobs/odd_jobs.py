"""Jobs as users write them, that are no plain training loop. Python with nothing but ctypes drives the device.

usage: odd_jobs.py NAME [--steps N]

gan        two networks in turn: two updates of one, one of the other
rl         an environment steps on the processor; small batches now and then
serve      a server answers requests that come at random; nothing is trained
accumulate gradients of four batches, then an update
pause      stands still for a while in the middle
epochs     epochs with an evaluation and a checkpoint behind each; stops early
fork       loaders in forked processes hand batches over a queue
asyncio    batches come from an asyncio task
threads    a thread pool prepares batches, the main thread trains
growing    each step takes longer than the one before (sequence lengths)
twosize    steps of two sizes in random order
crash      a null pointer in the middle of step 30
oom        asks for more device memory than there is, and ends with a traceback
tiny       three steps
cpuonly    a loop that never touches the device
slowstart  seconds of imports and warm-up, then fast steps
logging    prints much and writes a file in each step
gc         much garbage: collections now and then
"""
import argparse
import asyncio
import concurrent.futures
import ctypes
import gc
import json
import math
import multiprocessing
import os
import queue
import random
import sys
import tempfile
import time

from device import Device


def busy(ms):
    until = time.perf_counter() + ms / 1e3
    x = 0.5
    while time.perf_counter() < until:
        x = math.sin(x)


def gan(d, steps):
    for i in range(steps):
        for _ in range(2):
            d.up()
            d.run(2, "other", 2)
            d.run(0.05, "update")
        d.up()
        d.train(6)
        d.down()


def rl(d, steps):
    replay = []
    for i in range(steps * 16):
        busy(random.uniform(0.5, 1.5))  # the environment
        d.up(2048)
        d.run(0.1, "forward")           # the policy
        d.down(64)
        replay.append(i)
        if i % 16 == 15:
            d.up(200000)
            d.train(3)
            d.down(4)


def serve(d, steps):
    for i in range(steps):
        time.sleep(random.expovariate(1 / 0.008))
        d.up(random.choice([50000, 200000]))
        d.run(random.uniform(1, 3), "forward", 2)
        d.down(4000)


def accumulate(d, steps):
    for i in range(steps):
        for _ in range(4):
            d.up()
            d.run(1, "forward")
            d.run(2, "backward")
        d.run(0.3, "update")
        d.down()


def pause(d, steps, seconds=None):
    for i in range(steps):
        if i == steps // 2:
            time.sleep(seconds or float(os.environ.get("PAUSE", "3")))
        d.up()
        d.train(8)
        d.down()


def epochs(d, steps):
    for epoch in range(100):
        for i in range(30):
            d.up()
            d.train(6)
            d.down()
        for i in range(8):
            d.up()
            d.run(2, "eval")
        d.down()
        d.down(d.bytes)
        with tempfile.TemporaryFile() as f:
            f.write(d.host.raw)
            os.fsync(f.fileno())
        if epoch * 30 >= steps:
            return


def produce(q, n, ms):
    for i in range(n):
        busy(ms)
        q.put(b"x" * 100000)
    q.put(None)


def fork(d, steps):
    q = multiprocessing.get_context("fork").Queue(4)
    workers = [multiprocessing.get_context("fork").Process(target=produce, args=(q, steps // 2, 40)) for _ in range(2)]
    for w in workers:
        w.start()
    ends = 0
    while ends < 2:
        batch = q.get()
        if batch is None:
            ends += 1
            continue
        d.up()
        d.train(4)
        d.down()
    for w in workers:
        w.join()


def asyncio_(d, steps):
    async def loader(q):
        for i in range(steps):
            await asyncio.sleep(0.012)  # a store on the network
            await q.put(i)
        await q.put(None)

    async def trainer(q):
        while await q.get() is not None:
            d.up()
            d.train(4)
            d.down()

    async def both():
        q = asyncio.Queue(2)
        await asyncio.gather(loader(q), trainer(q))
    asyncio.run(both())


def threads(d, steps):
    def load(i):
        time.sleep(0.03)
        return i
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        ahead = [pool.submit(load, i) for i in range(4)]
        for i in range(steps):
            ahead.pop(0).result()
            ahead.append(pool.submit(load, i))
            d.up()
            d.train(5)
            d.down()


def growing(d, steps):
    for i in range(steps):
        d.up()
        d.train(2 + 10 * i / steps)
        busy(0.5 + 2.5 * i / steps)
        d.down()


def twosize(d, steps):
    for i in range(steps):
        d.up()
        d.train(random.choice([3, 12]))
        d.down()
        time.sleep(0.002)


def crash(d, steps):
    for i in range(30):
        d.up()
        d.train(5)
        d.down()
    d.up()
    d.train(5)
    ctypes.string_at(0)


def oom(d, steps):
    kept = []
    for i in range(steps * 100):
        d.up()
        d.train(3)
        d.down()
        kept.append(d.new("cuMemAlloc_v2", ctypes.c_size_t(1 << 29)))


def tiny(d, steps):
    for i in range(3):
        d.up()
        d.train(5)
        d.down()


def cpuonly(d, steps):
    for i in range(steps):
        busy(5)


def slowstart(d, steps):
    time.sleep(2)
    d.run(300, "forward")
    d.sync()
    for i in range(steps):
        d.up()
        d.train(5)
        d.down()


def logging(d, steps):
    with tempfile.NamedTemporaryFile("w") as f:
        for i in range(steps):
            d.up()
            d.train(4)
            d.down()
            for k in range(300):
                print("step", i, "loss", i * k, file=f, flush=True)
            os.fsync(f.fileno())


def gc_(d, steps):
    gc.disable()
    for i in range(steps):
        d.up()
        d.train(4)
        d.down()
        junk = [[] for _ in range(20000)]
        for a, b in zip(junk, junk[1:]):
            a.append(b), b.append(a)
        if i % 10 == 9:
            gc.collect()


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("name")
    p.add_argument("--steps", type=int, default=60)
    a = p.parse_args()
    t0 = time.monotonic()
    job = globals().get(a.name + "_") or globals()[a.name]
    if a.name == "fork":  # before the device is there
        random.seed(1)
    job(None if a.name == "cpuonly" else Device(), a.steps)
    print(json.dumps({"seconds": round(time.monotonic() - t0, 3)}), flush=True)


main()
