"""Batch 5: numba's, pycuda's, drjit's and tinygrad's jobs on the simulated GPU, as people write them."""
import sys
import threading
import zlib

import numpy as np
from stranger import (CLIENTS, FIXED, NUMBA, PYCUDA, Numba, PyCuda, TinyGrad, every_kernel, job, kernels, main, mark, ones, thread,
                      tinygrad_kernels)

USUAL = kernels("700us", "1200us", "200us")


@job(5, "compute", ["compute.*"], 120, NUMBA, kernels("2ms", "4ms", "500us"),
     note="no defect: pinned batches on a stream, a progress bar each step, the loss (4 bytes) fetched each tenth step")
def p_nb_healthy():
    nb = Numba()
    stream = nb.cuda.stream()
    pinned = nb.cuda.pinned_array(1 << 14, np.float32)
    x, y = nb.cuda.device_array(1 << 14, np.float32), nb.cuda.to_device(ones(1 << 14))
    rng = np.random.default_rng(1)
    for i in range(120):
        mark()
        rng.random(out=pinned, dtype=np.float32)
        x.copy_to_device(pinned, stream=stream)
        nb.fwd[64, 256, stream](x, y)
        nb.bwd[64, 256, stream](x, y)
        nb.opt[64, 256, stream](x, y)
        stream.synchronize()
        sys.stderr.write("\r%3d/120" % (i + 1))
        if i % 10 == 9:
            print("step %d loss %.3f" % (i + 1, y[:1].copy_to_host()[0]), flush=True)
    return 120


@job(5, "compute", ["compute.*"], 90, CLIENTS, every_kernel("5ms"),
     note="no defect: drjit, one evaluation a step, parameter kept on the device")
def p_dj_healthy():
    import drjit as dr
    from drjit.cuda import Float
    weights, data = dr.zeros(Float, 4096), dr.arange(Float, 4096) / 4096
    dr.eval(weights, data)
    for i in range(90):
        mark()
        weights = weights - (weights - data) * 0.01
        dr.eval(weights)
        dr.sync_thread()
        if i % 10 == 9:
            print("step", i + 1, flush=True)
    return 90


@job(5, "transfer", ["transfer.h2d-pageable"], 80, PYCUDA, every_kernel("600us"), twin=True,
     note="gpuarray.to_gpu of each batch, left as float64: 16 MB of ordinary memory; fix: allocated, but not copied")
def p_pc_float64():
    pc = PyCuda()
    from pycuda import gpuarray
    data = np.random.default_rng(1).random((4, 2 << 20))
    resident = gpuarray.to_gpu(data[0])
    for i in range(80):
        mark()
        x = gpuarray.empty_like(resident) if FIXED else gpuarray.to_gpu(data[i % 4])  # here
        pc.launch(x.gpudata, 2 << 20, 256)
        pc.wait()
    return 80


@job(5, "transfer", ["transfer.d2h*"], 80, NUMBA, USUAL, twin=True,
     note="all predictions (16 MB) come to the host each step, in a new array, for an accuracy over 64 of them; fix: 64 come")
def p_nb_predictions():
    nb = Numba()
    x, y = nb.cuda.to_device(ones(4 << 20)), nb.cuda.to_device(ones(4 << 20))
    right = 0
    for _ in range(80):
        mark()
        nb.three(x, y)
        predictions = (y[:64] if FIXED else y).copy_to_host()  # here
        right += int((predictions[:64] > 0.5).sum())
    return 80


@job(5, "host", ["host.launch"], 70, PYCUDA, every_kernel("3us"),
     note="a recurrent net unrolled in Python: 400 kernels of 3 us a step on two streams")
def p_pc_unrolled():
    pc = PyCuda()
    streams = [pc.cuda.Stream(), pc.cuda.Stream()]
    x = pc.cuda.mem_alloc(65536)
    for _ in range(70):
        mark()
        for k in range(400):
            pc.axpy(x, np.float32(2), np.uint32(256), block=(256, 1, 1), grid=(1, 1), stream=streams[k & 1])  # here
        pc.wait()
    return 70


@job(5, "host", ["host.lock"], 90, NUMBA, USUAL, twin=True,
     note="metrics stand behind a lock that a background thread holds while it compresses them (no GIL); fix: the thread does not run")
def p_nb_registry():
    nb = Numba()
    x, y = nb.cuda.to_device(ones(1 << 14)), nb.cuda.to_device(ones(1 << 14))
    lock, metrics, running = threading.Lock(), [], [True]
    text = np.random.default_rng(1).integers(0, 60, 300000, np.uint8).tobytes()
    idle = threading.Event()

    def export():
        while running[0]:
            with lock:
                zlib.compress(text, 6)
            idle.wait(0.002)

    if not FIXED:
        exporter = thread(export)
    for i in range(90):
        mark()
        nb.step(x, y)
        with lock:  # here
            metrics.append(i)  # here
    running[0] = False
    if not FIXED:
        exporter.join()
    return 90


@job(5, "any", ["input.*", "host.python"], 70, sim=tinygrad_kernels("400us"), twin=True,
     note="jitted; each batch is cut out and flipped image by image and row by row in numpy before it is sent; fix: one batch")
def p_tg_rows():
    tg = TinyGrad()
    train = tg.jitted()
    images = np.random.default_rng(1).random((64, 48, 48)).astype("f")
    y = tg.on_device(np.zeros(48, np.int32))
    rng = np.random.default_rng(2)

    def augmented():
        out = np.empty((48, 64), np.float32)
        for k in range(48):
            image = images[rng.integers(64)]
            top, left = rng.integers(8, size=2)
            rows = [image[top + r, left:left + 40][::-1] * rng.uniform(0.9, 1.1) for r in range(40)]  # here
            out[k] = np.concatenate(rows)[:64]  # here
        return out

    ready = augmented()
    for _ in range(70):
        mark()
        x = ready if FIXED else augmented()  # here
        train(tg.on_device(x), y).item()
    return 70


if __name__ == "__main__":
    main()
