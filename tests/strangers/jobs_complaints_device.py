"""Batch 10: TensorFlow's jobs and those on the simulated GPU, after what people complain about in forums and issues."""
import http.client
import http.server
import json
import logging
import multiprocessing
import queue
import random
import socket
import sqlite3
import time
import zlib

import numpy as np
from stranger import (CLIENTS, FIXED, NUMBA, PYCUDA, PyCuda, every_kernel, job, kernels, main, mark, marks, temporary, tensorflow, thread,
                      tinygrad_kernels)


# TensorFlow.

@job(10, "input", ["input.*"], 240, twin=True,
     note="each of 12 epochs takes its 20 batches with skip() behind the map, so all records before are parsed for nothing; fix: before it")
def w_tf_skipped():
    tf, keras = tensorflow()
    path, rng = temporary("all.tfrecord"), np.random.default_rng(1)
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(12 * 320):
            text = " ".join("%.3f" % v for v in rng.random(256)).encode()
            example = tf.train.Example(features=tf.train.Features(feature={
                "x": tf.train.Feature(bytes_list=tf.train.BytesList(value=[text])),
                "y": tf.train.Feature(float_list=tf.train.FloatList(value=[float(rng.random())]))}))
            writer.write(example.SerializeToString())

    def parse(record):
        found = tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature([], tf.string), "y": tf.io.FixedLenFeature([1], tf.float32)})
        x = tf.strings.to_number(tf.strings.split([found["x"]]).values)  # here
        return tf.ensure_shape(x, (256,)), found["y"]

    model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    records = tf.data.TFRecordDataset(path)
    for epoch in range(12):
        if FIXED:
            data = records.skip(epoch * 320).take(320).map(parse)
        else:
            data = records.map(parse).skip(epoch * 320).take(320)  # here
        for x, y in data.batch(16).prefetch(2):  # here
            mark()
            loss = train_step(x, y)
        print("epoch", epoch, float(loss), flush=True)
    return 240


@job(10, "host", ["host.launch", "host.python"], 80, twin=True,
     note="a GAN as a Keras model with two optimizers in its train_step, and run_eagerly=True left from debugging; fix: left out")
def w_tf_run_eagerly():
    tf, keras = tensorflow()
    layers = keras.layers

    class Gan(keras.Model):
        def __init__(self):
            super().__init__()
            self.gen = keras.Sequential([keras.Input((16,)), layers.Dense(64, "relu"), layers.Dense(64, "relu"), layers.Dense(128)])
            self.dis = keras.Sequential([keras.Input((128,)), layers.Dense(64, "relu"), layers.Dropout(0.3), layers.Dense(1)])
            self.of_gen, self.of_dis = keras.optimizers.Adam(1e-4), keras.optimizers.Adam(1e-4)
            self.loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)
            self.seen = keras.metrics.Mean("d_loss")

        def train_step(self, real):  # here
            noise = tf.random.normal((32, 16))
            with tf.GradientTape() as tape:
                answers = self.dis(tf.concat([real, self.gen(noise)], 0), training=True)  # here
                d_loss = self.loss_fn(tf.concat([tf.ones((32, 1)), tf.zeros((32, 1))], 0), answers)  # here
            grads = tape.gradient(d_loss, self.dis.trainable_variables)  # here
            self.of_dis.apply_gradients(zip(grads, self.dis.trainable_variables))  # here
            with tf.GradientTape() as tape:
                g_loss = self.loss_fn(tf.ones((32, 1)), self.dis(self.gen(noise), training=True))  # here
            grads = tape.gradient(g_loss, self.gen.trainable_variables)  # here
            self.of_gen.apply_gradients(zip(grads, self.gen.trainable_variables))  # here
            self.seen.update_state(d_loss)
            return {"d_loss": self.seen.result()}

    model = Gan()
    model.compile(run_eagerly=not FIXED)
    data = tf.data.Dataset.from_tensor_slices(tf.random.normal((40 * 32, 128))).batch(32).prefetch(2)
    model.fit(data, epochs=2, verbose=2, callbacks=[marks(keras)])  # here
    return 80


