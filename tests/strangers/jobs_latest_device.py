"""Batch 33: jobs of numba, pycuda, cuda.bindings and tinygrad on the simulated GPU."""
import collections
import ctypes
import math
import queue
import random
import re
import warnings

import numpy as np
from stranger import CLIENTS, FIXED, NUMBA, PYCUDA, TinyGrad, every_kernel, job, main, mark, thread, tinygrad_kernels

HEALTHY = ["compute.dense", "compute.dominant-op"]


def ptx(*names):
    entry = ".visible .entry %s(.param .u64 x, .param .u32 n) { ret; }\n"
    return (".version 8.0\n.target sm_80\n.address_size 64\n" + "".join(entry % n for n in names)).encode() + b"\0"


@job(33, "transfer or host", ["transfer.small-copies", "host.launch", "host.alloc", "host.python"], 700, NUMBA,
     every_kernel("180us"), twin=True, note="a fluid: weights and directions are small arrays of the host, copied there and back "
                                            "for each of four kernels; fix: they lie on the device")
def s_nb_fluid():
    from numba import cuda
    warnings.filterwarnings("ignore")

    @cuda.jit
    def collide(f, rho, w, cx, cy, p):
        i = cuda.grid(1)
        if i < f.shape[1]:
            for k in range(9):
                f[k, i] += (rho[i] * w[k] * (1 + p[0] * cx[k] + p[1] * cy[k]) - f[k, i]) / p[2]

    @cuda.jit
    def propagate(f, g, cx, cy, n):
        i = cuda.grid(1)
        if i < f.shape[1]:
            for k in range(9):
                j = (i + int(cx[k]) + int(cy[k]) * n) % f.shape[1]
                g[k, j] = f[k, i]

    @cuda.jit
    def bounce(g, solid, opposite):
        i = cuda.grid(1)
        if i < g.shape[1] and solid[i]:
            for k in range(9):
                g[k, i] = g[int(opposite[k]), i]

    @cuda.jit
    def density(g, rho, w):
        i = cuda.grid(1)
        if i < g.shape[1]:
            total = 0.0
            for k in range(9):
                total += g[k, i] * (1 + w[k])
            rho[i] = total

    n = 128
    w = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, np.float32)
    cx = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1], np.float32)
    cy = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1], np.float32)
    opposite = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6], np.float32)
    p = np.array([0.08, 0.0, 0.56], np.float32)
    if FIXED:
        w, cx, cy, opposite, p = (cuda.to_device(a) for a in (w, cx, cy, opposite, p))
    f = cuda.to_device(np.ones((9, n * n), np.float32))
    g = cuda.device_array_like(f)
    rho = cuda.to_device(np.ones(n * n, np.float32))
    solid = cuda.to_device(np.hypot(*(np.mgrid[:n, :n] - n / 2)).ravel() < n / 9)
    blocks = (n * n + 255) // 256
    for step in range(700):
        mark()
        collide[blocks, 256](f, rho, w, cx, cy, p)  # here
        propagate[blocks, 256](f, g, cx, cy, n)  # here
        bounce[blocks, 256](g, solid, opposite)  # here
        density[blocks, 256](g, rho, w)  # here
        f, g = g, f
        if step % 100 == 99:
            print("step %d mass %.3f" % (step + 1, rho.copy_to_host().mean()))
    cuda.synchronize()
    return 700


class Bindings:
    """cuda.bindings: a stream, kernels that do nothing for as long as the simulated GPU is told, and memory of both sides."""

    def __init__(self, *names, size=1 << 16):
        from cuda.bindings import driver as cu
        self.cu = cu
        self.ck(cu.cuInit(0))
        self.context = self.ck(cu.cuDevicePrimaryCtxRetain(self.ck(cu.cuDeviceGet(0))))
        self.ck(cu.cuCtxSetCurrent(self.context))
        module = self.ck(cu.cuModuleLoadData(ptx(*names)))
        self.kernel = {k: self.ck(cu.cuModuleGetFunction(module, k.encode())) for k in names}
        self.stream = self.ck(cu.cuStreamCreate(1))
        self.memory = self.ck(cu.cuMemAlloc(size))
        self.host = self.ck(cu.cuMemAllocHost(size))
        self.view = np.frombuffer((ctypes.c_char * size).from_address(int(self.host)), np.int32)

    def ck(self, answer):
        if int(answer[0]):
            raise RuntimeError(answer[0])
        return answer[1] if len(answer) > 1 else None

    def launch(self, *names):
        args = ((int(self.memory), 0), (ctypes.c_uint64, ctypes.c_uint32))
        for name in names:
            self.ck(self.cu.cuLaunchKernel(self.kernel[name], 256, 1, 1, 128, 1, 1, 0, self.stream, args, 0))

    def up(self, n):
        self.ck(self.cu.cuMemcpyHtoDAsync(self.memory, int(self.host), n, self.stream))

    def down(self, n):
        self.ck(self.cu.cuMemcpyDtoHAsync(int(self.host), self.memory, n, self.stream))

    def wait(self):
        self.ck(self.cu.cuStreamSynchronize(self.stream))


