"""Batch 32: programs with their own calls of the driver, as public repositories have them, on the simulated GPU."""
import ctypes
import math
import multiprocessing
import warnings

import numpy as np
from stranger import (CLIENTS, FIXED, MAIN, NUMBA, PYCUDA, PyCuda, TinyGrad, driver, every_kernel, job, main, mark, quiet_tensorflow,
                      temporary, tinygrad_kernels)

DEVICE = ["compute.dense", "compute.dominant-op", "compute.underfilled"]


@job(32, "host or input", ["host.python", "host.code", "input.unknown", "input.map", "input.generator"], 80, MAIN,
     sim=tinygrad_kernels("120us"), twin=True,
     note="each picture is cut, mirrored and hidden in part by itself, in a loop; fix: all at once, by index")
def s_tg_cifar_cut():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    BATCH, SIZE, PAD = 192, 20, 4
    g = np.random.default_rng(0)
    pictures = g.normal(size=(4096, 3, SIZE + 2 * PAD, SIZE + 2 * PAD)).astype(np.float32)
    labels = g.integers(0, 10, 4096)

    def augment(rows):
        out = np.empty((len(rows), 3, SIZE, SIZE), np.float32)
        for k, r in enumerate(rows):  # here
            a, b = g.integers(0, 2 * PAD + 1, 2)  # here
            x = pictures[r][:, a:a + SIZE, b:b + SIZE]  # here
            if g.random() < 0.5:  # here
                x = x[:, :, ::-1]  # here
            x = (x - x.mean()) / (x.std() + 1e-6)  # here
            c, d = g.integers(0, SIZE - 6, 2)  # here
            out[k] = x  # here
            out[k, :, c:c + 6, d:d + 6] = 0  # here
        return out

    def augment_fast(rows):
        a, b = g.integers(0, 2 * PAD + 1, 2)
        x = pictures[rows][:, :, a:a + SIZE, b:b + SIZE].copy()
        flip = g.random(len(rows)) < 0.5
        x[flip] = x[flip, :, :, ::-1]
        c, d = g.integers(0, SIZE - 6, 2)
        x[:, :, c:c + 6, d:d + 6] = 0
        return x

    class Net:
        def __init__(self):
            self.layers = [nn.Linear(3 * SIZE * SIZE, 128), nn.Linear(128, 128), nn.Linear(128, 10)]

        def __call__(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)

    net = Net()
    opt = nn.optim.SGD(nn.state.get_parameters(net), lr=0.02, momentum=0.9)

    @TinyJit
    def train(x, y):
        with Context(TRAINING=1):
            opt.zero_grad()
            loss = net(x.flatten(1)).sparse_categorical_crossentropy(y).backward()
            return loss.realize(*opt.schedule_step())

    order, losses = g.permutation(4096), []
    for step in range(80):
        mark()
        rows = np.take(order, range(step * BATCH, (step + 1) * BATCH), mode="wrap")
        x = (augment_fast if FIXED else augment)(rows)  # here
        loss = train(Tensor(x).realize(), Tensor(labels[rows].astype(np.int32)).realize())
        losses.append(loss.item())
        if step % 20 == 19:
            print("step %d loss %.3f" % (step, np.mean(losses[-20:])))
    return 80


@job(32, "compute", DEVICE, 300, MAIN, sim=tinygrad_kernels("700us"),
     note="healthy: everything lies on the device, its steps are compiled, the loss is read now and then")
def s_tg_resident_lm():
    t = TinyGrad()
    g = np.random.default_rng(0)
    x = t.on_device(g.normal(size=(256, 64)).astype(np.float32))
    y = t.on_device(g.integers(0, 10, 256).astype(np.int32))
    step, losses = t.jitted(), []
    for i in range(300):
        mark()
        loss = step(x, y)
        if i % 30 == 29:
            losses.append(loss.item())
            print("step %d loss %.3f" % (i, losses[-1]))
    return 300