@job(10, "input", ["input.*"], 120, twin=True,
     note="fit over from_generator that yields rows, 256 for a batch, from a csv.reader; fix: it yields the same batch, made before")
def w_tf_csv_rows():
    import csv
    tf, keras = tensorflow()
    path, rng = temporary("rows.csv"), np.random.default_rng(1)
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows(rng.random((2560, 13)).round(4).tolist())
    model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")

    def rows():
        while True:
            with open(path, newline="") as f:
                for row in csv.reader(f):  # here
                    values = [float(v) for v in row]  # here
                    yield values[:12], values[12:]  # here

    kept = rng.random((256, 13), dtype=np.float32)

    def batches():
        while True:
            yield kept[:, :12], kept[:, 12:]

    if FIXED:
        spec = tf.TensorSpec((256, 12), tf.float32), tf.TensorSpec((256, 1), tf.float32)
        data = tf.data.Dataset.from_generator(batches, output_signature=spec)
    else:
        spec = tf.TensorSpec((12,), tf.float32), tf.TensorSpec((1,), tf.float32)
        data = tf.data.Dataset.from_generator(rows, output_signature=spec).batch(256)  # here
    model.fit(data.prefetch(1), steps_per_epoch=60, epochs=2, verbose=2, callbacks=[marks(keras)])  # here
    return 120


@job(10, "compute", ["compute.*"], 300,
     note="no defect: wide and deep parts with an optimizer each, one tf.function, TFRecords parsed by batch and prefetched, 5 epochs")
def w_tf_wide_and_deep():
    tf, keras = tensorflow()
    path, rng = temporary("rows.tfrecord"), np.random.default_rng(1)
    with tf.io.TFRecordWriter(path) as writer:
        for row in rng.random((60 * 64, 33)).tolist():
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=row))})).SerializeToString())

    def parse(records):
        x = tf.io.parse_example(records, {"x": tf.io.FixedLenFeature([33], tf.float32)})["x"]
        return x[:, :32], x[:, 32:]

    wide = keras.Sequential([keras.Input((32,)), keras.layers.Dense(1)])
    deep = keras.Sequential([keras.Input((32,)), keras.layers.Dense(1024, "relu"), keras.layers.Dense(1024, "relu"), keras.layers.Dense(1)])
    of_wide, of_deep = keras.optimizers.SGD(0.01), keras.optimizers.Adam(1e-4)
    mean = keras.metrics.Mean()

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(wide(x) + deep(x) - y))
        grads = tape.gradient(loss, [wide.trainable_variables, deep.trainable_variables])
        of_wide.apply_gradients(zip(grads[0], wide.trainable_variables))
        of_deep.apply_gradients(zip(grads[1], deep.trainable_variables))
        mean.update_state(loss)

    data = tf.data.TFRecordDataset(path).shuffle(512).batch(64).map(parse).prefetch(2)
    for epoch in range(5):
        mean.reset_state()
        for x, y in data:
            mark()
            train_step(x, y)
        print("epoch", epoch, float(mean.result()), flush=True)
    return 300


# numba.

