"""Jobs of pycuda's, drjit's and tinygrad's."""
import base64
import json
import multiprocessing
import queue
import random
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from stranger import (CLIENTS, FIXED, PYCUDA, PyCuda, TinyGrad, burn, every_kernel, filled, job, main, mark, ones, temporary, thread,
                      tinygrad_kernels)

TINY = tinygrad_kernels("120us")


# pycuda.

@job(2, "transfer", ["transfer.h2d*"], 60, PYCUDA, every_kernel("800us"),
     note="positions (a constant table of 24 MB) sent each step beside the batch")
def pc_table():
    pc = PyCuda()
    n = 6 << 20
    table = np.arange(n, dtype=np.float32)
    positions = pc.cuda.mem_alloc(table.nbytes)
    x = pc.cuda.mem_alloc(65536)
    for i in range(60):
        pc.cuda.memcpy_htod(x, filled(16384, i))
        pc.cuda.memcpy_htod(positions, table)  # here
        pc.launch(positions, n, 256)
        pc.wait()
    return 60


@job(3, "transfer", ["transfer.h2d*"], 60, PYCUDA, every_kernel("800us"), twin=True, says="same|constant|again",
     note="an attention mask of 16 MB, made once, is sent in each step; batch buffers are fresh")
def pc_mask():
    pc = PyCuda()
    n = 4 << 20
    mask = np.tri(2048, dtype=np.float32).ravel()
    on_device = pc.cuda.mem_alloc(mask.nbytes)
    x = pc.cuda.mem_alloc(65536)
    if FIXED:
        pc.cuda.memcpy_htod(on_device, mask)
    for _ in range(60):
        mark()
        pc.cuda.memcpy_htod(x, np.random.rand(16384).astype("f"))
        if not FIXED:
            pc.cuda.memcpy_htod(on_device, mask)
        pc.launch(on_device, n, 256)
        pc.wait()
    return 60


@job(3, "transfer", ["transfer.h2d*"], 70, PYCUDA, every_kernel("500us"), twin=True, never="constant",
     note="no constant: batches of 8 MB from one staging buffer that is filled anew")
def pc_staging():
    pc = PyCuda()
    n = 2 << 20
    data = np.random.default_rng(1).random((4, n)).astype("f")
    stage = np.empty(n, np.float32)
    x = pc.cuda.mem_alloc(stage.nbytes)
    if FIXED:
        pc.cuda.memcpy_htod(x, stage)
    for i in range(70):
        mark()
        stage[:] = data[i % 4]
        if not FIXED:
            pc.cuda.memcpy_htod(x, stage)
        pc.launch(x, n, 256)
        pc.wait()
    return 70


@job(4, "transfer", ["transfer.d2h*"], 70, PYCUDA, every_kernel("900us"), twin=True,
     note="activations of 12 MB are fetched each step to be averaged; fix: not fetched")
def pc_activations():
    pc = PyCuda()
    n = 3 << 20
    x = pc.cuda.mem_alloc(4 * n)
    batch = np.zeros(16384, np.float32)
    activations = np.empty(n, np.float32)
    pc.cuda.memcpy_dtoh(activations, x)
    for _ in range(70):
        mark()
        pc.cuda.memcpy_htod(x, batch)
        pc.launch(x)
        if FIXED:
            pc.wait()
        else:
            pc.cuda.memcpy_dtoh(activations, x)  # here
    return 70


@job(2, "host", ["host.alloc"], 80, PYCUDA, every_kernel("400us", SIM_ALLOC_COST="350us"),
     note="15 scratch buffers allocated and freed each step")
def pc_alloc():
    pc = PyCuda()
    x = pc.cuda.mem_alloc(65536)
    for i in range(80):
        pc.cuda.memcpy_htod(x, filled(16384, i))
        scratch = [pc.cuda.mem_alloc(100000 + 4096 * k) for k in range(15)]  # here
        pc.launch(x)
        pc.wait()
        for buffer in scratch:
            buffer.free()
    return 80


@job(2, "host", ["host.python", "host.callback"], 80, PYCUDA, every_kernel("700us"),
     note="non-maximum suppression of fetched boxes in Python")
def pc_boxes():
    pc = PyCuda()
    x = pc.cuda.mem_alloc(65536)
    home = np.zeros(16384, np.float32)
    rng = random.Random(2)
    boxes = [(rng.random(), rng.random(), rng.random()) for _ in range(150)]

    def suppress(boxes):
        kept = []
        for b in sorted(boxes):
            if all((b[0] - k[0]) ** 2 + (b[1] - k[1]) ** 2 > 0.0004 for k in kept):  # here
                kept.append(b)  # here
        return kept

    for _ in range(80):
        pc.cuda.memcpy_htod(x, home)
        pc.launch(x)
        pc.cuda.memcpy_dtoh(home, x)
        suppress(boxes)  # here
        suppress(boxes)  # here
    return 80


@job(3, "any", ["host.python", "host.callback"], 70, PYCUDA, every_kernel("600us"), twin=True,
     note="edit distance of fetched strings 8 ms, histogram in Python 2.5 ms; fix: distance")