@job(33, "compute", HEALTHY, 2000, CLIENTS,
     {"SIM_KERNEL": "*pair_force* 1900us; *bonded* 350us; *integrate* 220us; *thermo* 90us; *neighbour* 2600us"},
     note="no defect: molecules: forces, bonds and two half steps; new neighbours each 25th step, energies fetched each 100th")
def s_cb_molecules():
    d = Bindings("integrate_first", "pair_force", "bonded", "integrate_second", "thermo", "neighbour_bin", "neighbour_sort")
    energies = []
    for step in range(2000):
        mark()
        if step % 25 == 0:
            d.launch("neighbour_bin", "neighbour_sort")
        d.launch("integrate_first", "pair_force", "bonded", "integrate_second")
        if step % 100 == 99:
            d.launch("thermo")
            d.down(256)
            d.wait()
            energies.append(int(d.view[0]))
            print("step %d energy %d" % (step + 1, energies[-1]))
    d.wait()
    return 2000


class Pairs:
    """Byte pairs, merged as they were learned."""
    WORD = re.compile(r" ?[a-z]+| ?[0-9]+|[^a-z0-9]+")

    def __init__(self, text, merges=160):
        self.merges, self.known = {}, {}
        chunks = [list(c.encode()) for c in self.WORD.findall(text)]
        for i in range(merges):
            counts = collections.Counter(p for c in chunks for p in zip(c, c[1:]))
            if not counts:
                break
            pair = max(counts, key=counts.get)
            self.merges[pair] = 256 + i
            chunks = [self.merge(c, pair, 256 + i) for c in chunks]

    def merge(self, ids, pair, new):
        out, i = [], 0
        while i < len(ids):  # here
            if i + 1 < len(ids) and ids[i] == pair[0] and ids[i + 1] == pair[1]:  # here
                out.append(new)  # here
                i += 2  # here
            else:
                out.append(ids[i])  # here
                i += 1  # here
        return out

    def chunk(self, text):
        ids = list(text.encode())
        while len(ids) > 1:  # here
            pair = min(zip(ids, ids[1:]), key=lambda p: self.merges.get(p, math.inf))  # here
            if pair not in self.merges:  # here
                break
            ids = self.merge(ids, pair, self.merges[pair])  # here
        return ids

    def encode(self, text):
        out = []
        for word in self.WORD.findall(text):  # here
            if FIXED:
                if word not in self.known:
                    self.known[word] = self.chunk(word)
                out += self.known[word]
            else:
                out += self.chunk(word)  # here
        return out


@job(33, "host or input", ["host.python", "input.*"], 260, CLIENTS, {"SIM_KERNEL": "*prefill* 550us; *decode* 110us"}, twin=True,
     at=(Pairs.merge, Pairs.chunk, Pairs.encode),
     note="a server of texts: prompts of four clients become byte pairs in Python, each word anew; fix: words are kept. A "
          "batch of answers is a step")
def s_cb_prompts():
    rng = random.Random(0)
    syllables = ["".join(rng.choice(s) for s in ("bdfgklmnprst", "aeiou", "lnrst")) for _ in range(60)]
    words = ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3)))) for _ in range(900)]
    tokens = Pairs(" ".join(rng.choices(words, k=700)))
    asked, served = queue.Queue(), 260

    def client(seed):
        own, answers = random.Random(seed), queue.Queue()
        while True:
            asked.put((" ".join(own.choices(words, k=own.randint(70, 110))), answers))
            answers.get()

    names = ["prefill_%d" % i for i in range(8)]
    d = Bindings(*names, "decode_attention", "decode_mlp", "decode_sample")
    for seed in range(4):
        thread(client, seed)
    for _ in range(served):
        requests = [asked.get()]
        mark()
        while len(requests) < 4:
            try:
                requests.append(asked.get(timeout=0.002))
            except queue.Empty:
                break
        prompts = [tokens.encode(text)[:512] for text, _ in requests]  # here
        longest = max(map(len, prompts))
        for i, ids in enumerate(prompts):
            d.view[i * longest:i * longest + len(ids)] = ids
        d.up(4 * longest * len(prompts))
        d.launch(*names)
        for _ in range(10):
            d.launch("decode_attention", "decode_mlp", "decode_sample")
        d.down(4 * 10 * len(prompts))
        d.wait()
        for i, (_, answers) in enumerate(requests):
            answers.put(d.view[i * 10:i * 10 + 10].tolist())
    return served


@job(33, "host", ["host.python", "host.launch"], 500, sim=tinygrad_kernels("40us"), twin=True,
     note="the step is jitted, but the schedule of its rate runs behind it, planned anew each time; fix: within the jitted step")
