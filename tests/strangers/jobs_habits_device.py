"""Batch 11: TensorFlow's jobs and those on the simulated GPU: habits that cost more than half of a step."""
import ctypes
import functools
import os
import queue
import random
import threading
import time
import zlib

import numpy as np
from stranger import (CLIENTS, FIXED, NUMBA, PYCUDA, Numba, PyCuda, driver, every_kernel, filled, job, kernels, main, mark, marks, ones,
                      temporary, tensorflow, thread, tinygrad_kernels)


# TensorFlow.

def dense(keras, inputs, width=64):
    layers = keras.layers
    model = keras.Sequential([keras.Input(inputs), layers.Flatten(), layers.Dense(width, "relu"), layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


@job(11, "input", ["input.*"], 360, twin=True,
     note="a time series: window() and flat_map() make a data set of each of 64 windows of a batch; fix: windows cut by numpy")
def x_tf_window():
    tf, keras = tensorflow()
    series = np.sin(np.arange(60 * 64 + 31) / 9).astype(np.float32)
    if FIXED:
        windows = tf.data.Dataset.from_tensor_slices(np.lib.stride_tricks.sliding_window_view(series, 32))
    else:
        windows = tf.data.Dataset.from_tensor_slices(series).window(32, shift=1, drop_remainder=True)
        windows = windows.flat_map(lambda w: w.batch(32))  # here
    data = windows.batch(64).map(lambda w: (w[:, :-1], w[:, -1:])).prefetch(1)
    dense(keras, (31,)).fit(data, epochs=6, verbose=0, callbacks=[marks(keras)])  # here
    return 360


@job(11, "input", ["input.map"], 240, twin=True,
     note="cache() stands before the map that resizes and colours, so each of eight epochs does all of it again; fix: behind the map")
def x_tf_early_cache():
    tf, keras = tensorflow()
    images = np.random.default_rng(1).integers(0, 256, (30 * 8, 96, 96, 3), dtype=np.uint8)

    def prepare(image):
        image = tf.image.resize(tf.cast(image, tf.float32) / 255, (224, 224), "bicubic")
        image = tf.image.adjust_saturation(tf.image.adjust_hue(image, 0.1), 1.2)
        return tf.image.resize(image, (24, 24))

    data = tf.data.Dataset.from_tensor_slices(images)
    data = data.map(prepare).cache() if FIXED else data.cache().map(prepare)  # here
    data = data.shuffle(240).batch(8).map(lambda x: (x, tf.ones((8, 1)))).prefetch(2)
    dense(keras, (24, 24, 3)).fit(data, epochs=8, verbose=0, callbacks=[marks(keras)])  # here
    return 240


@job(11, "input", ["input.map", "input.batch"], 240, twin=True,
     note="rows are scaled and joined one by one in a map, and then batched by 512; fix: batched first, so that a map takes them at once")
def x_tf_rows():
    tf, keras = tensorflow()
    rng = np.random.default_rng(1)
    table = {"a": rng.random((40 * 512, 8), dtype=np.float32), "b": rng.random((40 * 512, 4), dtype=np.float32)}
    model = keras.Sequential([keras.Input((24,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)

    def features(row):
        a = (row["a"] - 0.5) / 0.29
        return tf.concat([a, tf.square(a), row["b"], tf.math.log1p(row["b"])], -1)

    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    rows = tf.data.Dataset.from_tensor_slices(table).shuffle(2048)
    data = rows.batch(512).map(features) if FIXED else rows.map(features).batch(512)  # here
    for epoch in range(6):
        for x in data.prefetch(1):  # here
            mark()
            loss = train_step(x)
        print("epoch", epoch, float(loss), flush=True)
    return 240


@job(11, "input", ["input.map", "input.decode", "input.filter"], 240, twin=True,
     note="JPEGs of ten classes are decoded and resized, and then a filter keeps those of one; fix: filtered by label first")
def x_tf_filtered():
    tf, keras = tensorflow()
    rng = np.random.default_rng(1)
    jpegs = [tf.io.encode_jpeg(rng.integers(0, 256, (128, 128, 3), dtype=np.uint8)).numpy() for _ in range(20)]
    path = temporary("images.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(30 * 8 * 10):
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpegs[i % 20]])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 10]))})).SerializeToString())

    def parse(record):
        found = tf.io.parse_single_example(record, {"image": tf.io.FixedLenFeature([], tf.string),
                                                    "label": tf.io.FixedLenFeature([], tf.int64)})
        return found["image"], found["label"]

    def decode(image, label):
        return tf.image.resize(tf.io.decode_jpeg(image, 3), (32, 32)) / 255, tf.cast(label, tf.float32)

    def wanted(image, label):
        return label == 0

    data = tf.data.TFRecordDataset(path).map(parse)
    data = data.filter(wanted).map(decode) if FIXED else data.map(decode).filter(wanted)  # here
    dense(keras, (32, 32, 3)).fit(data.batch(8).prefetch(1), epochs=8, verbose=0, callbacks=[marks(keras)])  # here
    return 240