def pc_distance():
    pc = PyCuda()
    x = pc.cuda.mem_alloc(65536)
    home = np.zeros(16384, np.float32)

    def distance(a, b):
        row = list(range(len(b) + 1))
        for i, ca in enumerate(a):
            last, row[0] = row[0], i + 1
            for j, cb in enumerate(b):
                last, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, last + (ca != cb))  # here
        return row[-1]

    def histogram():
        counts = [0] * 32
        end = time.perf_counter() + 0.0025
        while time.perf_counter() < end:
            for v in range(64):
                counts[v % 32] += 1

    text = "abcdefghij" * 16
    for _ in range(70):
        mark()
        pc.cuda.memcpy_htod(x, home)
        pc.launch(x)
        pc.cuda.memcpy_dtoh(home, x)
        if not FIXED:
            distance(text, text[::-1])
        histogram()
    return 70


@job(4, "input", ["input.*"], 90, PYCUDA, every_kernel("600us"), twin=True,
     note="a loader process pickles batches into a pipe, base64 and all; the loop waits in recv")
def pc_pipe():
    ours, theirs = multiprocessing.Pipe()

    def produce():
        for i in range(90):
            length = 0
            end = time.perf_counter() + (0 if FIXED else 0.009)
            while time.perf_counter() < end:  # here
                length = len(base64.b64encode(bytes(20000)))  # here
            theirs.send(filled(1 << 14, i + length * 0))
        theirs.send(None)

    multiprocessing.get_context("fork").Process(target=produce, daemon=True).start()
    pc = PyCuda()
    x = pc.cuda.mem_alloc(1 << 16)
    while True:
        batch = ours.recv()  # here
        if batch is None:
            break
        mark()
        pc.cuda.memcpy_htod(x, batch)
        pc.launch(x, times=4)
        pc.wait()
    return 90


# drjit.

@job(1, "host", ["host.compile", "host.python", "host.launch"], 40, CLIENTS, every_kernel("500us"),
     note="a Python literal in the kernel changes each step: compiled anew")
def dj_literal():
    import drjit as dr
    from drjit.cuda.ad import Float
    w = Float(ones(1 << 12))
    for i in range(40):
        x = Float(np.arange(1 << 12, dtype=np.float32))
        w = w + x * (i + 0.5) + dr.sin(x * i)
        dr.eval(w)
        dr.sync_thread()
    return 40


@job(1, "any", ["*"], 60, CLIENTS, every_kernel("2ms"), note="gradient descent, loss fetched each step")
def dj_descent():
    import drjit as dr
    from drjit.cuda.ad import Float
    w = Float(filled(1 << 12, 0.5))
    x = Float(np.arange(1 << 12, dtype=np.float32) / 4096)
    for _ in range(60):
        dr.enable_grad(w)
        loss = dr.mean(dr.square(w * x - 3 * x))
        dr.backward(loss)
        w = dr.detach(w) - 0.1 * dr.grad(w)
        dr.eval(w)
        loss.numpy()
    return 60


@job(2, "any", ["input.*", "host.gil"], 70, CLIENTS, every_kernel("1ms"), note="a thread parses JSON lines")
def dj_json_thread():
    import drjit as dr
    from drjit.cuda.ad import Float
    lines = json.dumps([[random.random() for _ in range(64)] for _ in range(160)])
    batches = queue.Queue(3)

    def parse():
        for _ in range(70):
            for _ in range(6):  # here
                rows = json.loads(lines)  # here
            batches.put(np.asarray(rows, np.float32).ravel())

    thread(parse)
    w = Float(filled(10240, 0.5))
    for _ in range(70):
        batch = batches.get()  # here
        x = Float(batch)
        dr.enable_grad(w)
        loss = dr.mean(dr.square(w * x - 3 * x))
        dr.backward(loss)
        w = dr.detach(w) - 0.1 * dr.grad(w)
        dr.eval(w)
        dr.sync_thread()
    return 70


@job(2, "compute", ["compute.*"], 60, CLIENTS, every_kernel("15us"), note="60 tiny kernels a step, each evaluated by itself")
def dj_tiny():
    import drjit as dr
    from drjit.cuda.ad import Float
    w = Float(ones(256))
    for _ in range(60):
        for _ in range(60):  # here
            w = w * 1.0001 + 0.5  # here
            dr.eval(w)  # here
        dr.sync_thread()
    return 60


@job(3, "any", ["host.python", "host.logging"], 60, CLIENTS, every_kernel("900us"), twin=True,
     note="a preview is turned into PPM text in Python in each step (9 ms)")
def dj_preview():
    import drjit as dr
    from drjit.cuda.ad import Float
    w = Float(filled(2048, 0.5))

    def preview(values):
        with open(temporary("p.ppm"), "w") as f:  # here
            f.write("P2\n" + " ".join(str(int(a * 255) & 255) for _ in range(16) for a in values))  # here

    for _ in range(60):
        mark()
        dr.enable_grad(w)
        loss = dr.mean(dr.square(w - 3))
        dr.backward(loss)
        w = dr.detach(w) - 0.1 * dr.grad(w)
        dr.eval(w)
        dr.sync_thread()
        if FIXED:
            w.numpy()
        else:
            preview(w.numpy().tolist())
    return 60