@job(32, "transfer", ["transfer.d2h", "transfer.d2h-pageable"], 400, NUMBA, sim=every_kernel("900us"), twin=True,
     note="the volume is copied back after each iteration to see how far it moved; fix: after each 25th. Four kernels a step")
def s_nb_ct_converged():
    from numba import cuda
    warnings.filterwarnings("ignore")
    SIDE, ANGLES, ITERATIONS = 128, 24, 400

    @cuda.jit
    def project(volume, rays):
        i = cuda.grid(1)
        if i < rays.size:
            rays[i] = volume[i % volume.size] * 0.5

    @cuda.jit
    def residual(rays, measured):
        i = cuda.grid(1)
        if i < rays.size:
            rays[i] = measured[i] - rays[i]

    @cuda.jit
    def backproject(rays, volume, step):
        i = cuda.grid(1)
        if i < volume.size:
            volume[i] += step * rays[i % rays.size]

    @cuda.jit
    def clamp(volume):
        i = cuda.grid(1)
        if i < volume.size and volume[i] < 0:
            volume[i] = 0

    class Sirt:
        """Simultaneous iterations, until the volume no longer moves."""

        def __init__(self, measured):
            self.volume = cuda.to_device(np.zeros(SIDE ** 3, np.float32))
            self.measured = cuda.to_device(measured)
            self.rays = cuda.device_array_like(measured)
            self.last, self.change, self.history = None, math.inf, []

        def iterate(self, n):
            project[256, 256](self.volume, self.rays)
            residual[256, 256](self.rays, self.measured)
            backproject[256, 256](self.rays, self.volume, 0.1 / (1 + n))
            clamp[256, 256](self.volume)

        def moved(self, n):
            if FIXED and n % 25:
                cuda.synchronize()
                return self.change
            now = self.volume.copy_to_host()  # here
            if self.last is not None:
                self.change = float(np.abs(now[::64] - self.last[::64]).max())
            self.last = now
            return self.change

    sirt = Sirt(np.random.default_rng(0).random(ANGLES * SIDE * SIDE).astype(np.float32))
    for n in range(ITERATIONS):
        mark()
        sirt.iterate(n)
        change = sirt.moved(n)  # here
        if n % 100 == 0:
            sirt.history.append(change)
            print("iteration %d moved %.4f" % (n, change))
    return ITERATIONS


@job(32, "host", ["host.python", "host.code"], 60, NUMBA, sim=every_kernel("4ms"), twin=True,
     note="the states of the random generators are made anew in each step, by the processor; fix: once, the kernel keeps them")
def s_nb_walk_seeds():
    from numba import cuda
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_normal_float32
    warnings.filterwarnings("ignore")
    WALKERS, STEPS = 100_000, 60

    @cuda.jit
    def walk(states, place):
        i = cuda.grid(1)
        if i < place.size:
            place[i] += xoroshiro128p_normal_float32(states, i)

    @cuda.jit
    def absorb(place, alive):
        i = cuda.grid(1)
        if i < place.size and abs(place[i]) > 3:
            alive[i] = 0

    @cuda.jit
    def count(alive, total):
        i = cuda.grid(1)
        if i < alive.size:
            cuda.atomic.add(total, 0, alive[i])

    place = cuda.to_device(np.zeros(WALKERS, np.float32))
    alive = cuda.to_device(np.ones(WALKERS, np.int32))
    states, survivors = create_xoroshiro128p_states(WALKERS, seed=1), []
    blocks = (WALKERS + 255) // 256
    for step in range(STEPS):
        mark()
        if not FIXED:
            states = create_xoroshiro128p_states(WALKERS, seed=step)  # here
        total = cuda.to_device(np.zeros(1, np.int32))
        walk[blocks, 256](states, place)
        absorb[blocks, 256](place, alive)
        count[blocks, 256](alive, total)
        survivors.append(int(total.copy_to_host()[0]))
        if step % 40 == 0:
            print("step %d survivors %d" % (step, survivors[-1]))
    return STEPS


