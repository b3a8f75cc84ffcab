#!/usr/bin/env python3
"""Runs tf.data pipelines as pipeline_draw.py describes them, each in a child forked after TensorFlow has been loaded.

usage: pipes.py --library libtrain.so      reads lines `OUTPUT PLAN` (JSON) and answers `PID STATUS`; OUTPUT gets the child's output

A child prints one JSON object last: begin and end of every step, and when it waited for batches (`defect`)."""
import argparse
import ctypes
import json
import os
import shutil
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

TOKEN = "pipes_slow"
FILES = 4
RECORDS = 256  # of a file


# ---- things that take time -------------------------------------------------------------------------------------------

def take(kind, ms):
    """Takes so long; what it does meanwhile is its kind."""
    until = time.monotonic() + ms / 1e3
    if kind.endswith("sleep") and ms:
        time.sleep(ms / 1e3)
    while time.monotonic() < until:
        if kind == "alloc":
            np.ones(200000, np.float64).sum()
        elif kind == "numpy":
            np.sort(np.arange(2000) % 97)


class Slow:
    """A function of one tensor that takes `ms` for the elements of a step, `rate` of them."""

    def __init__(self, stage, rate):
        self.kind = stage.get("kind", "sleep")
        self.ms = stage.get("ms", 0) / max(rate, 1e-9)
        self.there = "ms" in stage

    def __call__(self, x):
        if not self.there:
            return x + 1
        if self.kind == "graph":
            end = tf.timestamp() + self.ms / 1e3
            with tf.control_dependencies([x]):
                now = tf.while_loop(lambda t: t < end, lambda t: (tf.timestamp(),), [tf.timestamp()], parallel_iterations=1)[0]
            return x + tf.cast(now, tf.float32) * 0
        wrap = tf.py_function if self.kind.startswith("py_") else tf.numpy_function
        out = wrap(lambda v: (take(self.kind, self.ms), np.asarray(v))[1], [x], tf.float32)
        out.set_shape(x.shape)
        return out


# ---- pipelines -------------------------------------------------------------------------------------------------------