@job(11, "host", ["host.compile"], 144, twin=True,
     note="to lower the learning rate, the model is compiled anew before each of 12 epochs, so it is traced again; fix: the rate is assigned")
def x_tf_new_rate():
    tf, keras = tensorflow()
    model = keras.Sequential([keras.Input((32,)), *(keras.layers.Dense(48, "relu") for _ in range(6)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    data = tf.data.Dataset.from_tensor_slices((tf.random.normal((12 * 32, 32)), tf.ones((12 * 32, 1)))).batch(32).prefetch(1)
    for epoch in range(12):
        rate = 1e-3 * 0.9 ** epoch
        if FIXED:
            model.optimizer.learning_rate.assign(rate)
        else:
            model.compile(keras.optimizers.Adam(rate), "mse")  # here
        history = model.fit(data, epochs=1, verbose=0, callbacks=[marks(keras)])  # here
        print("epoch %d: %.3f" % (epoch, history.history["loss"][0]), flush=True)
    return 144


@job(11, "compute", ["compute.*"], 200,
     note="no defect: texts in buckets by length, padded to three lengths, convolutions over them, five epochs")
def x_tf_buckets():
    tf, keras = tensorflow()
    rng = np.random.default_rng(1)
    texts = tf.ragged.constant([rng.integers(1, 500, int(n)).tolist() for n in np.repeat([40, 90, 120], 13 * 16 + 5)], dtype=tf.int32)
    layers = keras.layers
    model = keras.Sequential([layers.Embedding(500, 48), layers.Conv1D(96, 5, activation="relu"), layers.Conv1D(96, 5, activation="relu"),
                              layers.GlobalMaxPooling1D(), layers.Dense(1)])
    model.compile("adam", "mse")
    data = tf.data.Dataset.from_tensor_slices(texts).map(lambda t: tf.ensure_shape(t, (None,))).shuffle(700)
    data = data.bucket_by_sequence_length(tf.size, [64, 100, 128], [16] * 4, pad_to_bucket_boundary=True, drop_remainder=True)
    data = data.map(lambda t: (t, tf.ones((16, 1)))).repeat().prefetch(2)
    model.fit(data, epochs=5, steps_per_epoch=40, verbose=0, callbacks=[marks(keras)])
    return 200


# numba.

@job(11, "any", ["transfer.small-copies", "transfer.d2h*", "transfer.h2d*", "host.sync", "host.python", "host.launch"], 800, NUMBA,
     every_kernel("15us"), twin=True,
     note="a grid in 12 blocks, whose edges go to their neighbours by way of the host after each sweep; fix: by a kernel")
def x_nb_edges():
    from numba import cuda

    @cuda.jit
    def sweep(a):
        i = cuda.grid(1)
        if 0 < i < a.shape[1] - 1:
            for row in range(1, a.shape[0] - 1):
                a[row, i] = 0.25 * (a[row - 1, i] + a[row + 1, i] + a[row, i - 1] + a[row, i + 1])

    @cuda.jit
    def exchange(upper, lower):
        i = cuda.grid(1)
        if i < upper.shape[1]:
            upper[-1, i] = lower[1, i]
            lower[0, i] = upper[-2, i]

    blocks = [cuda.to_device(np.ones((34, 512), np.float32)) for _ in range(12)]
    for i in range(800):
        mark()
        for block in blocks:
            sweep[2, 256](block)
        for upper, lower in zip(blocks, blocks[1:]):
            if FIXED:
                exchange[2, 256](upper, lower)
            else:
                upper[-1].copy_to_device(lower[1].copy_to_host())  # here
                lower[0].copy_to_device(upper[-2].copy_to_host())  # here
        cuda.synchronize()
        if i % 200 == 199:
            print("sweep", i + 1, blocks[5][3, :4].copy_to_host(), flush=True)
    return 800


@job(11, "host", ["host.python", "host.code"], 400, NUMBA, every_kernel("900us"), twin=True,
     note="the threshold of each frame is the median of all its 1.5 million values, taken by numpy; fix: the median of 4,096 of them")
def x_nb_median():
    from numba import cuda

    @cuda.jit
    def blur(x, y):
        i = cuda.grid(1)
        if 0 < i < x.size - 1:
            y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3

    @cuda.jit
    def cut(x, limit):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = x[i] - limit if x[i] > limit else 0

    n = 1500000
    x, y = cuda.to_device(np.random.default_rng(1).random(n, dtype=np.float32)), cuda.device_array(n, np.float32)
    host, limits = cuda.pinned_array(n, np.float32), []
    part = host[:4096] if FIXED else host
    for i in range(400):
        mark()
        blur[5860, 256](x, y)
        y[:part.size].copy_to_host(part)
        limits.append(float(np.median(part)))  # here
        cut[5860, 256](y, limits[-1])
        cuda.synchronize()
    print("mean of the limits", sum(limits) / 400)
    return 400


def escape_times(n):
    """How long points take to escape, for a table that the kernels read."""
    table = np.zeros((n, n), np.float32)
    for row in range(n):
        for column in range(n):
            z, c, k = 0j, complex(3 * column / n - 2, 2 * row / n - 1), 0
            while abs(z) < 2 and k < 60:
                z, k = z * z + c, k + 1
            table[row, column] = k
    return table


@job(11, "compute", ["compute.*"], 300, NUMBA, kernels("1500us", "2000us", "300us"), says="escape_times",
     note="a long start: a table is computed by Python for longer than the 300 steps, which have no defect")
def x_nb_table():
    table = escape_times(1000)
    nb = Numba()
    x, y = nb.cuda.to_device(table.ravel()), nb.cuda.to_device(np.ones(16384, np.float32))
    batches, losses = nb.cuda.pinned_array((8, 16384), np.float32), []
    batches[:] = 0.5
    for i in range(300):
        mark()
        y.copy_to_device(batches[i % 8])
        nb.three(x[:16384], y)
        if i % 30 == 29:
            losses.append(float(y[:1].copy_to_host()[0]))
        nb.cuda.synchronize()
    print(losses[-1])
    return 300


@job(11, "any", ["input.*", "host.python", "host.code"], 800, NUMBA, every_kernel("400us"), twin=True,
     note="tiles are inflated through lru_cache(maxsize=16), but 20 are taken in turn, so that none is found there; fix: room for 32")
def x_nb_lru():
    from numba import cuda
    rng = np.random.default_rng(1)
    packed = [zlib.compress(rng.integers(0, 8, 1 << 20, dtype=np.uint8).tobytes(), 1) for _ in range(20)]

    @functools.lru_cache(maxsize=32 if FIXED else 16)
    def tile(k):
        return np.frombuffer(zlib.decompress(packed[k]), np.uint8)  # here

    @cuda.jit
    def add(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] += x[i]

    y = cuda.to_device(ones(1 << 18))
    for i in range(800):
        mark()
        pixels = tile(i % 20)[:1 << 18]  # here
        x = cuda.to_device(pixels)
        add[1024, 256](x, y)
        add[1024, 256](x, y)
        cuda.synchronize()
    return 800


@job(11, "any", ["input.*", "host.python", "host.wait"], 600, NUMBA, every_kernel("500us"), twin=True,
     note="for each batch the folder of 1,500 files is listed and sorted by time, to find the next one; fix: listed once")
def x_nb_listing():
    from numba import cuda
    folder = temporary("samples")
    os.makedirs(folder, exist_ok=True)
    for k in range(1500):
        np.save(os.path.join(folder, "%04d.npy" % k), filled(2048, k))

    def listed():
        return sorted(os.listdir(folder), key=lambda name: (os.stat(os.path.join(folder, name)).st_mtime // 3600, name))  # here

    @cuda.jit
    def add(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] += x[i]

    names = listed() if FIXED else None
    y = cuda.to_device(ones(2048))
    for i in range(600):
        name = names[i] if FIXED else listed()[i]  # here
        mark()
        x = cuda.to_device(np.load(os.path.join(folder, name)))
        add[8, 256](x, y)
        add[8, 256](x, y)
        cuda.synchronize()
    print("sum", y[:1].copy_to_host()[0])
    return 600


# pycuda, drjit, tinygrad.

@job(11, "any", ["host.wait", "host.lock", "host.sleep", "input.*"], 250, PYCUDA, every_kernel("600us"), twin=True,
     note="a server waits up to 15 ms for a batch of eight requests, but only two clients ever ask; fix: up to 0.2 ms")
def x_pc_batcher():
    requests = queue.Queue()
    pc = PyCuda()
    on_device = pc.cuda.mem_alloc(1 << 16)
    longest = 0.0002 if FIXED else 0.015

    def client(seed):
        rng = random.Random(seed)
        while True:
            done = threading.Event()
            requests.put((np.full(512, rng.random(), np.float32), done))
            done.wait()
            time.sleep(rng.uniform(0, 0.001))

    for seed in range(2):
        thread(client, seed)
    served = 0
    for _ in range(250):
        batch = [requests.get()]
        mark()
        until = time.monotonic() + longest
        while len(batch) < 8:
            try:
                batch.append(requests.get(timeout=max(0.0, until - time.monotonic())))  # here
            except queue.Empty:
                break
        rows = np.zeros((8, 512), np.float32)
        for k, (row, _) in enumerate(batch):
            rows[k] = row
        pc.cuda.memcpy_htod(on_device, rows)
        pc.launch(on_device)
        pc.cuda.memcpy_dtoh(rows, on_device)
        for _, done in batch:
            done.set()
        served += len(batch)
    print("served", served, "in 250 batches")
    return 250


@job(11, "transfer", ["transfer.h2d*", "transfer.d2h*"], 320, PYCUDA, every_kernel("1200us"), twin=True,
     note="slices of a volume go there, are filtered, and come back, 16 MB each way, on one stream; fix: three streams and buffers")
def x_pc_slices():
    pc = PyCuda()
    cuda, n = pc.cuda, 1 << 22
    slots = [(cuda.pagelocked_empty(n, np.float32), cuda.mem_alloc(4 * n), cuda.pagelocked_empty(n, np.float32), cuda.Event(), cuda.Event(),
              cuda.Event()) for _ in range(3)]
    for slot in slots:
        slot[0][:] = 1
    up, work, down = (cuda.Stream() for _ in range(3)) if FIXED else 3 * (cuda.Stream(),)
    total = 0.0
    for i in range(320):
        mark()
        there, memory, back, arrived, done, home = slots[i % 3]
        home.synchronize()
        total += float(back[0])
        there[0] = i
        cuda.memcpy_htod_async(memory, there, up)  # here
        arrived.record(up)
        work.wait_for_event(arrived)
        for _ in range(3):
            pc.axpy(memory, np.float32(2), np.uint32(n), block=(256, 1, 1), grid=(4096, 1), stream=work)
        done.record(work)
        down.wait_for_event(done)
        cuda.memcpy_dtoh_async(back, memory, down)  # here
        home.record(down)
        if not FIXED:
            home.synchronize()  # here
    cuda.Context.synchronize()
    print("total", total)
    return 320


@job(11, "any", ["host.python", "host.code", "input.*"], 450, CLIENTS, every_kernel("700us"), twin=True,
     note="the noise of each frame, 700,000 normal numbers, is drawn by numpy and sent; fix: drawn once, and shifted on the device")
def x_dj_noise():
    import drjit as dr
    from drjit.cuda import Float, UInt32
    n, rng = 700000, np.random.default_rng(1)
    film = dr.zeros(Float, n)
    kept = Float(rng.normal(size=n).astype(np.float32))
    dr.eval(film, kept)
    for i in range(450):
        mark()
        if FIXED:
            noise = dr.gather(Float, kept, (dr.arange(UInt32, n) + dr.opaque(UInt32, 37 * i)) % n)
        else:
            noise = Float(rng.normal(size=n).astype(np.float32))  # here
        film = dr.fma(film, 0.9, dr.sin(noise) * 0.1)
        dr.eval(film)
        dr.sync_thread()
        if i % 50 == 49:
            print("frame", i + 1, dr.slice(film, 0), flush=True)
    return 450


@job(11, "any", ["host.sync", "transfer.small-copies", "transfer.d2h*", "host.python", "host.launch"], 250,
     sim=tinygrad_kernels("20us"), twin=True,
     note="after each step every parameter comes to numpy, to be looked through for NaN; fix: the loss alone is looked at")
def x_tg_nan():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    layers = [nn.Linear(48, 48) for _ in range(12)] + [nn.Linear(48, 4)]
    params = nn.state.get_parameters(layers)
    optimizer = nn.optim.SGD(params, lr=1e-3)
    batches = np.random.default_rng(1).random((8, 32, 48), dtype=np.float32)

    @TinyJit
    def step(x):
        with Context(TRAINING=1):
            optimizer.zero_grad()
            for layer in layers[:-1]:
                x = layer(x).relu()
            return layers[-1](x).square().mean().backward().realize(*optimizer.schedule_step())

    for i in range(250):
        mark()
        loss = step(Tensor(batches[i % 8]).realize()).item()
        if loss != loss or not FIXED and any(np.isnan(p.numpy()).any() for p in params):  # here
            raise SystemExit("NaN in step %d" % i)
        if i % 50 == 49:
            print("step %d loss %.4f" % (i + 1, loss), flush=True)
    return 250


# The driver's calls.

@job(11, "compute", ["compute.*"], 300, twin=True, says="eval",
     note="a thread evaluates all the time on a stream of its own, and its 6 ms kernels go before training's; fix: it does not run")
def x_dv_evaluator():
    d = driver()
    stop = threading.Event()

    def evaluate():
        d.call("cuCtxSetCurrent", d.context)
        own = d.new("cuStreamCreate", 1)
        function = d.new("cuModuleGetFunction", d.module, b"spin_eval")
        ns = ctypes.c_uint64(6000000)
        args = (ctypes.c_void_p * 1)(ctypes.addressof(ns))
        while not stop.is_set():
            for _ in range(4):
                d.call("cuLaunchKernel", function, 64, 1, 1, 128, 1, 1, 0, own, args, None)
            d.call("cuStreamSynchronize", own)

    evaluating = None if FIXED else thread(evaluate)
    for i in range(300):
        mark()
        d.up(20000)
        d.train(1.5)
        d.sync()
        if i % 100 == 99:
            print("step", i + 1, flush=True)
    stop.set()
    if evaluating:
        evaluating.join()
    return 300


@job(11, "transfer", ["transfer.d2h*"], 240, twin=True,
     note="each step fetches the whole path so far, which grows by 200 kB a step, though only its end is looked at; fix: the end")
def x_dv_path():
    d = driver(64)
    for i in range(240):
        mark()
        d.up(8000)
        d.run(0.5, "forward")
        d.run(0.8, "update")
        d.down(200000 if FIXED else 200000 * (i + 1))  # here
        if i % 60 == 59:
            print("length", i + 1, d.host.raw[0], flush=True)
    return 240


if __name__ == "__main__":
    main()
