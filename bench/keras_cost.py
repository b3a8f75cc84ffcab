#!/usr/bin/env python3
"""What recording costs a real Keras job: extra CPU and wall time (bar: wall, 95 % upper bound, at most 1 %).

Runs the same fit with and without the preload in interleaved pairs. The job prints the wall and CPU seconds of its
training part, so that interpreter and TensorFlow start-up (identical in both) do not dilute the ratio.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import side_by_side  # noqa: E402

PAIRS = int(os.environ.get("BENCH_PAIRS", "7"))
JOB = r"""
import json, os, time
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '2'
import numpy as np, tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
model = tf.keras.Sequential([tf.keras.layers.Input((128,)), tf.keras.layers.Dense(512, 'relu'),
                             tf.keras.layers.Dense(512, 'relu'), tf.keras.layers.Dense(10)])
model.compile('sgd', tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x = np.random.rand(8192, 128).astype('f'); y = np.random.randint(0, 10, 8192)
data = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (a * 2, b), tf.data.AUTOTUNE).batch(64).prefetch(2)
model.fit(data, epochs=1, verbose=0)
wall, cpu = time.monotonic(), time.process_time()
model.fit(data, epochs=8, verbose=0)
print(json.dumps({'wall': time.monotonic() - wall, 'cpu': time.process_time() - cpu}))
"""


def run(env):
    out = subprocess.run([sys.executable, "-c", JOB], env=env, capture_output=True, text=True, check=True)
    return json.loads(out.stdout.strip().splitlines()[-1])


def main():
    lib = os.path.join(os.environ["TFH_BUILD"], "lib", "libtfhook.so")
    base = {k: v for k, v in os.environ.items() if not k.startswith("TFHOOK") and k != "LD_PRELOAD"}
    walls, cpus, size = [], [], 0
    for _ in range(PAIRS):
        where = tempfile.mkdtemp(prefix="tfhook-bench-")
        traced = dict(base, LD_PRELOAD=lib, TFHOOK_DIR=where)
        order = [(base, "off"), (traced, "on")]
        random.shuffle(order)
        got = {key: run(env) for env, key in order}
        walls.append(got["on"]["wall"] / got["off"]["wall"])
        cpus.append(got["on"]["cpu"] / got["off"]["cpu"])
        size = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(where) for f in fs)
        shutil.rmtree(where)
    for name, values in (("wall", walls), ("cpu", cpus)):
        mid, low, high = side_by_side.interval(values)
        print(f"{name:5} with/without: {mid:.4f} (95 % interval {low:.4f} .. {high:.4f}), {PAIRS} pairs")
    print(f"trace of the last run: {size} bytes for 9 x 128 steps")


if __name__ == "__main__":
    main()