def s_tg_schedule():
    tg = TinyGrad()
    Tensor, nn, TinyJit = tg.Tensor, tg.nn, tg.TinyJit
    from tinygrad.helpers import Context

    class Cosine:
        """Warms up, then falls as a cosine; counts on the device."""

        def __init__(self, optimizer, peak, warm, total):
            self.optimizer, self.peak, self.warm, self.total = optimizer, peak, warm, total
            self.count = Tensor([0.0]).realize()

        def rate(self):
            done = ((self.count - self.warm) / (self.total - self.warm)).clip(0, 1)
            return (self.count < self.warm).where(self.count / self.warm, 0.5 * (1 + (done * math.pi).cos())) * self.peak

        def schedule_step(self):
            return [self.count.assign(self.count + 1), self.optimizer.lr.assign(self.rate().cast(self.optimizer.lr.dtype))]

        def step(self):
            Tensor.realize(*self.schedule_step())  # here

    class Mixer:
        def __init__(self, dim=64):
            self.stem, self.head = nn.Linear(32, dim), nn.Linear(dim, 10)
            self.blocks = [(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.Linear(dim, dim)) for _ in range(1)]

        def __call__(self, x):
            x = self.stem(x)
            for norm, up, down in self.blocks:
                x = x + down(up(norm(x)).gelu())
            return self.head(x)

    model = Mixer()
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.01, momentum=0.9)
    schedule = Cosine(optimizer, 0.05, 30, 500)
    rng = np.random.default_rng(0)
    xs, ys = (tg.on_device(a) for a in (rng.standard_normal((64, 32)).astype("f4"), rng.integers(0, 10, 64).astype("i4")))

    @TinyJit
    def train_step():
        with Context(TRAINING=1):
            optimizer.zero_grad()
            loss = model(xs).sparse_categorical_crossentropy(ys).backward()
            more = schedule.schedule_step() if FIXED else []
            return loss.realize(*optimizer.schedule_step(), *more)

    for step in range(500):
        mark()
        loss = train_step()
        if not FIXED:
            schedule.step()  # here
        if step % 25 == 24:
            print("step %d loss %.3f rate %.4f" % (step + 1, loss.item(), optimizer.lr.item()))
    return 500


@job(33, "host", ["host.python"], 1800, PYCUDA, {"SIM_KERNEL": "*laplace* 1100us; *absorb* 250us; *source* 20us; *record* 30us"},
     twin=True, note="seismic shots: each begins with tapers of its margins, made point by point in Python; fix: once")
def s_pc_shots():
    import atexit

    import pycuda.driver as cuda
    cuda.init()
    context = cuda.Device(0).make_context()
    atexit.register(context.pop)
    names = ("laplace", "absorb", "add_source", "record")
    module = cuda.module_from_buffer(ptx(*names))
    kernel = {k: module.get_function(k) for k in names}
    nz, nx, margin, nt = 400, 560, 40, 150

    def tapers():
        sponge = np.ones((nz, nx), np.float32)
        for iz in range(nz):  # here
            for ix in range(nx):  # here
                near = min(ix, nx - 1 - ix, nz - 1 - iz)  # here
                if near < margin:  # here
                    sponge[iz, ix] = math.exp(-(0.0053 * (margin - near)) ** 2)  # here
                if iz < 4:  # here
                    sponge[iz, ix] *= 0.5 + iz / 8  # here
        return sponge

    def ricker(peak=12.0, dt=0.001):
        t = np.arange(nt) * dt - 1.2 / peak
        a = (math.pi * peak * t) ** 2
        return ((1 - 2 * a) * np.exp(-a)).astype(np.float32)

    field = [cuda.mem_alloc(4 * nz * nx) for _ in range(2)]
    velocity, d_sponge, traces = (cuda.mem_alloc(4 * nz * nx) for _ in range(3))
    cuda.memcpy_htod(velocity, np.linspace(1.5, 4, nz * nx, dtype=np.float32))
    seismogram = cuda.pagelocked_empty((nt, 200), np.float32)
    kept = tapers() if FIXED else None
    stack = np.zeros_like(seismogram)
    for shot in range(12):
        sponge = kept if FIXED else tapers()  # here
        cuda.memcpy_htod(d_sponge, sponge)
        for f in field:
            cuda.memset_d32(f, 0, nz * nx)
        wavelet = ricker()
        for it in range(nt):
            mark()
            amplitude = np.uint32(abs(int(1e6 * wavelet[it])))
            for k, a in (("laplace", field[0]), ("absorb", d_sponge), ("add_source", field[1]), ("record", traces)):
                kernel[k](a, amplitude, block=(128, 1, 1), grid=(nz * nx // 128, 1))
            field.reverse()
        cuda.memcpy_dtoh(seismogram, traces)
        stack += seismogram * np.linspace(0, 1, nt, dtype=np.float32)[:, None]
        print("shot %d power %.3f" % (shot, float((stack**2).mean())))
    return 12 * nt


if __name__ == "__main__":
    main()