class Build:
    def __init__(self, plan):
        self.plan, self.F = plan, plan["features"]
        self.dir = tempfile.mkdtemp(prefix=TOKEN)
        self.row = np.ones(self.F, np.float32)
        self.servers = []

    def calls(self, n):
        return None if not n else tf.data.AUTOTUNE if n < 0 else n

    def zeros(self, n=10**9):
        return tf.data.Dataset.range(n).map(lambda i: tf.fill([self.F], tf.cast(i % 7, tf.float32)))

    def slow_files(self, bytes_per_step, ms):
        os.environ["SLOWREAD_TOKEN"] = TOKEN
        os.environ["SLOWREAD_NS_PER_BYTE"] = str(ms * 1e6 / bytes_per_step)

    def records(self, name):
        path = os.path.join(self.dir, name)
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(RECORDS):
                writer.write(self.row.tobytes())
        return path

    def raw(self, r):
        return tf.ensure_shape(tf.io.decode_raw(r, tf.float32), (self.F,))

    def source(self, s):
        rate, ms, kind = s["rate"], s.get("ms", 0), s["t"]
        if kind == "slices":
            return tf.data.Dataset.from_tensor_slices(np.ones((512, self.F), np.float32)).repeat()
        if kind == "range":
            return self.zeros()
        if kind == "tensors":
            return tf.data.Dataset.from_tensors(self.row).repeat()
        if kind == "generator":
            return self.generator(s)
        if kind == "tfrecord":
            per = 4 * self.F + 16
            self.slow_files(per * rate, ms)
            return tf.data.TFRecordDataset(self.records("a"), buffer_size=int(per * max(1, rate))).repeat().map(self.raw)
        if kind == "fixed":
            path = os.path.join(self.dir, "a")
            open(path, "wb").write(self.row.tobytes() * RECORDS)
            self.slow_files(4 * self.F * rate, ms)
            return tf.data.FixedLengthRecordDataset(path, 4 * self.F, buffer_size=int(4 * self.F * max(1, rate))).repeat().map(
                self.raw)
        if kind == "textline":
            path = os.path.join(self.dir, "a")
            line = ",".join(["1.5"] * self.F) + "\n"
            open(path, "w").write(line * RECORDS)
            self.slow_files(len(line) * rate, ms)
            parse = lambda t: tf.ensure_shape(tf.strings.to_number(tf.strings.split(t, ",")), (self.F,))
            return tf.data.TextLineDataset(path, buffer_size=int(len(line) * max(1, rate))).repeat().map(parse)
        if kind == "load":
            path = os.path.join(self.dir, "saved")
            tf.data.Dataset.from_tensor_slices(np.ones((RECORDS, self.F), np.float32)).save(path)
            size = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(path) for f in fs)
            self.slow_files(size / RECORDS * rate, ms)
            return tf.data.Dataset.load(path).repeat()
        return self.several(s)

    def generator(self, s):
        each = s.get("ms", 0) / s["rate"]

        def make(*_):
            while True:
                take(s.get("kind", "sleep"), each)
                yield self.row
        return tf.data.Dataset.from_generator(make, output_signature=tf.TensorSpec((self.F,), tf.float32))

    def several(self, s):
        """Interleaved inputs."""
        rate, ms = s["rate"], s.get("ms", 0)
        if s["inner"] == "tfrecord":
            per = 4 * self.F + 16
            self.slow_files(per * rate, ms)
            files = tf.data.Dataset.from_tensor_slices([self.records(str(i)) for i in range(FILES)])
            inner = lambda f: tf.data.TFRecordDataset(f, buffer_size=int(per * max(1, min(rate, s["block"])))).map(self.raw)
            if s["t"] == "files":
                return files.repeat().flat_map(inner)
            data = files.repeat()
        elif s["inner"] == "map":
            slow = Slow(s, rate)
            data, inner = tf.data.Dataset.range(FILES).repeat(), lambda i: self.zeros(32).map(slow)
        else:
            data, inner = tf.data.Dataset.range(FILES).repeat(), lambda i: self.generator(s).take(64)
        calls = self.calls(min(s["parallel"], s["cycle"]))
        return data.interleave(inner, cycle_length=s["cycle"], block_length=s["block"], num_parallel_calls=calls,
                               deterministic=s["deterministic"] if calls else None)

    def side(self, s, batched, rate):
        """The other data set of zip and sample."""
        data = self.zeros()
        if s["side"] == "map":
            data = data.map(Slow(s, rate))
        if not batched:
            return data
        return data.map(lambda x: tf.tile(x[None], [self.plan["batch"], 1]))

    def stage(self, data, s, batched):
        kind, rate, rate_in = s["t"], s["rate"], s["rate_in"]
        rows = (self.plan["batch"], self.F) if batched else (self.F,)
        if kind == "map":
            calls = self.calls(s["parallel"])
            return data.map(Slow(s, rate_in), num_parallel_calls=calls, deterministic=s["deterministic"] if calls else None)
        if kind == "filter":
            slow = Slow(s, rate_in)
            if s["half"]:
                data = data.enumerate()
                return data.filter(lambda i, x: tf.reduce_all(slow(x) > -1) & (i % 2 == 0)).map(lambda i, x: x)
            return data.filter(lambda x: tf.reduce_all(slow(x) > -1))
        if kind == "flat_map":
            slow = Slow(s, rate_in)
            return data.flat_map(lambda x: tf.data.Dataset.from_tensors(slow(x)).repeat(s["times"]))
        if kind == "scan":
            slow = Slow(s, rate_in)
            return data.scan(tf.constant(0, tf.int64), lambda n, x: (n + 1, slow(x)))
        if kind == "shuffle":
            return data.shuffle(s["size"])
        if kind == "cache":
            return data.take(int(40 * rate)).cache().repeat() if "ms" not in s and not self.slow_before(s) else data.cache()
        if kind == "zip":
            return tf.data.Dataset.zip((data, self.side(s, batched, rate))).map(lambda a, b: a + 0 * b)
        if kind == "concatenate":
            return data.take(3).concatenate(data)
        if kind == "sample":
            return tf.data.Dataset.sample_from_datasets([data, self.side(s, batched, rate / 2)], [0.5, 0.5], seed=1)
        if kind == "prefetch":
            return data.prefetch(self.calls(s["size"]))
        if kind == "window":
            return data.window(4).flat_map(lambda w: w)
        if kind == "take":
            return data.take(10**8)
        if kind == "skip":
            return data.skip(1)
        if kind == "enumerate":
            return data.enumerate().map(lambda i, x: x)
        if kind == "snapshot":
            return data.snapshot(os.path.join(tempfile.mkdtemp(prefix="pipes_snapshot"), "s"))
        if kind == "options":
            options = tf.data.Options()
            options.threading.private_threadpool_size = 4
            return data.with_options(options)
        if kind == "rebatch":
            n = rows[0] if batched else 4
            many = data.unbatch() if batched else data
            out = many.batch(n, drop_remainder=True)
            return out if batched else out.unbatch()
        if kind == "group":
            size = 2 if rate > 1 else 1
            slow = Slow(s, rate / size)
            reduce = (lambda k, w: w.batch(size).map(slow).unbatch()) if "ms" in s else (lambda k, w: w.map(slow))
            return data.group_by_window(key_func=lambda x: tf.constant(0, tf.int64), reduce_func=reduce, window_size=size)
        if kind == "shard":
            return data.shard(1, 0)
        if kind == "errors":
            return data.ignore_errors()
        if kind == "apply_repeat":
            return data.repeat()
        if kind == "batch":
            return data.batch(self.plan["batch"], drop_remainder=True, num_parallel_calls=self.calls(s["parallel"]))
        if kind == "padded":
            return data.padded_batch(self.plan["batch"], drop_remainder=True)
        if kind == "service":
            service = tf.data.experimental.service
            dispatcher = service.DispatchServer()
            worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1]))
            self.servers += [worker, dispatcher]
            return data.apply(service.distribute(processing_mode="parallel_epochs", service=dispatcher.target))
        raise ValueError(kind)

    def slow_before(self, stage):
        for s in [self.plan["source"]] + self.plan["stages"]:
            if s is stage:
                return False
            if "ms" in s:
                return True
        return False

    def pipeline(self):
        p, batched = self.plan, False
        data = self.source(p["source"])
        for s in p["stages"]:
            data = self.stage(data, s, batched)
            batched |= s["t"] in ("batch", "padded")
        o, options = p["options"], tf.data.Options()
        options.autotune.enabled = o["autotune"]
        options.experimental_optimization.inject_prefetch = o["inject"]
        options.experimental_optimization.map_and_batch_fusion = o["fuse"]
        options.experimental_optimization.map_parallelization = False
        if o["threads"]:
            options.threading.private_threadpool_size = o["threads"]
        return data.with_options(options)


