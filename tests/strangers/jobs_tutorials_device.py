"""Batch 8: jobs on the simulated GPU, in the manner of the frameworks' own example scripts."""
import asyncio
import hashlib
import json
import os
import time

import numpy as np
from stranger import CLIENTS, FIXED, NUMBA, PYCUDA, PyCuda, driver, every_kernel, job, kernels, main, mark, temporary, tinygrad_kernels


# tinygrad.

@job(8, "transfer", ["transfer.d2h*", "transfer.h2d*", "transfer.fallback"], 160, sim=tinygrad_kernels("150us"), twin=True,
     note="diffusion: the latents of 16 MB come home after each of 40 steps a picture, get noise in numpy and go back; fix: they stay")
def v_tg_diffusion():
    from tinygrad import Tensor, TinyJit
    mix = Tensor.rand(64, 64).realize()

    @TinyJit
    def denoise(latents, alpha):
        guess = (latents.reshape(-1, 64) @ mix).reshape(latents.shape)
        return (latents * alpha - guess * 0.01).realize()

    noise = np.random.default_rng(1).random((16, 4, 256, 256), dtype=np.float32)
    for picture in range(4):
        latents = Tensor(noise).realize()
        for k in range(40):
            mark()
            alpha = Tensor([1 - k / 80]).realize()
            if FIXED:
                latents = denoise(latents, alpha).clone().realize()
                alpha.numpy()
                continue
            home = denoise(latents, alpha).numpy()  # here
            home[k % 16] += noise[k % 16]
            latents = Tensor(home).realize()  # here
        print("picture", picture, flush=True)
    return 160


@job(8, "host", ["host.checkpoint"], 160, sim=tinygrad_kernels("100us"), twin=True,
     note="each fourth step weights and moments, 18 MB, are written as safetensors are, read again and hashed; fix: not written")