@job(32, "host", ["host.python", "host.code"], 200, PYCUDA, sim=every_kernel("1500us"), twin=True,
     note="inference: the boxes of each frame are thinned out pair by pair in Python; fix: by NumPy. A frame is a step")
def s_pc_frames_nms():
    p = PyCuda()
    cuda = p.cuda
    FRAMES, HEIGHT, WIDTH, BOXES = 200, 180, 320, 160
    g = np.random.default_rng(0)
    video = g.integers(0, 255, (16, HEIGHT, WIDTH, 3), np.uint8)

    class Buffers:
        def __init__(self):
            self.frame = cuda.pagelocked_empty(3 * HEIGHT * WIDTH, np.float32)
            self.result = cuda.pagelocked_empty(BOXES * 6, np.float32)
            self.device = cuda.mem_alloc(self.frame.nbytes)
            self.out = cuda.mem_alloc(self.result.nbytes)
            self.stream = cuda.Stream()

    def preprocess(frame, into):
        np.copyto(into.reshape(3, HEIGHT, WIDTH), frame.transpose(2, 0, 1), casting="unsafe")
        into *= 1 / 255

    def overlap(a, b):
        w = min(a[2], b[2]) - max(a[0], b[0])  # here
        h = min(a[3], b[3]) - max(a[1], b[1])  # here
        if w <= 0 or h <= 0:
            return 0.0
        return w * h / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h)  # here

    def nms(boxes, scores):
        order, keep = sorted(range(len(scores)), key=lambda i: -scores[i]), []
        while order:
            best = order.pop(0)
            keep.append(best)
            order = [i for i in order if overlap(boxes[best], boxes[i]) < 0.45]  # here
        return keep

    def nms_fast(boxes, scores):
        low, high = np.maximum(boxes[:, None, :2], boxes[None, :, :2]), np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        inter = (high - low).clip(0).prod(-1)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
        iou, keep, alive = inter / (area[:, None] + area - inter), [], np.ones(len(boxes), bool)
        for i in np.argsort(-scores):
            if alive[i]:
                keep.append(int(i))
                alive &= iou[i] < 0.45
        return keep

    b, kept = Buffers(), 0
    for n in range(FRAMES):
        mark()
        preprocess(video[n % 16], b.frame)
        cuda.memcpy_htod_async(b.device, b.frame, b.stream)
        for _ in range(4):
            p.axpy(b.device, np.float32(2), np.uint32(16384), block=(256, 1, 1), grid=(64, 1), stream=b.stream)
        cuda.memcpy_dtoh_async(b.result, b.out, b.stream)
        b.stream.synchronize()
        corner = g.random((BOXES, 2)) * 200
        boxes = np.concatenate([corner, corner + 20 + g.random((BOXES, 2)) * 30], 1)
        if FIXED:
            keep = nms_fast(boxes, g.random(BOXES))
        else:
            keep = nms(boxes.tolist(), g.random(BOXES).tolist())  # here
        kept += len(keep)
        if n % 100 == 99:
            print("frame %d: %d boxes" % (n, kept))
    return FRAMES


@job(32, "compute", DEVICE, 400, PYCUDA, sim=every_kernel("2ms"), says=r"before the first GPU call.*\n.*jobs_public_device.py:\d+",
     note="the table is read as text by NumPy at the start, most of the run; its steps only compute. Fix: a binary copy of it")