# ---- loops -----------------------------------------------------------------------------------------------------------

class Loop:
    def __init__(self, plan, library):
        self.plan, self.loop = plan, plan["loop"]
        self.epochs = self.loop["epochs"]
        self.per_epoch = plan["steps"] // self.epochs
        self.begin, self.end, self.waits = [], [], []
        self.last = 0.0
        self.train = None
        self.model = tf.function(self.burn)
        if self.loop.get("device", True):
            self.train = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
            self.train.train_step.argtypes = [ctypes.c_double]
            self.train.train_defect.argtypes = [ctypes.c_double] * 2
            self.train.train_open(plan["plan"].encode(), ctypes.c_long(plan["steps"]))

    def compute(self, x):
        """A step's work: on the device, or of TensorFlow on the processor."""
        if self.train:
            self.train.train_step(self.last)
        else:
            self.begin.append(self.last)

    def waited(self):
        now = time.monotonic()
        if self.train:
            self.train.train_defect(self.last, now)
        else:
            self.waits += [self.last, now]

    def done(self):
        self.last = time.monotonic()
        if not self.train:
            self.end.append(self.last)

    def burn(self, x):
        """What a model would: begins with the batch."""
        end = tf.timestamp() + self.loop["ms"] / 1e3
        w = tf.eye(128) + 1e-9 * tf.reduce_mean(x)
        return tf.while_loop(lambda a, t: t < end, lambda a, t: (tf.matmul(a, w), tf.timestamp()), [w, tf.timestamp()],
                             parallel_iterations=1)[0]

    def in_graph(self, x):
        """A step in a TensorFlow function; the batch is here."""
        def arrive(v):
            self.waited()
            self.compute(v)
            if self.train:
                self.done()
            return np.float32(0)

        def leave(v):
            self.done()
            return np.float32(0)
        out = tf.numpy_function(arrive, [x[0, 0]], tf.float32)
        if self.train:
            return tf.ensure_shape(out, ())
        with tf.control_dependencies([out]):
            return tf.ensure_shape(tf.numpy_function(leave, [self.burn(x)[0, 0]], tf.float32), ())

    def run(self, data):
        getattr(self, self.loop["t"])(data)
        return {"begin": self.begin, "end": self.end, "defect": self.waits, "steps": len(self.end)}

    def eager(self, batches):
        self.last = time.monotonic()
        for i in range(self.per_epoch):
            x = next(batches)
            self.waited()
            self.compute(x)
            if not self.train:
                self.model(x).numpy()
            self.done()

    def next(self, data):
        for _ in range(self.epochs):
            self.eager(iter(data))

    def for_(self, data):
        for _ in range(self.epochs):
            self.eager(iter(data.take(self.per_epoch)))

    def function(self, data):
        step = tf.function(lambda batches: self.in_graph(next(batches)))
        for _ in range(self.epochs):
            batches = iter(data)
            self.last = time.monotonic()
            for _ in range(self.per_epoch):
                step(batches)

    def graph(self, data):
        @tf.function
        def epoch(data):
            out = tf.constant(0.0)
            for x in data:
                out += self.in_graph(x)
            return out
        for _ in range(self.epochs):
            self.last = time.monotonic()
            epoch(data.take(self.per_epoch))

    def keras(self, data, several=1):
        loop = self

        class Model(tf.keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = tf.keras.layers.Dense(1)

            def call(self, x):
                return self.dense(x)

            def train_step(self, x):
                return {"loss": loop.in_graph(x)}
        model = Model()
        model.compile(tf.keras.optimizers.SGD(0.1), "mse", steps_per_execution=several, jit_compile=False)
        self.last = time.monotonic()
        model.fit(data, epochs=self.epochs, steps_per_epoch=self.per_epoch, verbose=0)

    def keras_several(self, data):
        self.keras(data, 5)


setattr(Loop, "for", Loop.for_)


def child(output, plan, library):
    fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(fd, 1), os.dup2(fd, 2)
    status, build = 1, None
    try:
        build = Build(plan)
        data = build.pipeline()
        loop = Loop(plan, library)
        told = loop.run(data)
        sys.stdout.flush()
        if loop.train:
            loop.train.train_close()
        else:
            print(json.dumps(told), flush=True)
        status = 0
    except BaseException:
        import traceback
        traceback.print_exc()
    sys.stdout.flush(), sys.stderr.flush()
    if build:
        shutil.rmtree(build.dir, ignore_errors=True)
    os._exit(status)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--library", required=True)
    a = p.parse_args()
    print("ready", flush=True)
    for line in sys.stdin:
        output, _, plan = line.partition(" ")
        pid = os.fork()
        if not pid:
            child(output, json.loads(plan), a.library)
        print(pid, os.waitpid(pid, 0)[1], flush=True)


main()