def v_tg_safetensors():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    layers = [nn.Linear(64, 1024), nn.Linear(1024, 1024), nn.Linear(1024, 1024), nn.Linear(1024, 64)]
    optimizer = nn.optim.SGD(nn.state.get_parameters(layers), lr=0.01, momentum=0.9)
    batch = Tensor.rand(32, 64).realize()

    @TinyJit
    def step(x):
        with Context(TRAINING=1):
            optimizer.zero_grad()
            y = x
            for layer in layers:
                y = layer(y).relu()
            return (y - x).square().mean().backward().realize(*optimizer.schedule_step())

    def save(path):
        state = nn.state.get_state_dict({"layers": layers, "optimizer": optimizer})
        arrays = {name: t.numpy() for name, t in state.items()}  # here
        header, at = {}, 0
        for name, a in arrays.items():
            header[name] = {"dtype": "F32", "shape": a.shape, "data_offsets": [at, at + a.nbytes]}
            at += a.nbytes
        head = json.dumps(header).encode()
        with open(path, "wb") as f:  # here
            f.write(len(head).to_bytes(8, "little") + head)
            for a in arrays.values():  # here
                f.write(a.tobytes())  # here
            f.flush()  # here
            os.fsync(f.fileno())  # here
        with open(path, "rb") as f:  # here
            digest = hashlib.sha256(f.read()).hexdigest()  # here
        with open(path + ".sha256", "w") as f:
            f.write(digest)

    for i in range(160):
        mark()
        step(batch).item()
        if i % 4 == 3 and not FIXED:
            save(temporary("model-%d.safetensors" % (i // 4 % 2)))  # here
    return 160


@job(8, "transfer", ["transfer.d2h*", "transfer.h2d*", "transfer.fallback"], 120, sim=tinygrad_kernels("100us"), twin=True,
     note="the gradients (17 MB) are clipped on the host: fetched, their norm taken by numpy, scaled and sent back; fix: on the device")
def v_tg_clipped():
    from tinygrad import Tensor, TinyJit
    weights = [Tensor.rand(1024, 2048).realize(), Tensor.rand(2048, 1024).realize()]
    batch = Tensor.rand(16, 1024).realize()

    @TinyJit
    def gradients(x):
        y = (x @ weights[0]).relu() @ weights[1]
        grads = (y - x).square().mean().gradient(*weights)
        return [g.contiguous().realize() for g in grads]

    @TinyJit
    def update(first, second):
        for w, g in zip(weights, (first, second)):
            w.assign(w - 0.01 * g).realize()

    @TinyJit
    def norm(first, second):
        return (first.square().sum() + second.square().sum()).sqrt().realize()

    for i in range(120):
        mark()
        grads = gradients(batch)
        if FIXED:
            norm(*grads).item()
            update(*grads)
            continue
        home = [g.numpy() for g in grads]  # here
        length = float(np.sqrt(sum(float(np.vdot(g, g)) for g in home)))
        scale = np.float32(min(1.0, 1.0 / (length + 1e-6)))
        update(*(Tensor(g * scale).realize() for g in home))  # here
    return 120


# numba.

@job(8, "input", ["input.*"], 130, NUMBA, kernels("900us", "1500us", "200us"), twin=True,
     note="asyncio: each batch is awaited from an object store that answers in 15 ms, one after the other; fix: answers at once")
def v_nb_async():
    from numba import cuda

    @cuda.jit
    def fwd(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] += x[i]

    @cuda.jit
    def bwd(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] -= x[i]

    store = np.random.default_rng(1).random((8, 8192), dtype=np.float32)
    y = cuda.to_device(np.zeros(8192, np.float32))

    async def fetch(key):
        await asyncio.sleep(0 if FIXED else 0.015)  # here
        return store[key % 8]

    async def train():
        for key in range(130):
            mark()
            batch = await fetch(key)  # here
            x = cuda.to_device(batch)
            fwd[32, 256](x, y)
            bwd[32, 256](x, y)
            cuda.synchronize()

    asyncio.run(train())  # here
    return 130


@job(8, "any", ["host.sync", "transfer.small-copies", "transfer.d2h*"], 300, NUMBA, every_kernel("15us"), twin=True,
     note="an implicit solver: 60 sweeps a time step, and the residual is fetched after each to be looked at; fix: after the last")
def v_nb_residual():
    from numba import cuda

    @cuda.jit
    def sweep(u, f, residual):
        i = cuda.grid(1)
        if 0 < i < u.size - 1:
            new = 0.5 * (u[i - 1] + u[i + 1] - f[i])
            residual[0] = abs(new - u[i])
            u[i] = new

    u, f = cuda.to_device(np.zeros(16384, np.float32)), cuda.to_device(np.ones(16384, np.float32))
    residual = cuda.device_array(1, np.float32)
    launch = sweep[64, 256]
    history = []
    for step in range(300):
        mark()
        for k in range(60):
            launch(u, f, residual)
            if not FIXED or k == 59:
                r = residual.copy_to_host()[0]  # here
                if r < -1:
                    break
        history.append(r)
    print("residual", history[-1])
    return 300


@job(8, "compute", ["compute.*"], 12, NUMBA, every_kernel("5ms"),
     note="no defect, and few steps: twelve of a large model, 50 kernels each, the loss printed behind each")
def v_nb_twelve():
    from numba import cuda

    @cuda.jit
    def layer(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * 0.5

    @cuda.jit
    def gradient(x, y):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += 0.1 * y[i]

    @cuda.jit
    def adam(x, y):
        i = cuda.grid(1)
        if i < x.size:
            x[i] -= 0.01 * y[i]

    a, b = (cuda.to_device(np.ones(1 << 16, np.float32)) for _ in range(2))
    tokens = cuda.pinned_array(1 << 16, np.float32)
    for i in range(12):
        mark()
        tokens[:] = i
        a.copy_to_device(tokens)
        for _ in range(16):
            layer[256, 256](a, b)
        for _ in range(32):
            gradient[256, 256](a, b)
        for _ in range(2):
            adam[256, 256](a, b)
        print("step %d loss %.2f" % (i, b[:1].copy_to_host()[0]), flush=True)
    return 12


# pycuda.

@job(8, "host", ["host.sleep"], 180, PYCUDA, every_kernel("600us"), twin=True,
     note="a simulation keeps to 60 frames a second though nobody looks at it; fix: it does not wait")
def v_pc_frames():
    pc = PyCuda()
    field = pc.cuda.mem_alloc(1 << 20)
    probe = np.zeros(16, np.float32)

    class Pace:
        def __init__(self, rate):
            self.period, self.next = 1.0 / rate, time.perf_counter()

        def tick(self):
            self.next = max(self.next + self.period, time.perf_counter() - self.period)
            left = self.next - time.perf_counter()
            if left > 0 and not FIXED:
                time.sleep(left)  # here

    pace = Pace(60)
    for frame in range(180):
        mark()
        for _ in range(3):
            pc.axpy(field, np.float32(0.1), np.uint32(1 << 18), block=(256, 1, 1), grid=(1024, 1))
        pc.cuda.memcpy_dtoh(probe, field)
        if frame % 60 == 59:
            print("frame %d: %.3f" % (frame + 1, probe.mean()), flush=True)
        pace.tick()  # here
    return 180


@job(8, "transfer", ["transfer.h2d-pageable"], 600, PYCUDA, every_kernel("500us"),
     note="each of 30 epochs begins with sending all of the data, 96 MB, again; then 20 short steps on it; fix: sent once")
def v_pc_epochs():
    pc = PyCuda()
    data = np.random.default_rng(1).random(24 << 20, dtype=np.float32)
    on_device = pc.cuda.mem_alloc(data.nbytes)
    pc.cuda.memcpy_htod(on_device, data)
    loss = np.zeros(1, np.float32)
    for epoch in range(30):
        if not FIXED:
            pc.cuda.memcpy_htod(on_device, data)  # here
        for k in range(20):
            mark()
            batch = int(on_device) + k * (4 << 20)
            for _ in range(2):
                pc.axpy(np.uintp(batch), np.float32(2), np.uint32(1 << 20), block=(256, 1, 1), grid=(4096, 1))
            pc.wait()
        pc.cuda.memcpy_dtoh(loss, on_device)
        print("epoch %d loss %.3f" % (epoch, loss[0]), flush=True)
    return 600


# drjit.

@job(8, "host", ["host.launch", "host.python"], 600, CLIENTS, every_kernel("4us"),
     note="128 samples a pixel are taken one by one, each pass evaluated for itself; fix: four passes a frame")
def v_dj_passes():
    import drjit as dr
    from drjit.cuda import Float, UInt32
    pixel = dr.arange(UInt32, 16384)
    x = Float(pixel) / 16384
    dr.eval(pixel, x)

    def sample(seed):
        state = pixel * 747796405 + seed
        jitter = Float((state >> 9) & 0xffff) / 65536
        return dr.sqrt(x * x + jitter * 0.01)

    for frame in range(600):
        mark()
        film = dr.zeros(Float, 16384)
        for k in range(4 if FIXED else 128):
            seed = dr.opaque(UInt32, frame * 128 + k)
            film = film + sample(seed)
            dr.eval(film)  # here
        dr.sync_thread()
    print("mean %.3f" % (film.numpy().mean() / 128))
    return 600


@job(8, "host", ["host.compile", "host.python", "host.launch"], 200, CLIENTS, every_kernel("300us"), twin=True,
     note="the parameters are never evaluated, so that each step's kernel holds all steps before it; fix: evaluated in each step")
def v_dj_history():
    import drjit as dr
    from drjit.cuda.ad import Float
    target = Float(np.linspace(0, 1, 4096, dtype=np.float32))
    weights = [Float(np.full(4096, 0.1 * k, np.float32)) for k in range(8)]
    dr.eval(target, *weights)
    losses = []
    for i in range(200):
        mark()
        dr.enable_grad(*weights)
        x = target
        for w in weights:
            x = dr.sin(x * w + 0.1)
        loss = dr.mean(dr.square(x - target))
        dr.backward(loss)
        weights = [dr.detach(w) - 0.1 * dr.grad(w) for w in weights]
        if FIXED:
            dr.eval(*weights)
        losses.append(float(loss[0]))  # here
    print("loss %.4f" % losses[-1])
    return 200


# The driver alone.

@job(8, "host", ["host.checkpoint"], 200,
     note="each twentieth step 64 MB of weights are fetched, hashed, written with fsync and renamed, which takes longer than the steps")
def v_dv_twentieth():
    d = driver(64)
    path = temporary("weights.bin")

    def save(step):
        d.down(d.bytes)  # here
        whole = memoryview(d.host)
        digest = hashlib.sha256(whole).hexdigest()  # here
        with open(path + ".part", "wb") as f:  # here
            f.write(whole)  # here
            f.flush()  # here
            os.fsync(f.fileno())  # here
        os.replace(path + ".part", path)  # here
        with open(path + ".json", "w") as f:
            f.write('{"step": %d, "sha256": "%s"}' % (step, digest))

    for i in range(200):
        mark()
        d.up(30000)
        d.train(2.0)
        d.sync()
        if i % 20 == 19 and not FIXED:
            save(i + 1)  # here
    return 200


if __name__ == "__main__":
    main()