def s_pc_csv_start():
    ROWS, COLUMNS = 60_000, 24
    path = temporary("table.csv")
    g = np.random.default_rng(0)
    table = g.random((ROWS // 20, COLUMNS)).astype(np.float32)
    text = "\n".join(",".join("%.6f" % v for v in row) for row in table.tolist()) + "\n"
    with open(path, "w") as f:
        f.write("\n".join(["# " + ",".join("f%d" % i for i in range(COLUMNS)), text * 20]))
    if FIXED:
        np.save(path + ".npy", np.tile(table, (20, 1)))
        table = np.load(path + ".npy")
    else:
        table = np.genfromtxt(path, delimiter=",", dtype=np.float32)
    mean, deviation = table.mean(0), table.std(0)
    table = ((table - mean) / deviation).astype(np.float32)
    p = PyCuda()
    rows = p.cuda.mem_alloc(table.nbytes)
    p.cuda.memcpy_htod(rows, np.ascontiguousarray(table))
    best, host = math.inf, np.zeros(1, np.float32)
    for epoch in range(8):
        for _ in range(50):
            mark()
            p.launch(rows, times=3)
            p.wait()
        p.cuda.memcpy_dtoh(host, rows)
        best = min(best, float(host[0]))
        print("epoch %d loss %.3f" % (epoch, best))
    return 400


class Bindings:
    """cuda.bindings: a context, kernels by name, memory."""
    NAMES = (b"gather", b"interact", b"mlp", b"update", b"conv", b"norm")
    PTX = b".version 7.0\n.target sm_50\n.address_size 64\n" + b"".join(
        b".visible .entry k_%s(.param .u64 a, .param .u64 b, .param .u32 n) { ret; }\n" % n for n in NAMES) + b"\0"

    def __init__(self):
        from cuda.bindings import driver as cu
        self.cu = cu
        self.call("cuInit", 0)
        self.context = self.call("cuDevicePrimaryCtxRetain", self.call("cuDeviceGet", 0))
        self.call("cuCtxSetCurrent", self.context)
        self.module = self.call("cuModuleLoadData", self.PTX)
        self.kernels = {n.decode(): self.call("cuModuleGetFunction", self.module, b"k_" + n) for n in self.NAMES}
        self.stream = self.call("cuStreamCreate", 1)

    def call(self, name, *args):
        rc, *out = getattr(self.cu, name)(*args)
        if int(rc):
            raise RuntimeError("%s: %s" % (name, rc))
        return out[0] if out else None

    def memory(self, size):
        return self.call("cuMemAlloc", size)

    def free(self, pointer):
        self.call("cuMemFree", pointer)

    def up(self, to, array):
        self.call("cuMemcpyHtoDAsync", to, array.ctypes.data, array.nbytes, self.stream)

    def launch(self, name, a, b, n, blocks=128):
        args = ((int(a), int(b), n), (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32))
        self.call("cuLaunchKernel", self.kernels[name], blocks, 1, 1, 256, 1, 1, 0, self.stream, args, 0)

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)


@job(32, "transfer or host", ["transfer.small-copies", "transfer.h2d-pageable", "host.launch", "host.python"], 250, CLIENTS,
     sim={"SIM_KERNEL": "*gather* 8us; *interact* 1500us; *mlp* 2500us; *update* 300us", "SIM_COPY_LATENCY": "25us"}, twin=True,
     note="each of 104 embedding tables has its own copy of indices and its own kernel; fix: one of each for all tables")
def s_cb_tables():
    b = Bindings()
    TABLES, BATCH, STEPS = 104, 512, 250
    g = np.random.default_rng(0)
    click = [g.integers(0, 10_000, (BATCH, TABLES)).astype(np.int32) for _ in range(8)]
    tables = [b.memory(10_000 * 16 * 4) for _ in range(TABLES)]
    indices = [b.memory(BATCH * 4) for _ in range(TABLES)]
    every, vectors, out = b.memory(BATCH * TABLES * 4), b.memory(BATCH * TABLES * 16 * 4), b.memory(BATCH * 4)

    class EmbeddingBags:
        def forward(self, batch):
            if FIXED:
                b.up(every, batch)
                b.launch("gather", every, vectors, BATCH * TABLES, blocks=2048)
                return
            for t in range(TABLES):
                column = np.ascontiguousarray(batch[:, t])
                b.up(indices[t], column)  # here
                b.launch("gather", indices[t], tables[t], BATCH)  # here

    bags = EmbeddingBags()
    for step in range(STEPS):
        mark()
        bags.forward(click[step % 8])  # here
        b.launch("interact", vectors, out, BATCH)
        b.launch("mlp", vectors, out, BATCH)
        b.launch("update", vectors, out, BATCH)
        b.wait()
        if step % 50 == 0:
            print("step %d" % step)
    return STEPS


@job(32, "host", ["host.alloc"], 250, CLIENTS,
     sim={"SIM_KERNEL": "*conv* 400us; *norm* 150us; *update* 500us", "SIM_ALLOC_COST": "350us"}, twin=True,
     note="each layer gets its workspace from the driver and gives it back; fix: one workspace, as large as the largest")
def s_cb_workspace():
    b = Bindings()
    LAYERS, STEPS = 12, 250
    g = np.random.default_rng(0)
    sizes = [int(s) for s in g.integers(1 << 20, 8 << 20, LAYERS)]
    weights, activations = b.memory(16 << 20), b.memory(16 << 20)
    pool = b.memory(max(sizes)) if FIXED else None
    picture = np.zeros(200_000, np.float32)

    class Workspace:
        """What a layer needs while it computes."""

        def __init__(self, size):
            self.size = size

        def __enter__(self):
            self.pointer = pool if FIXED else b.memory(self.size)  # here
            return self.pointer

        def __exit__(self, *exc):
            if not FIXED:
                b.free(self.pointer)  # here

    def convolution(layer):
        with Workspace(sizes[layer]) as work:  # here
            b.launch("conv", activations, work, 1 << 16)
            b.launch("norm", work, activations, 1 << 16)

    for step in range(STEPS):
        mark()
        b.up(activations, picture)
        for layer in range(LAYERS):
            convolution(layer)  # here
        b.launch("update", weights, activations, 1 << 16)
        b.wait()
        if step % 100 == 0:
            print("step %d" % step)
    return STEPS


def actor(conn, seed):
    """Plays with the newest weights: a rollout for each message."""
    g = np.random.default_rng(seed)
    state, matrix = g.normal(size=(16, 64)), g.normal(size=(64, 64)) / 8
    while (weights := conn.recv()) is not None:
        rollout = []
        for _ in range(16):
            state = np.tanh(state @ matrix + 0.1 * g.normal(size=state.shape))
            for row in state:
                rollout.append((row @ weights[:64, :4]).argmax())
        conn.send((state.astype(np.float32), np.array(rollout)))


@job(32, "host or input", ["host.wait", "host.python", "input.unknown", "input.remote", "input.generator"], 300, MAIN, twin=True,
     note="a learner sends its weights to two actors and waits for their rollouts, which take as long as its own computing; "
          "fix: it asks for the next rollouts before it learns from these")
def s_dv_actors():
    context = multiprocessing.get_context("fork")
    pipes, STEPS = [context.Pipe() for _ in range(2)], 300
    actors = [context.Process(target=actor, args=(there, i), daemon=True) for i, (_, there) in enumerate(pipes)]
    for a in actors:
        a.start()
    device = driver()
    weights, rewards = np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32), 0.0

    def ask():
        for here, _ in pipes:
            here.send(weights)

    def rollouts():
        return [here.recv() for here, _ in pipes]  # here

    def learn(batch):
        nonlocal rewards
        states = np.concatenate([s for s, _ in batch])
        device.up(states.nbytes)
        for _ in range(2):
            device.train(2.5)
        device.down(4)
        rewards += float(states.mean())

    if FIXED:
        ask()
    for step in range(STEPS):
        mark()
        if not FIXED:
            ask()
        batch = rollouts()  # here
        if FIXED and step < STEPS - 1:
            ask()
        learn(batch)
        weights += 1e-4
        if step % 100 == 99:
            print("step %d reward %.4f" % (step, rewards / step))
    for here, _ in pipes:
        here.send(None)
    for a in actors:
        a.join()
    return STEPS


