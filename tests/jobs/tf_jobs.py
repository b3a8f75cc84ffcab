#!/usr/bin/env python3
"""One TensorFlow training job in many shapes, with one thing in it made slow: truth for the tests of the verdict.

usage: tf_jobs.py --shape SHAPE [--defect DEFECT] [--ms X] [options]

--shape     how the job is written:
    eager                for batch in dataset, every op eager
    func_next            next(iterator) inside a tf.function
    func_loop            for batch in dataset inside a tf.function
    keras                model.fit
    tf1                  graph and session of TensorFlow 1
    train_val            two epochs; train and validation iterators made anew in each
    steps_per_execution  model.fit with several steps per call (--execution)
--defect    what is slow:
    none                 nothing
    slow_map             a Map stage: --ms a batch
    slow_generator       a Python generator: --ms a batch, spread over its examples
    slow_read            reading a TFRecord file: --ms a batch (runs itself again with libslowread.so preloaded)
    compute              the model: --ms a step, of matrix products
    callback             Python between the steps (in func_loop: a py_function in the body): --ms a step
--ms X              size of the defect (20)
--base-ms X         compute of a step when that is not the defect (3)
--steps N           training steps (60)
--batch N           examples per batch (16)
--prefetch WHICH    explicit: a final prefetch(AUTOTUNE); default: what TensorFlow makes of the pipeline, which may
                    inject one; none: none at all
--parallel N        num_parallel_calls of the map (serial)
--busy              burn processor time where the defect would sleep
--iters N           matrix products of a step, instead of measuring how many take the time
--threads N         threads that compute one op (as many as processors); --pool N: threads that run ops side by side, and
                    Python's generators and map functions with them (likewise)
--execution N       steps per call of steps_per_execution (4)
--marks             mark every training step with the tfhook module (eager, func_next, tf1, train_val)
--times             list begin and end of every step in the result
--end HOW           normal, _exit (os._exit(3)) or raise (an exception, exit status 1)
--slowread PATH     libslowread.so ($TFH_BUILD/tests/jobs/libslowread.so)

The last line of the output is a JSON object: the arguments, "steps" done, "eval_steps", "loss" (the same for the same
arguments, whatever the machine), "step_s" (median), "p95_s", "wall_s" (first step's begin to the last one's end),
"iters", and with --times "begin" and "end" in seconds of CLOCK_MONOTONIC. In func_loop the times are taken in the graph.
"""
import argparse
import atexit
import json
import os
import shutil
import sys
import tempfile
import time

FEATURES = 64
TOKEN = "tf_jobs_slow"


def arguments():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--shape", required=True, choices=["eager", "func_next", "func_loop", "keras", "tf1", "train_val",
                                                      "steps_per_execution"])
    p.add_argument("--defect", default="none", choices=["none", "slow_map", "slow_generator", "slow_read", "compute",
                                                        "callback"])
    p.add_argument("--ms", type=float, default=20)
    p.add_argument("--base-ms", type=float, default=3)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--prefetch", default="default", choices=["explicit", "default", "none"])
    p.add_argument("--parallel", type=int, default=0)
    p.add_argument("--busy", action="store_true")
    p.add_argument("--iters", type=int, default=0)
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--pool", type=int, default=0)
    p.add_argument("--execution", type=int, default=4)
    p.add_argument("--marks", action="store_true")
    p.add_argument("--times", action="store_true")
    p.add_argument("--end", default="normal", choices=["normal", "_exit", "raise"])
    p.add_argument("--slowread", default=os.path.join(os.environ.get("TFH_BUILD", "build"), "tests", "jobs",
                                                      "libslowread.so"))
    return p.parse_args()


A = arguments()
# A record is 16 bytes of frame around the example; the file holds floats only.
BYTES_PER_BATCH = A.batch * (4 * (FEATURES + 1) + 16)

if A.defect == "slow_read" and "SLOWREAD_TOKEN" not in os.environ:
    library = os.path.abspath(A.slowread)
    if not os.path.exists(library):
        sys.exit("tf_jobs.py: no %s; see --slowread" % library)
    os.environ["SLOWREAD_TOKEN"] = TOKEN
    os.environ["SLOWREAD_NS_PER_BYTE"] = str(A.ms * 1e6 / BYTES_PER_BATCH)
    os.environ["LD_PRELOAD"] = ":".join(filter(None, [os.environ.get("LD_PRELOAD"), library]))
    os.execv(sys.executable, [sys.executable] + sys.argv)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

if A.threads:
    tf.config.threading.set_intra_op_parallelism_threads(A.threads)
if A.pool:
    tf.config.threading.set_inter_op_parallelism_threads(A.pool)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib", "python"))
