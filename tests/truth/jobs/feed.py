#!/usr/bin/env python3
"""Steps of libtrain.c between the batches of a real tf.data pipeline.

usage: feed.py --plan PLAN [options]

--plan PLAN      what a step does with its batch (libtrain.c)
--steps N        steps (60)
--source WHICH   slices, generator (plain Python), or records: a TFRecord file (slices)
--source-ms MS   what the generator, or reading the file, takes for a batch (0)
--map MS         what a map stage takes for a batch, asleep (0); --busy: with the processor
--parallel N     its num_parallel_calls (0: serial)
--prefetch N     a final prefetch of so many batches (0: none; -1: as TensorFlow likes)
--eval N         after every N-th step a dozen batches of another pipeline are evaluated (0: never)
--execution N    N steps in one call of a TensorFlow function, which takes their batches by itself
--defect         waiting for the batch is the defect: told with its times
--library PATH   libtrain.so; --slowread PATH: libslowread.so
"""
import argparse
import atexit
import ctypes
import os
import shutil
import sys
import tempfile
import time

FEATURES, BATCH = 64, 16
BYTES_PER_BATCH = BATCH * (4 * FEATURES + 16)
TOKEN = "feed_slow"


def arguments():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--plan", required=True)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--source", default="slices", choices=["slices", "generator", "records"])
    p.add_argument("--source-ms", type=float, default=0)
    p.add_argument("--map", type=float, default=0)
    p.add_argument("--busy", action="store_true")
    p.add_argument("--parallel", type=int, default=0)
    p.add_argument("--prefetch", type=int, default=0)
    p.add_argument("--eval", type=int, default=0)
    p.add_argument("--execution", type=int, default=0)
    p.add_argument("--defect", action="store_true")
    p.add_argument("--library", required=True)
    p.add_argument("--slowread", default="")
    return p.parse_args()


A = arguments()
if A.source == "records" and A.source_ms and "SLOWREAD_TOKEN" not in os.environ:
    os.environ["SLOWREAD_TOKEN"] = TOKEN
    os.environ["SLOWREAD_NS_PER_BYTE"] = str(A.source_ms * 1e6 / BYTES_PER_BATCH)
    os.environ["LD_PRELOAD"] = ":".join(filter(None, [os.environ.get("LD_PRELOAD"), A.slowread]))
    os.execv(sys.executable, [sys.executable] + sys.argv)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "jobs"))
from gate import wait_at_gate  # noqa: E402


def take(ms):
    until = time.monotonic() + ms / 1e3
    if not A.busy:
        time.sleep(ms / 1e3)
    while time.monotonic() < until:
        pass


def mapped(batch):
    def slow(values):
        take(A.map)
        return values
    out = tf.numpy_function(slow, [batch], tf.float32)
    out.set_shape(batch.shape)
    return out


def generated():
    row = np.ones(FEATURES, np.float32)
    for i in range(A.steps * BATCH):
        if i % BATCH == 0:
            take(A.source_ms)
        yield row


def recorded():
    folder = tempfile.mkdtemp(prefix=TOKEN)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "examples.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(A.steps * BATCH):
            writer.write(np.ones(FEATURES, np.float32).tobytes())
    data = tf.data.TFRecordDataset(path, buffer_size=BYTES_PER_BATCH)
    return data.map(lambda r: tf.ensure_shape(tf.io.decode_raw(r, tf.float32), (FEATURES,)))


def pipeline():
    if A.source == "records":
        data = recorded()
    elif A.source == "generator":
        data = tf.data.Dataset.from_generator(generated, output_signature=tf.TensorSpec((FEATURES,), tf.float32))
    else:
        data = tf.data.Dataset.from_tensor_slices(np.ones((A.steps * BATCH, FEATURES), np.float32))
    data = data.batch(BATCH, drop_remainder=True)
    if A.map:
        data = data.map(mapped, num_parallel_calls=A.parallel or None)
    if A.prefetch:
        data = data.prefetch(A.prefetch)
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    options.experimental_optimization.map_and_batch_fusion = bool(A.prefetch)  # these would work ahead by themselves
    options.experimental_optimization.map_parallelization = bool(A.prefetch)
    return data.with_options(options)


def evaluate(train):
    data = tf.data.Dataset.from_tensor_slices(np.zeros((12 * BATCH, FEATURES), np.float32)).batch(BATCH)
    for _ in data.map(lambda x: x + 1):
        train.train_eval(3.0)


def one_by_one(train):
    batches = iter(pipeline())
    for i in range(A.steps):
        if A.eval and i and i % A.eval == 0:
            evaluate(train)
        begin = time.monotonic()
        next(batches)
        if A.defect:
            train.train_defect(begin, time.monotonic())
        train.train_step(begin)


def executions(train):
    """As Keras does with steps_per_execution: the graph itself asks for the next batch. What lies between two steps of a call
    is the waiting for it."""
    last = 0.0

    def step(_):
        nonlocal last
        if A.defect:
            train.train_defect(last, time.monotonic())
        train.train_step(last)
        last = time.monotonic()
        return np.float32(0)

    @tf.function
    def several(batches):
        for _ in tf.range(A.execution):
            tf.numpy_function(step, [next(batches)], tf.float32)

    batches = iter(pipeline())
    for _ in range(A.steps // A.execution):
        last = time.monotonic()
        several(batches)


def main():
    wait_at_gate()
    train = ctypes.CDLL(A.library, mode=ctypes.RTLD_GLOBAL)
    train.train_step.argtypes = [ctypes.c_double]
    train.train_eval.argtypes = [ctypes.c_double]
    train.train_defect.argtypes = [ctypes.c_double] * 2
    train.train_open(A.plan.encode(), ctypes.c_long(A.steps))
    if A.execution:
        executions(train)
    else:
        one_by_one(train)
    sys.stdout.flush()
    train.train_close()


main()