@job(32, "input", ["input.shuffle", "input.map", "input.decode"], 160, MAIN, twin=True,
     note="pictures are shuffled after they are decoded, so each short epoch begins with 384 of them; fix: names are shuffled")
def s_tf_shuffle_decoded():
    tf, _ = quiet_tensorflow()
    COUNT, BATCH, EPOCHS = 480, 24, 8
    g = np.random.default_rng(0)
    paths = []
    for i in range(24):
        paths.append(temporary("%d.png" % i))
        picture = np.repeat(np.repeat(g.integers(0, 255, (40, 40, 3), np.uint8), 6, 0), 6, 1)
        tf.io.write_file(paths[-1], tf.io.encode_png(picture))

    def load(path, label):
        x = tf.io.decode_png(tf.io.read_file(path), 3)  # here
        x = tf.image.resize(tf.image.random_flip_left_right(x), (96, 96))
        return tf.image.random_brightness(x / 255, 0.2), label

    names = tf.data.Dataset.from_tensor_slices(([paths[i % 24] for i in range(COUNT)], np.arange(COUNT) % 5))
    if FIXED:
        data = names.shuffle(COUNT).map(load)
    else:
        data = names.map(load).shuffle(384)  # here
    data = data.batch(BATCH, drop_remainder=True).prefetch(2)
    device, steps = driver(), 0
    for epoch in range(EPOCHS):
        for x, y in data:  # here
            mark()
            device.up(x.numpy().nbytes)
            device.train(60)
            device.sync()
            steps += 1
        print("epoch %d, %d steps" % (epoch, steps))
    return steps