def arithmetic(cuda):
    @cuda.jit
    def scale(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * 0.5
    return scale


@job(10, "transfer", ["transfer.h2d-pageable", "transfer.h2d*", "transfer.d2h*"], 200, NUMBA, every_kernel("400us"), twin=True,
     note="four streams, each with a quarter of the frame, but in ordinary memory, so that nothing overlaps; fix: pinned")
def w_nb_four_streams():
    from numba import cuda
    scale = arithmetic(cuda)
    quarter = 1 << 19
    make = cuda.pinned_array if FIXED else np.empty
    frame, result = make(4 * quarter, np.float32), make(4 * quarter, np.float32)
    frame[:] = 1
    streams = [cuda.stream() for _ in range(4)]
    there, back = (cuda.device_array(4 * quarter, np.float32) for _ in range(2))
    for i in range(200):
        mark()
        frame[i] = i
        for k, stream in enumerate(streams):
            part = slice(k * quarter, (k + 1) * quarter)
            there[part].copy_to_device(frame[part], stream=stream)  # here
            scale[2048, 256, stream](there[part], back[part])
            back[part].copy_to_host(result[part], stream=stream)  # here
        for stream in streams:
            stream.synchronize()
        if i % 25 == 24:
            print("frame", i + 1, result[i], flush=True)
    return 200


class Frames(http.server.BaseHTTPRequestHandler):
    """Frames of a camera, each compressed when it is asked for."""
    protocol_version = "HTTP/1.1"
    pixels = np.random.default_rng(1).integers(0, 16, (480, 640), dtype=np.uint8).tobytes()

    def do_GET(self):
        body = zlib.compress(self.pixels, 9)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(send):
    server = http.server.HTTPServer(("127.0.0.1", 0), Frames)
    send.send(server.server_address[1])
    server.serve_forever()


@job(10, "input", ["input.*"], 300, NUMBA, kernels("800us", "1200us", "100us"), twin=True,
     note="a thread fetches one frame after the other by HTTP, inflates it and puts it into a queue; fix: one frame for all")
def w_nb_camera():
    receive, send = multiprocessing.Pipe(False)
    child = multiprocessing.get_context("fork").Process(target=serve, args=(send,), daemon=True)
    child.start()
    port = receive.recv()
    from numba import cuda

    @cuda.jit
    def fwd(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * 0.5

    @cuda.jit
    def bwd(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] -= x[i]

    frames = queue.Queue(4)

    def fetch():
        kept = None
        for k in range(300):
            if kept is None or not FIXED:
                connection = http.client.HTTPConnection("127.0.0.1", port)
                connection.request("GET", "/frame/%d" % k)
                body = connection.getresponse().read()  # here
                connection.close()
                kept = np.frombuffer(zlib.decompress(body), np.uint8).astype(np.float32)
            frames.put(kept)

    thread(fetch)
    y = cuda.device_array(480 * 640, np.float32)
    for _ in range(300):
        frame = frames.get()  # here
        mark()
        x = cuda.to_device(frame)
        fwd[1200, 256](x, y)
        bwd[1200, 256](x, y)
        cuda.synchronize()
    child.terminate()
    return 300


@job(10, "host", ["host.checkpoint", "host.logging", "host.python", "host.wait"], 120, NUMBA, every_kernel("700us"), twin=True,
     note="results of each step go into sqlite, row by row, each with a commit of its own; fix: one transaction in the end")
def w_nb_commits():
    from numba import cuda
    scale = arithmetic(cuda)
    x, y = cuda.to_device(np.ones(8192, np.float32)), cuda.device_array(8192, np.float32)
    base = sqlite3.connect(temporary("results.db"))
    base.execute("create table if not exists results (step integer, row integer, value real)")
    kept = []

    def store(step, values):
        for k, value in enumerate(values):
            base.execute("insert into results values (?, ?, ?)", (step, k, value))  # here
            base.commit()  # here

    for i in range(120):
        mark()
        scale[32, 256](x, y)
        scale[32, 256](y, x)
        values = x[:24].copy_to_host().tolist()
        if FIXED:
            kept += [(i, k, v) for k, v in enumerate(values)]
        else:
            store(i, values)  # here
    base.executemany("insert into results values (?, ?, ?)", kept)
    base.commit()
    return 120


def smooth(part):
    return np.cumsum(part, 1)[:, ::4] * 0.25


@job(10, "host", ["host.wait", "host.python", "host.lock", "host.unknown"], 150, NUMBA, every_kernel("900us"), twin=True,
     note="post-processing by a pool of two processes, which costs far more for pickling 8 MB than it saves; fix: done in place")
def w_nb_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        from numba import cuda
        scale = arithmetic(cuda)
        x, y = cuda.to_device(np.ones(1 << 21, np.float32)), cuda.device_array(1 << 21, np.float32)
        host, total = cuda.pinned_array(1 << 21, np.float32), 0.0
        for _ in range(150):
            mark()
            scale[8192, 256](x, y)
            y.copy_to_host(host)
            parts = np.split(host.reshape(1024, 2048), 4)
            done = [smooth(p) for p in parts] if FIXED else pool.map(smooth, parts)  # here
            total += sum(float(p[0, 0]) for p in done)
        print("total", total)
    return 150


@job(10, "host", ["host.compile"], 1200, NUMBA, every_kernel("250us"), twin=True,
     note="a sweep: the kernel holds the parameter as a constant, so each of 40 points compiles it before its 30 steps; fix: an argument")
def w_nb_sweep():
    from numba import cuda

    def make(rate):
        @cuda.jit  # here
        def diffuse(x, y, given):
            i = cuda.grid(1)
            if 0 < i < x.size - 1:
                y[i] = x[i] + (given if rate is None else rate) * (x[i - 1] - 2 * x[i] + x[i + 1])
        return diffuse

    general = make(None) if FIXED else None
    start = np.random.default_rng(1).random(32768, dtype=np.float32)
    for point in range(40):
        rate = 0.01 * (point + 1)
        diffuse = general if FIXED else make(rate)
        a, b = cuda.to_device(start), cuda.to_device(start)
        for _ in range(30):
            mark()
            diffuse[128, 256](a, b, rate)  # here
            diffuse[128, 256](b, a, rate)  # here
            cuda.synchronize()
        print("rate %.2f: %.4f" % (rate, a[:256].copy_to_host().std()), flush=True)
    return 1200


@job(10, "host", ["host.python", "host.logging"], 400, NUMBA, every_kernel("1200us"), twin=True,
     note="a debug message with all of 12,288 values is formatted in each step, though its level is switched off; fix: asked before")
def w_nb_debug():
    from numba import cuda
    scale = arithmetic(cuda)
    log = logging.getLogger("train")
    logging.basicConfig(level=logging.INFO)
    x, y = cuda.to_device(np.random.default_rng(1).random(12288, dtype=np.float32)), cuda.device_array(12288, np.float32)
    for i in range(400):
        mark()
        scale[48, 256](x, y)
        scale[48, 256](y, x)
        state = x.copy_to_host()
        if not FIXED:
            log.debug(f"step {i}: state {[round(v, 4) for v in state.tolist()]}")  # here
        if i % 100 == 99:
            log.info("step %d: mean %.4f", i + 1, state.mean())
    return 400


# Serving, drjit, tinygrad, pycuda.

def ask(port, n):
    """A client that waits for each answer, and asks again after up to 2 ms."""
    rng = random.Random(1)
    with socket.create_connection(("127.0.0.1", port)) as sock, sock.makefile("rw") as lines:
        for _ in range(n):
            time.sleep(rng.uniform(0, 0.002))
            lines.write(json.dumps({"tokens": [rng.randrange(1000) for _ in range(rng.randrange(4, 64))]}) + "\n")
            lines.flush()
            lines.readline()


@job(10, "host", ["host.python", "host.code"], 200, PYCUDA, every_kernel("600us"), twin=True,
     note="a server answers requests of random length, and turns all 24,000 scores into JSON for each; fix: the best five")
def w_pc_scores():
    listener = socket.create_server(("127.0.0.1", 0))
    child = multiprocessing.get_context("fork").Process(target=ask, args=(listener.getsockname()[1], 200), daemon=True)
    child.start()
    connection, _ = listener.accept()
    pc = PyCuda()
    scores, on_device = np.zeros(24000, np.float32), pc.cuda.mem_alloc(96000)
    rng = np.random.default_rng(1)
    answered = 0
    with connection, connection.makefile("rw") as lines:
        for line in lines:
            mark()
            tokens = np.zeros(64, np.int32)
            asked = json.loads(line)["tokens"]
            tokens[:len(asked)] = asked
            pc.cuda.memcpy_htod(on_device, tokens)
            pc.launch(on_device)
            pc.cuda.memcpy_dtoh(scores, on_device)
            scores[:64] += rng.random(64, dtype=np.float32)
            best = range(24000) if not FIXED else np.argpartition(scores, -5)[-5:].tolist()
            answer = json.dumps([{"id": i, "score": round(float(scores[i]), 5)} for i in best])  # here
            lines.write(answer + "\n")  # here
            lines.flush()
            answered += 1
    child.join()
    return answered


@job(10, "any", ["host.sync", "transfer.small-copies", "transfer.d2h*", "host.launch", "host.python"], 800, CLIENTS, every_kernel("300us"),
     twin=True, note="a histogram of 96 bins is read from the device element by element; fix: as one array")
def w_dj_elements():
    import drjit as dr
    from drjit.cuda import Float, UInt32
    x = dr.arange(Float, 65536) / 65536
    dr.eval(x)
    kept = []
    for i in range(800):
        mark()
        x = dr.sin(x * 3.1 + 0.1 * dr.opaque(Float, i))
        bins = dr.zeros(Float, 96)
        dr.scatter_reduce(dr.ReduceOp.Add, bins, Float(1), UInt32(dr.clip(x * 95, 0, 95)))
        dr.eval(x, bins)
        counts = bins.numpy().tolist() if FIXED else [bins[k] for k in range(96)]  # here
        kept.append(max(counts))
    print("largest", kept[-1])
    return 800


@job(10, "host", ["host.compile", "host.python", "host.launch"], 96, sim=tinygrad_kernels("60us"), twin=True,
     note="the function that trains an epoch makes its TinyJit anew, so 2 of its 8 steps run without it; fix: one TinyJit")
def w_tg_jit_each_epoch():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    layers = [nn.Linear(64, 64) for _ in range(6)] + [nn.Linear(64, 8)]
    optimizer = nn.optim.Adam(nn.state.get_parameters(layers), lr=1e-3)
    images = np.random.default_rng(1).random((8, 32, 64), dtype=np.float32)

    def step(x):
        with Context(TRAINING=1):
            optimizer.zero_grad()
            for layer in layers[:-1]:
                x = layer(x).relu()
            return layers[-1](x).square().mean().backward().realize(*optimizer.schedule_step())

    kept = TinyJit(step)

    def train_epoch():
        jitted = kept if FIXED else TinyJit(step)
        losses = []
        for k in range(8):
            mark()
            losses.append(jitted(Tensor(images[k]).realize()).item())  # here
        return sum(losses) / 8

    for epoch in range(12):
        print("epoch %d loss %.4f" % (epoch, train_epoch()), flush=True)
    return 96


@job(10, "compute", ["compute.*"], 1000, PYCUDA, every_kernel("500us", SIM_CONCURRENT_KERNELS="2"),
     note="no defect: two streams with a half of the work each, small pinned copies, events that each step waits for")
def w_pc_two_halves():
    pc = PyCuda()
    cuda = pc.cuda
    halves = []
    for _ in range(2):
        host = cuda.pagelocked_empty(4096, np.float32)
        host[:] = 1
        halves.append((cuda.Stream(), host, cuda.mem_alloc(1 << 18), cuda.Event(), cuda.pagelocked_empty(1, np.float32)))
    for i in range(1000):
        mark()
        for stream, host, memory, done, loss in halves:
            cuda.memcpy_htod_async(memory, host, stream)
            for _ in range(6):
                pc.axpy(memory, np.float32(2), np.uint32(65536), block=(256, 1, 1), grid=(256, 1), stream=stream)
            cuda.memcpy_dtoh_async(loss, memory, stream)
            done.record(stream)
        for _, _, _, done, _ in halves:
            done.synchronize()
        if i % 250 == 249:
            print("step", i + 1, float(halves[0][4][0] + halves[1][4][0]), flush=True)
    return 1000


if __name__ == "__main__":
    main()