import tfhook  # noqa: E402
from gate import wait_at_gate  # noqa: E402


def wait(ms):
    """Takes so long, asleep or busy."""
    end = time.monotonic() + ms / 1000
    if not A.busy:
        time.sleep(ms / 1000)
    while time.monotonic() < end:
        pass


# ---- data -----------------------------------------------------------------------------------------------------------

def examples(n):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((n, FEATURES)).astype(np.float32)
    return x, (x @ np.linspace(-1, 1, FEATURES, dtype=np.float32))[:, None] / FEATURES


def generated(x, y):
    def generator():
        for i in range(len(x)):
            wait(A.ms / A.batch)
            yield x[i], y[i]
    return tf.data.Dataset.from_generator(generator, output_signature=(
        tf.TensorSpec((FEATURES,), tf.float32), tf.TensorSpec((1,), tf.float32)))


def write_records(x, y):
    """TFRecord by hand (length, masked crc of the length, data, masked crc of the data), so that TensorFlow 1 graphs and
    eager jobs get the same file; its writer would do."""
    folder = tempfile.mkdtemp(prefix=TOKEN)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "examples.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for features, label in zip(x, y):
            writer.write(np.concatenate([features, label]).tobytes())
    return path


def read_back(x, y):
    def parse(record):
        values = tf.io.decode_raw(record, tf.float32)
        return tf.ensure_shape(values[:FEATURES], (FEATURES,)), tf.ensure_shape(values[FEATURES:], (1,))
    return tf.data.TFRecordDataset(write_records(x, y), buffer_size=BYTES_PER_BATCH).map(parse)


def slow_identity(x, y):
    def numpy_side(values):
        wait(A.ms)
        return values
    slow = tf.numpy_function(numpy_side, [x], tf.float32)
    slow.set_shape(x.shape)
    return slow, y


def pipeline(batches, defect=None):
    defect = A.defect if defect is None else defect
    x, y = examples(batches * A.batch)
    if defect == "slow_generator":
        ds = generated(x, y)
    elif defect == "slow_read":
        ds = read_back(x, y)
    else:
        ds = tf.data.Dataset.from_tensor_slices((x, y))
    ds = ds.batch(A.batch, drop_remainder=True)
    if defect == "slow_map":
        ds = ds.map(slow_identity, num_parallel_calls=A.parallel or None)
    if A.prefetch == "explicit":
        ds = ds.prefetch(tf.data.AUTOTUNE)
    options = tf.data.Options()
    if A.prefetch == "none":
        options.experimental_optimization.inject_prefetch = False
    return ds.with_options(options)


# ---- model ----------------------------------------------------------------------------------------------------------

SIDE = 256


def burn(iters, batch):
    """A chain of matrix products whose result is next to nothing. It begins with the batch, as a model does: a graph would
    run it while it waits for one."""
    w = tf.ones((SIDE, SIDE)) / SIDE + 1e-30 * tf.reduce_mean(batch)
    if tf.executing_eagerly():
        a = w
        for _ in range(iters):
            a = tf.matmul(a, w)
    else:
        _, a = tf.while_loop(lambda i, a: i < iters, lambda i, a: (i + 1, tf.matmul(a, w)),
                             [tf.constant(0), w], parallel_iterations=1)
    return 1e-30 * tf.reduce_mean(a)


def measure_iters(ms):
    if A.iters or ms <= 0:
        return A.iters
    a = tf.ones((SIDE, SIDE)) / SIDE
    best = float("inf")
    for _ in range(20):  # the best of many: other programs may run
        begin = time.monotonic()
        for _ in range(5):
            a = tf.matmul(a, a)
        a.numpy()
        best = min(best, (time.monotonic() - begin) / 5)
    return max(1, round(ms / 1000 / best))


wait_at_gate()
ITERS = measure_iters(A.ms if A.defect == "compute" else A.base_ms)
if A.shape == "tf1":
    tf.compat.v1.disable_eager_execution()


