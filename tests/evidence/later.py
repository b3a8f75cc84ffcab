"""Twelve jobs that were written after the rules, which were not changed for them before they had been run once.

Rows as in jobs.py.
"""
import concurrent.futures
import io
import logging
import logging.handlers
import multiprocessing
import multiprocessing.connection
import os
import queue
import random
import statistics
import subprocess
import tarfile
import threading
import time
import zlib

from jobs import DEVICE_MS, INPUT, MS, busy, job, main, step, worker
from practice import here


# ---- batches ----

@job(*INPUT)
def priority_queue(d, steps, spent):
    packed, batches = zlib.compress(random.Random(1).randbytes(1 << 16) * 8), queue.PriorityQueue(3)

    def load(first):
        for i in range(first, steps + 3, 3):
            time.sleep(3 * MS / 1e3)
            batches.put((i, zlib.decompress(packed)))
    for first in range(3):
        worker(load, first)
    for _ in range(steps):
        with spent:
            batches.get()  # here
        step(d)


def prepared(seed):
    # Two that are busy all the time would leave none of two processors to the trainer, which then waits for a processor.
    busy(MS / 2)
    time.sleep(1.5 * MS / 1e3)
    return seed


@job(*INPUT)
def executor_of_processes(d, steps, spent):
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        ahead = [pool.submit(prepared, i) for i in range(2)]
        for i in range(steps):
            with spent:
                ahead.pop(0).result()  # here
            ahead.append(pool.submit(prepared, i))
            step(d)


@job("host.sleep", *INPUT)
def files_that_appear(d, steps, spent):
    with here() as folder:
        def write():
            for i in range(steps):
                time.sleep((MS + DEVICE_MS) / 1e3)
                with open(os.path.join(folder, "%d.part" % i), "wb") as f:
                    f.write(b"x" * 100000)
                os.rename(f.name, os.path.join(folder, "%d.bin" % i))
        worker(write)
        for i in range(steps):
            path = os.path.join(folder, "%d.bin" % i)
            with spent:
                while not os.path.exists(path):
                    time.sleep(0.001)  # here
            with open(path, "rb") as f:
                f.read()
            step(d)


def serve(address, steps):
    with multiprocessing.connection.Client(address) as to:
        for i in range(steps):
            time.sleep(MS / 1e3)
            to.send([i] * 1000)


@job(*INPUT)
def connection_of_loader(d, steps, spent):
    with multiprocessing.connection.Listener(family="AF_UNIX") as door:
        multiprocessing.get_context("fork").Process(target=serve, args=(door.address, steps), daemon=True).start()
        with door.accept() as loader:
            for _ in range(steps):
                with spent:
                    loader.recv()  # here
                step(d)


@job("input.*", env="main")
def py_function(d, steps, spent):
    import tensorflow as tf

    def load(i):
        time.sleep(MS / 1e3)
        return i
    data = tf.data.Dataset.range(steps).map(lambda i: tf.py_function(load, [i], tf.int64))
    for _ in data:
        step(d)


# ---- the loop itself ----

@job("host.lock", "host.gil")
def lock_of_metrics(d, steps, spent):
    lock, scores, done = threading.RLock(), [random.random() for _ in range(200000)], []

    def summarise():
        while not done:
            with lock:
                time.sleep(MS / 1e3)
                zlib.crc32(bytes(1 << 20))
            time.sleep(0.001)
    worker(summarise)
    for _ in range(steps):
        step(d)
        with spent:
            with lock:  # here
                scores.append(0.5)
    done.append(True)


@job("host.python")
def quantiles(d, steps, spent):
    values = [random.random() for _ in range(9000)]
    for i in range(steps):
        step(d)
        with spent:
            values[i % 9000] = 0.5
            statistics.quantiles(values, n=100)  # here


@job("host.logging")
def rotating_log(d, steps, spent):
    with here() as folder:
        log = logging.getLogger("job")
        log.propagate = False
        log.setLevel(logging.INFO)
        log.addHandler(logging.handlers.RotatingFileHandler(os.path.join(folder, "job.log"), maxBytes=20000, backupCount=3))
        for i in range(steps):
            step(d)
            with spent:
                for k in range(400):
                    log.info("step %d: layer %d: gradient %f", i, k, k / 7)  # here


@job("host.checkpoint")
def tar_each_fourth(d, steps, spent):
    weights = random.Random(1).randbytes(1 << 21)

    def save_checkpoint(path):
        with tarfile.open(path, "w:gz", compresslevel=1) as t:
            info = tarfile.TarInfo("weights")
            info.size = len(weights)
            t.addfile(info, io.BytesIO(weights))  # here
    with here() as folder:
        for i in range(steps):
            step(d)
            if i % 4 == 3:
                with spent:
                    save_checkpoint(os.path.join(folder, "%d.tar.gz" % (i % 2)))


@job("host.compile", env="client-numba")
def vectorized_each_step(d, steps, spent):
    import numba
    import numpy as np
    for i in range(min(steps, 25)):
        with spent:
            scaled = numba.vectorize(["float64(float64)"])(lambda x: x * i + 1)  # here
            scaled(np.zeros(10))
        step(d)


@job("host.compile", "host.python", "host.launch")
def tinygrad_new_shapes(d, steps, spent):
    os.environ["DEV"] = "CUDA:PTX"
    from tinygrad import Tensor
    weights = Tensor.rand(64, 64).realize()
    for i in range(min(steps, 40)):
        with spent:
            (Tensor.rand(8 + i, 64) @ weights).relu().sum().item()  # here


@job("host.sleep")
def program_in_c(d, steps, spent):
    loop = os.path.join(os.environ.get("TFH_BUILD", "build"), "tests", "jobs", "client_loop")
    with spent:
        subprocess.run([loop, "--steps", str(steps), "--sleep", str(MS)], check=True)


if __name__ == "__main__":
    main()