@job(32, "input", ["input.map", "input.decode"], 120, MAIN, twin=True,
     note="records are parsed one by one, by one thread; fix: whole batches are, ahead of the step")
def s_tf_parse_single():
    tf, _ = quiet_tensorflow()
    BATCH, STEPS = 256, 120
    path = temporary("clicks.tfrecord")
    g = np.random.default_rng(0)
    with tf.io.TFRecordWriter(path) as out:
        for _ in range(2000):
            feature = {"c%d" % i: tf.train.Feature(int64_list=tf.train.Int64List(value=[int(v)]))
                       for i, v in enumerate(g.integers(0, 1000, 26))}
            feature["dense"] = tf.train.Feature(float_list=tf.train.FloatList(value=g.random(13)))
            feature["label"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(g.integers(2))]))
            out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    spec = {"c%d" % i: tf.io.FixedLenFeature([], tf.int64) for i in range(26)}
    spec.update(dense=tf.io.FixedLenFeature([13], tf.float32), label=tf.io.FixedLenFeature([], tf.int64))

    def pack(f):
        sparse = tf.stack([tf.strings.to_hash_bucket_fast(tf.strings.as_string(f["c%d" % i]), 500) for i in range(26)], -1)
        return sparse, tf.math.log1p(f["dense"]), f["label"]

    def one(record):
        return pack(tf.io.parse_single_example(record, spec))  # here

    records = tf.data.TFRecordDataset(path).repeat().shuffle(1000)
    if FIXED:
        data = records.batch(BATCH).map(lambda r: pack(tf.io.parse_example(r, spec)), num_parallel_calls=2).prefetch(2)
    else:
        data = records.map(one).batch(BATCH)  # here
    device = driver()
    it, seen = iter(data), 0
    for step in range(STEPS):
        mark()
        sparse, dense, label = next(it)  # here
        device.up(sparse.numpy().nbytes + dense.numpy().nbytes)
        device.train(12)
        if step % 10 == 0:
            device.down(4)
        device.sync()
        seen += len(label)
        if step % 40 == 39:
            print("step %d, %d rows" % (step, seen))
    return STEPS


if __name__ == "__main__":
    main()
