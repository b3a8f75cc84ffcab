"""Batch 14: tinygrad's jobs, and tf.data in front of the driver."""
import ctypes
import os

import numpy as np
from stranger import FIXED, MAIN, job, main, mark, quiet_tensorflow, temporary, tinygrad_kernels


@job(14, "host", ["host.checkpoint"], 600, MAIN, tinygrad_kernels("150us"), twin=True,
     note="every 12th step saves weights and the optimizer's state, compressed; fix: every 150th")
def u_ckpt_tinygrad():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context

    CKPT = temporary("model_%d.npz")
    SAVE_EVERY = 150 if FIXED else 12

    class MLP:
        def __init__(self, width=768):
            self.l1 = nn.Linear(64, width)
            self.l2 = nn.Linear(width, width)
            self.l3 = nn.Linear(width, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.l3(self.l2(self.l1(x).relu()).relu())

    def save(model, opt, step):
        state = {k: v.numpy() for k, v in nn.state.get_state_dict(model).items()}
        state.update({"opt." + k: v.numpy() for k, v in nn.state.get_state_dict(opt).items()})
        np.savez_compressed(CKPT % (step // SAVE_EVERY % 2), step=step, **state)  # here

    steps = 600
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8192, 64)).astype(np.float32)
    Y = np.sin(X.sum(1, keepdims=True)).astype(np.float32)
    net = MLP()
    with Context(TRAINING=1):
        opt = nn.optim.Adam(nn.state.get_parameters(net), lr=1e-3)

        @TinyJit
        def train(x, y):
            opt.zero_grad()
            loss = ((net.forward(x) - y) ** 2).mean().backward()
            return loss.realize(*opt.schedule_step())

        for step in range(1, steps + 1):
            mark()
            rows = rng.integers(0, len(X), 128)
            loss = train(Tensor(X[rows]).realize(), Tensor(Y[rows]).realize())
            if step % SAVE_EVERY == 0:
                save(net, opt, step)
                print(step, "saved, loss", loss.item())
    return steps


@job(14, "compute", ["compute.underfilled", "compute.dense", "compute.dominant-op"], 150, MAIN, tinygrad_kernels("350us"),
     note="no defect: two small nets; two fetches and a printed line in each step, a sheet of samples in every 50th")
def u_gan_two_nets():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context

    BS, Z = 64, 32
    STEPS = 150

    class Generator:
        def __init__(self):
            self.a, self.b = nn.Linear(Z, 128), nn.Linear(128, 784)

        def __call__(self, z):
            return self.b(self.a(z).leaky_relu()).tanh()

    class Discriminator:
        def __init__(self):
            self.a, self.b = nn.Linear(784, 128), nn.Linear(128, 1)

        def __call__(self, x):
            return self.b(self.a(x).leaky_relu())

    G, D = Generator(), Discriminator()
    opt_g = nn.optim.Adam(nn.state.get_parameters(G), lr=2e-4)
    opt_d = nn.optim.Adam(nn.state.get_parameters(D), lr=2e-4)

    @TinyJit
    def d_step(real, z):
        opt_d.zero_grad()
        loss = (1 - D(real)).relu().mean() + (1 + D(G(z).detach())).relu().mean()
        loss.backward()
        return loss.realize(*opt_d.schedule_step())

    @TinyJit
    def g_step(z):
        opt_g.zero_grad()
        loss = -D(G(z)).mean()
        loss.backward()
        return loss.realize(*opt_g.schedule_step())

    Context(TRAINING=1).__enter__()
    digits = np.random.default_rng(1).standard_normal((4096, 784)).astype(np.float32)
    rng = np.random.default_rng(2)
    for step in range(STEPS):
        mark()
        real = Tensor(digits[rng.integers(0, 4096, BS)]).realize()
        dl = d_step(real, Tensor(rng.standard_normal((BS, Z)).astype(np.float32)).realize())
        gl = g_step(Tensor(rng.standard_normal((BS, Z)).astype(np.float32)).realize())
        print(f"{step:4d}  D {dl.item():+.3f}  G {gl.item():+.3f}", flush=True)
        if step % 50 == 49:
            grid = G(Tensor.randn(16, Z)).numpy().reshape(4, 4, 28, 28).transpose(0, 2, 1, 3).reshape(112, 112)
            np.save(temporary(f"{step}.npy"), ((np.nan_to_num(grid) + 1) * 127).clip(0, 255).astype(np.uint8))
    return STEPS


@job(14, "host", ["host.compile", "host.python"], 400, MAIN, tinygrad_kernels("180us"), twin=True,
     note="each of ten short trials compiles its kernels, since the rate is a constant in them; fix: a tensor")
def u_lr_search():
    from tinygrad import Tensor, TinyJit, nn

    rng = np.random.default_rng(0)
    XS = rng.standard_normal((2048, 32)).astype(np.float32)
    YS = XS @ rng.standard_normal((32, 1)).astype(np.float32)
    RATES = np.logspace(-4, -0.5, 10)
    PER_TRIAL = 40

    class Net:
        def __init__(self):
            self.a, self.b = nn.Linear(32, 64), nn.Linear(64, 1)

        def loss(self, x, y):
            return ((self.b(self.a(x).gelu()) - y) ** 2).mean()

    def make_step(net, rate):
        params = nn.state.get_parameters(net)

        @TinyJit
        def step(x, y):
            for p in params:
                p.grad = None
            net.loss(x, y).backward()
            for p in params:  # here
                p.assign(p.detach() - p.grad * rate)  # here
            return Tensor.realize(*params)

        return step

    results, n = {}, 0
    shared = Net()
    rate_t = Tensor([0.1]).realize()
    one_step = make_step(shared, rate_t) if FIXED else None
    for rate in RATES:
        if one_step is not None:
            rate_t.assign(Tensor([float(rate)])).realize()
            net, step = shared, one_step
        else:
            net = Net()
            step = make_step(net, float(rate))  # here
        for i in range(PER_TRIAL):
            mark()
            rows = rng.integers(0, 2048, 64)
            x, y = Tensor(XS[rows]).realize(), Tensor(YS[rows]).realize()
            step(x, y)  # here
            n += 1
        results[float(rate)] = net.loss(x, y).item()
        print("rate %.5f loss %.4f" % (rate, results[float(rate)]))
    return n


@job(14, "input", ["input.generator"], 360, MAIN, {"SIM_KERNEL": "conv1d* 1100us; stft 900us; * 150us"}, twin=True,
     note="a generator unpacks the samples of a WAV file one by one; fix: numpy.frombuffer")
def u_tf_wav_generator():
    import glob
    import struct
    import wave
    tf = quiet_tensorflow()[0]
    from cuda.bindings import driver

    DIR = temporary("wav")
    RATE, SECONDS, BATCH = 8000, 1, 8

    def prepare():
        os.makedirs(DIR, exist_ok=True)
        for i in range(200):
            path = f"{DIR}/{i:04d}.wav"
            t = np.arange(RATE * SECONDS) / RATE
            x = (np.sin(2 * np.pi * (200 + 5 * i) * t) * 12000).astype("<i2")
            with wave.open(path, "wb") as w:
                w.setnchannels(1)
                w.setsampwidth(2)
                w.setframerate(RATE)
                w.writeframes(x.tobytes())

    def samples(raw):
        if FIXED:
            return np.frombuffer(raw, "<i2").astype(np.float32) / 32768
        return [struct.unpack_from("<h", raw, 2 * i)[0] / 32768.0 for i in range(len(raw) // 2)]  # here

    def clips():
        files = sorted(glob.glob(f"{DIR}/*.wav"))
        while True:
            for i, path in enumerate(files):
                with wave.open(path) as w:
                    yield samples(w.readframes(w.getnframes())), i % 10

    def cu(result):
        err, *rest = result
        assert err == driver.CUresult.CUDA_SUCCESS, err
        return rest[0] if len(rest) == 1 else rest

    prepare()
    signature = (tf.TensorSpec((RATE * SECONDS,), tf.float32), tf.TensorSpec((), tf.int32))
    data = tf.data.Dataset.from_generator(clips, output_signature=signature)
    data = data.map(lambda x, y: (x - tf.reduce_mean(x), y), num_parallel_calls=2).batch(BATCH)

    cu(driver.cuInit(0))
    cu(driver.cuCtxSetCurrent(cu(driver.cuDevicePrimaryCtxRetain(cu(driver.cuDeviceGet(0))))))
    kernels = ["stft", "mel", "conv1d_a", "conv1d_b", "conv1d_a_bwd", "conv1d_b_bwd", "adamw"]
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n"
    ptx += "".join(f".visible .entry {k}(.param .u64 p) {{ ret; }}\n" for k in kernels)
    module = cu(driver.cuModuleLoadData(ptx.encode() + b"\0"))
    kernels = [cu(driver.cuModuleGetFunction(module, k.encode())) for k in kernels]
    stream = cu(driver.cuStreamCreate(0))
    nbytes = 4 * RATE * SECONDS * BATCH
    host, dev = cu(driver.cuMemAllocHost(nbytes)), cu(driver.cuMemAlloc(nbytes))
    view = np.ctypeslib.as_array((ctypes.c_float * (nbytes // 4)).from_address(int(host)))

    steps = 360
    for step, (x, y) in enumerate(data.take(steps)):
        mark()
        cu(driver.cuStreamSynchronize(stream))  # the buffer is free again
        view[:] = x.numpy().ravel()
        cu(driver.cuMemcpyHtoDAsync(dev, host, nbytes, stream))
        for k in kernels:
            cu(driver.cuLaunchKernel(k, 256, 1, 1, 128, 1, 1, 0, stream, ((dev,), (None,)), 0))
        if step % 50 == 0:
            print("step", step, "label", int(y[0]))
    cu(driver.cuStreamSynchronize(stream))
    return steps


@job(14, "transfer", ["transfer.h2d-pageable"], 450, MAIN, {"SIM_KERNEL": "unet_* 900us; dice 200us; adam 300us"}, twin=True,
     note="floats instead of bytes are copied from pageable memory (8 of 17 ms), and metrics are computed with numpy (4 ms);"
          " fix: bytes")
def u_two_defects():
    tf = quiet_tensorflow()[0]
    from cuda.bindings import driver as cu

    TILE, BATCH, STEPS = 512, 4, 450

    class Gpu:
        def __init__(self):
            self.ok(cu.cuInit(0))
            self.ok(cu.cuCtxSetCurrent(self.ok(cu.cuDevicePrimaryCtxRetain(self.ok(cu.cuDeviceGet(0))))))
            self.names = ["unet_down1", "unet_down2", "unet_up1", "unet_up2", "dice", "adam"]
            ptx = ".version 8.0\n.target sm_80\n.address_size 64\n"
            ptx += "".join(".visible .entry %s(.param .u64 a) { ret; }\n" % n for n in self.names)
            m = self.ok(cu.cuModuleLoadData(ptx.encode() + b"\0"))
            self.f = [self.ok(cu.cuModuleGetFunction(m, n.encode())) for n in self.names]
            self.n = TILE * TILE * 3 * BATCH
            self.x = self.ok(cu.cuMemAlloc(4 * self.n))
            self.mask = self.ok(cu.cuMemAlloc(TILE * TILE * BATCH))
            self.out = np.zeros((BATCH, TILE, TILE), np.uint8)

        @staticmethod
        def ok(r):
            assert int(r[0]) == 0, r
            return r[1] if len(r) > 1 else None

        def step(self, tiles):
            if FIXED:
                self.ok(cu.cuMemcpyHtoD(self.x, tiles, tiles.nbytes))  # bytes; the first kernel converts
            else:
                pixels = tiles.astype(np.float32)  # here
                self.ok(cu.cuMemcpyHtoD(self.x, pixels, pixels.nbytes))  # here
            for f in self.f:
                self.ok(cu.cuLaunchKernel(f, 512, 1, 1, 256, 1, 1, 0, 0, ((self.x,), (None,)), 0))
            self.ok(cu.cuMemcpyDtoH(self.out, self.mask, self.out.nbytes))
            return self.out

    def confusion(pred, truth):
        both = pred.astype(np.int64) * 4 + truth
        return np.bincount(both.ravel(), minlength=16)[:16].reshape(4, 4)

    def make(i):
        return tf.roll(tile, i, axis=0), tf.roll(mask, i, axis=0)

    tile = tf.constant(np.random.default_rng(0).integers(0, 255, (TILE, TILE, 3), dtype=np.uint8))
    mask = tf.constant(np.random.default_rng(1).integers(0, 4, (TILE, TILE), dtype=np.uint8))
    data = tf.data.Dataset.range(STEPS * BATCH).map(make, num_parallel_calls=2).batch(BATCH).prefetch(4)
    gpu, total = Gpu(), np.zeros((4, 4), np.int64)
    for x, y in data.as_numpy_iterator():
        mark()
        pred = gpu.step(x)
        total += confusion(pred, y)
    print("accuracy", float(np.trace(total) / total.sum()))
    return STEPS


if __name__ == "__main__":
    main()