# tinygrad.

@job(1, "host", ["host.python", "host.launch", "host.compile"], 40, sim=TINY, note="no TinyJit: eager schedule each step")
def tg_eager():
    tg = TinyGrad()
    for _ in range(40):
        x = tg.Tensor(np.random.rand(32, 64).astype(np.float32))
        y = tg.Tensor(np.random.randint(0, 10, 32).astype(np.int32))
        tg.step(x, y).item()
    return 40


@job(1, "host", ["host.sync", "compute.*", "host.launch", "host.python"], 80, sim=TINY, note="jitted, item each step")
def tg_jit():
    tg = TinyGrad()
    step = tg.jitted()
    for _ in range(80):
        step(tg.on_device(np.ones((32, 64), np.float32)), tg.on_device(np.zeros(32, np.int32))).item()
    return 80


@job(1, "host", ["host.python", "input.*"], 80, sim=TINY, note="jitted; numpy augmentation in the main thread")
def tg_augment():
    tg = TinyGrad()
    step = tg.jitted()

    def augment(rng):
        x = rng.normal(size=(32, 64)).astype(np.float32)
        for k in range(32):
            x[k] = np.roll(x[k], k)
            burn(0.4)
        return x

    rng = np.random.default_rng(0)
    for _ in range(80):
        x = augment(rng)
        step(tg.on_device(x), tg.on_device(np.zeros(32, np.int32))).item()
    return 80


@job(2, "input", ["input.*"], 60, sim=TINY, note="jitted; batches from a ThreadPoolExecutor whose tasks sleep 25 ms")
def tg_executor():
    tg = TinyGrad()
    step = tg.jitted()

    def load(i):
        time.sleep(0.025)  # here
        return np.full((32, 64), i, np.float32)  # here

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(load, 0)
        for i in range(60):
            batch = coming.result()  # here
            coming = pool.submit(load, i + 1)
            step(tg.on_device(batch), tg.on_device(np.zeros(32, np.int32))).item()
    return 60


@job(2, "host", ["host.sync"], 60, sim=tinygrad_kernels("60us"), note="jitted; twelve metrics fetched one by one each step")
def tg_items():
    tg = TinyGrad()
    step = tg.jitted()
    metrics = [tg.on_device(filled((64,), k)) for k in range(12)]
    total = tg.TinyJit(lambda a: (a * 2).sum().realize())
    for _ in range(60):
        step(tg.on_device(np.ones((32, 64), np.float32)), tg.on_device(np.zeros(32, np.int32)))
        for metric in metrics:  # here
            total(metric).item()  # here
    return 60


@job(3, "compute", ["compute.*"], 70, sim=tinygrad_kernels("1ms"),
     note="tinygrad's mnist example: samples drawn on the device, jitted, accuracy each tenth step")
def tg_mnist():
    from tinygrad.helpers import Context
    tg = TinyGrad()
    images = tg.on_device(np.random.rand(2000, 64).astype("f"))
    labels = tg.on_device(np.zeros(2000, np.int32))
    optimizer = tg.nn.optim.Adam(tg.nn.state.get_parameters(tg.net))

    @tg.TinyJit
    def step():
        with Context(TRAINING=1):
            optimizer.zero_grad()
            samples = tg.Tensor.randint(64, high=2000)
            loss = tg.net(images[samples]).sparse_categorical_crossentropy(labels[samples]).backward()
            return loss.realize(*optimizer.schedule_step())

    @tg.TinyJit
    def accuracy():
        return (tg.net(images[:200]).argmax(axis=1) == labels[:200]).mean().realize()

    for i in range(70):
        loss = step()
        if i % 10 == 9:
            accuracy().item()
        loss.item()
    return 70


@job(4, "any", ["input.*", "host.python"], 60, sim=tinygrad_kernels("300us"),
     note="jitted step; each batch is cropped and flipped by numpy and Python for 10 ms")
def tg_crops():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    first, second = Tensor.uniform(64, 64), Tensor.uniform(64, 8)
    first.requires_grad = second.requires_grad = True
    images = np.random.rand(64, 16, 16).astype("f")
    optimizer = nn.optim.SGD([first, second], 0.01)

    @TinyJit
    def step(x):
        with Context(TRAINING=1):
            optimizer.zero_grad()
            loss = ((x @ first).relu() @ second).square().mean().backward()
            return loss.realize(*optimizer.schedule_step())

    def crops(i):
        rng = random.Random(i)
        out = []
        for k in range(64):
            a, b = rng.randrange(8), rng.randrange(8)
            crop = images[k][a:a + 8, b:b + 8]
            if rng.random() < .5:
                crop = crop[:, ::-1]
            if not FIXED:
                crop = np.array([[float(v) * 1.01 for v in r] for r in crop.tolist() for _ in range(6)], np.float32)[:8]  # here
            out.append(crop.ravel())
        return np.stack(out).astype("f")

    for i in range(60):
        mark()
        step(Tensor(crops(i)).realize()).item()
    return 60


if __name__ == "__main__":
    main()