class Net:
    def __init__(self):
        rng = np.random.default_rng(3)
        make = tf.compat.v1.Variable if A.shape == "tf1" else tf.Variable
        self.w = [make(rng.standard_normal(s).astype(np.float32) * 0.1) for s in ((FEATURES, 32), (32, 1))]

    def loss(self, x, y):
        h = tf.nn.relu(tf.matmul(x, self.w[0]))
        return tf.reduce_mean(tf.square(tf.matmul(h, self.w[1]) - y)) + burn(ITERS, x)

    def train(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss(x, y)
        for w, g in zip(self.w, tape.gradient(loss, self.w)):
            w.assign_sub(0.05 * g)
        return loss


class BurnLayer(tf.keras.layers.Layer):
    def call(self, x):
        return x + burn(ITERS, x)


# ---- shapes ---------------------------------------------------------------------------------------------------------

begins, ends = [], []
result = {"eval_steps": 0}


class Step:
    """Times one step; what comes after the model, a slow callback, belongs to it."""

    def __enter__(self):
        if A.marks:
            tfhook.step_begin("train")
        begins.append(time.monotonic())

    def __exit__(self, *_):
        if A.defect == "callback":
            wait(A.ms)
        ends.append(time.monotonic())
        if A.marks:
            tfhook.step_end()


def eager():
    net = Net()
    iterator = iter(pipeline(A.steps))
    for _ in range(A.steps):
        with Step():
            loss = net.train(*next(iterator)).numpy()
    return loss


def func_next():
    net = Net()

    @tf.function
    def step(iterator):
        return net.train(*next(iterator))

    iterator = iter(pipeline(A.steps))
    for _ in range(A.steps):
        with Step():
            loss = step(iterator).numpy()
    return loss


def func_loop():
    net = Net()

    def callback(loss):
        wait(A.ms)
        return loss

    @tf.function
    def epoch(ds):
        times = tf.TensorArray(tf.float64, A.steps + 1, dynamic_size=True)
        times = times.write(0, tf.timestamp())
        done = tf.constant(0)
        loss = tf.constant(0.0)
        for x, y in ds:
            loss = net.train(x, y)
            if A.defect == "callback":
                loss = tf.ensure_shape(tf.numpy_function(callback, [loss], tf.float32), ())
            done += 1
            with tf.control_dependencies([loss]):
                times = times.write(done, tf.timestamp())
        return loss, times.stack()

    loss, times = epoch(pipeline(A.steps))
    offset = time.time() - time.monotonic()
    times = [t - offset for t in times.numpy()]
    begins.extend(times[:-1])
    ends.extend(times[1:])
    return loss.numpy()


class KerasTimes(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.last = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        steps = A.execution if A.shape == "steps_per_execution" else 1
        if A.defect == "callback":
            wait(A.ms * steps)
        now = time.monotonic()
        each = (now - self.last) / steps
        for i in range(steps):
            begins.append(self.last + i * each)
            ends.append(self.last + (i + 1) * each)
        self.last = now


def keras():
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.Sequential([tf.keras.layers.Input((FEATURES,)), BurnLayer(),
                                 tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(1)])
    several = {"steps_per_execution": A.execution} if A.shape == "steps_per_execution" else {}
    model.compile(tf.keras.optimizers.SGD(0.05), "mse", **several)
    history = model.fit(pipeline(A.steps), epochs=1, verbose=0, callbacks=[KerasTimes()])
    return history.history["loss"][-1]


def tf1():
    v1 = tf.compat.v1
    x, y = v1.data.make_one_shot_iterator(pipeline(A.steps)).get_next() if A.defect not in (
        "slow_generator", "slow_map") else (None, None)
    iterator = None
    if x is None:  # stateful functions need an initialisable iterator
        iterator = v1.data.make_initializable_iterator(pipeline(A.steps))
        x, y = iterator.get_next()
    net = Net()
    loss = net.loss(x, y)
    train = v1.train.GradientDescentOptimizer(0.05).minimize(loss, var_list=net.w)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        if iterator is not None:
            session.run(iterator.initializer)
        for _ in range(A.steps):
            with Step():
                value, _ = session.run([loss, train])
    return value


def train_val():
    net = Net()
    train, evaluate = tf.function(net.train), tf.function(net.loss)
    per_epoch = A.steps // 2
    train_ds, val_ds = pipeline(per_epoch), pipeline(max(1, per_epoch // 4), defect="none")
    for _ in range(2):
        batches = iter(train_ds)
        for _ in range(per_epoch):
            with Step():
                loss = train(*next(batches)).numpy()
        for x, y in val_ds:
            evaluate(x, y).numpy()
            result["eval_steps"] += 1
    return loss


def main():
    shapes = {"eager": eager, "func_next": func_next, "func_loop": func_loop, "keras": keras, "tf1": tf1,
              "train_val": train_val, "steps_per_execution": keras}
    loss = float(shapes[A.shape]())
    took = sorted(e - b for b, e in zip(begins, ends))
    result.update(vars(A), steps=len(took), loss=round(loss, 4), iters=ITERS, tensorflow=tf.__version__,
                  step_s=took[len(took) // 2], p95_s=took[int(len(took) * 0.95)], wall_s=ends[-1] - begins[0])
    if A.times:
        result.update(begin=begins, end=ends)
    print(json.dumps(result), flush=True)
    if A.end == "_exit":
        os._exit(3)
    if A.end == "raise":
        raise RuntimeError("as asked")


main()
