"""Batch 35: clients of the simulated GPU: tinygrad, numba, pycuda and the driver's Python bindings."""
import collections
import queue
import time

import numpy as np
from stranger import CLIENTS, FIXED, NUMBA, PYCUDA, PyCuda, every_kernel, job, kernels, main, mark, temporary, thread, tinygrad_kernels


@job(35, "compute", ["compute.dense", "compute.dominant-op", "compute.underfilled"], 500, sim=tinygrad_kernels("450us"),
     note="no defect: a denoiser on resident data; its step is compiled, the loss is read in each 25th, samples are drawn in each 100th")
def s_tg_denoiser():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    POINTS, BATCH, NOISE, PLACES = 16 * 512, 512, 50, 16

    class Denoiser:
        def __init__(self, width=128):
            self.time = nn.Linear(PLACES, width)
            self.a, self.b, self.c = nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 2)

        def __call__(self, x, t):
            h = (self.a(x) + self.time(t)).relu()
            return self.c((self.b(h) + h).relu())

    g = np.random.default_rng(0)
    turn = 3 * np.pi * np.sqrt(g.random(POINTS))
    roll = np.stack([turn * np.cos(turn), turn * np.sin(turn)], 1) / 9
    beta = np.linspace(1e-3, 0.2, NOISE)
    kept = np.cumprod(1 - beta)

    def resident(array):
        return Tensor(array.astype(np.float32)).realize()

    def waves(t):
        angle = t[:, None] * np.exp(-np.arange(PLACES // 2))
        return np.concatenate([np.sin(angle), np.cos(angle)], 1)

    def batch_of(points):
        t = g.integers(NOISE, size=BATCH)
        noise = g.normal(size=(BATCH, 2))
        return resident(kept[t, None] ** 0.5 * points + (1 - kept[t, None]) ** 0.5 * noise), resident(waves(t)), resident(noise)

    batches = [batch_of(roll[k:k + BATCH]) for k in range(0, POINTS, BATCH)]
    net = Denoiser()
    opt = nn.optim.SGD(nn.state.get_parameters(net), lr=1e-2, momentum=0.9)

    @TinyJit
    def train_step(x, t, noise):
        with Context(TRAINING=1):
            opt.zero_grad()
            loss = (net(x, t) - noise).square().mean().backward()
            return loss.realize(*opt.schedule_step())

    @TinyJit
    def less_noise(x, t, scale):
        return ((x - scale[0] * net(x, t)) * scale[1]).realize()

    def sample():
        x = resident(g.normal(size=(BATCH, 2)))
        for k in reversed(range(0, NOISE, 10)):
            x = less_noise(x, resident(waves(np.full(BATCH, k))),
                           resident(np.array([beta[k] * (1 - kept[k]) ** -0.5, (1 - beta[k]) ** -0.5])))
        return x.numpy()

    start = time.perf_counter()
    for i in range(500):
        mark()
        loss = train_step(*batches[i % len(batches)])
        if i % 25 == 24:
            print("%4d  loss %.4f  %.1f steps/s" % (i + 1, loss.item(), (i + 1) / (time.perf_counter() - start)), flush=True)
        if i % 100 == 99:
            np.save(temporary("samples-%d.npy" % i), sample())
    return 500


@job(35, "host", ["host.python"], 250, NUMBA, sim=kernels("1200us", "2500us", "300us"), twin=True,
     note="a filter's particles are drawn anew by a loop of Python over the sum of their weights; fix: NumPy's searchsorted")
def s_nb_particle_filter():
    from numba import cuda
    N = 24_000
    g = np.random.default_rng(0)

    @cuda.jit
    def fwd_move(px, py, heading, turn, speed, noise):
        i = cuda.grid(1)
        if i < px.size:
            heading[i] += turn + noise[i] * 0.02
            px[i] += speed
            py[i] += speed * heading[i]

    @cuda.jit
    def bwd_weigh(px, py, marks, ranges, weight):
        i = cuda.grid(1)
        if i < px.size:
            w = 0.0
            for k in range(ranges.size):
                d = (px[i] - marks[k, 0]) ** 2 + (py[i] - marks[k, 1]) ** 2
                w -= (d - ranges[k]) ** 2
            weight[i] = w

    @cuda.jit
    def opt_gather(source, index, target):
        i = cuda.grid(1)
        if i < index.size:
            target[i] = source[index[i]]

    def low_variance_resample(weights):
        """Thrun's wheel: one random number, and a walk along the sum of weights."""
        step = 1.0 / N
        r = g.random() * step
        if FIXED:
            return np.minimum(np.searchsorted(np.cumsum(weights), r + step * np.arange(N)), N - 1).astype(np.int32)
        index = np.empty(N, np.int32)
        w = weights.tolist()
        c, i = w[0], 0
        for m in range(N):  # here
            u = r + m * step  # here
            while u > c and i < N - 1:  # here
                i += 1  # here
                c += w[i]  # here
            index[m] = i  # here
        return index

    particles = [cuda.to_device(g.normal(0, 1, N).astype(np.float32)) for _ in range(3)]
    spare = [cuda.device_array(N, np.float32) for _ in range(3)]
    noise, weight = cuda.to_device(g.normal(0, 1, N).astype(np.float32)), cuda.to_device(g.random(N).astype(np.float32))
    landmarks = cuda.to_device(g.normal(0, 5, (12, 2)).astype(np.float32))
    ranges = cuda.device_array(12, np.float32)
    blocks = (N + 255) // 256
    track = []
    for t in range(250):
        mark()
        scan = np.abs(g.normal(4, 1, 12)).astype(np.float32)
        ranges.copy_to_device(scan)
        fwd_move[blocks, 256](*particles, np.float32(0.01), np.float32(0.1), noise)
        bwd_weigh[blocks, 256](particles[0], particles[1], landmarks, ranges, weight)
        w = weight.copy_to_host()
        w = w / w.sum()
        if 1 / np.square(w).sum() < 0.95 * N:
            index = cuda.to_device(low_variance_resample(w))  # here
            for k in range(3):
                opt_gather[blocks, 256](particles[k], index, spare[k])
            particles, spare = spare, particles
        track.append(float(w.max()))
        if t % 50 == 49:
            print("t %d  largest weight %.2e" % (t, track[-1]), flush=True)
    cuda.synchronize()
    return 250


@job(35, "transfer", ["transfer.h2d-pageable"], 150, PYCUDA, sim=every_kernel("450us"), twin=True,
     note="inference: each volume is predicted six times, by nets with other dropout, and sent for each; fix: once")
def s_pc_mc_dropout():
    gpu = PyCuda()
    cuda = gpu.cuda
    SIDE, PASSES, VOLUMES = 96, 6, 150
    g = np.random.default_rng(0)
    scans = [g.integers(-1000, 2000, (SIDE,) * 3, np.int16) for _ in range(6)]
    voxels, coarse = SIDE ** 3, (SIDE // 4) ** 3
    on_device, out = cuda.mem_alloc(4 * voxels), cuda.mem_alloc(4 * coarse)
    prob = np.empty(coarse, np.float32)

    class Ensemble:
        def __init__(self):
            self.sent = None

        def forward(self, volume, seed):
            if not FIXED or self.sent is not volume:
                cuda.memcpy_htod(on_device, volume)  # here
                self.sent = volume
            for _ in range(5):
                gpu.axpy(on_device, np.float32(seed), np.uint32(voxels), block=(256, 1, 1), grid=(voxels // 256, 1))
            gpu.axpy(out, np.float32(seed), np.uint32(coarse), block=(256, 1, 1), grid=(coarse // 256, 1))
            cuda.memcpy_dtoh(prob, out)
            return prob

    net = Ensemble()
    with open(temporary("uncertainty.csv"), "w") as table:
        table.write("case,mean,std\n")
        for case in range(VOLUMES):
            mark()
            volume = np.clip(scans[case % len(scans)], -200, 800).astype(np.float32)
            mean, square = np.zeros(coarse, np.float32), np.zeros(coarse, np.float32)
            for k in range(PASSES):
                p = net.forward(volume, k)  # here
                mean += p
                square += p * p
            mean /= PASSES
            std = np.sqrt(np.maximum(square / PASSES - mean * mean, 0))
            table.write("%d,%.5f,%.5f\n" % (case, mean.mean(), std.mean()))
            if case % 25 == 24:
                print("%d of %d" % (case + 1, VOLUMES), flush=True)
    return VOLUMES


@job(35, "host", ["host.python", "host.code"], 300, CLIENTS, sim=kernels("1500us", "3ms", "200us"), twin=True,
     note="embeddings lie with the host, where np.add.at adds the gradients row by row; fix: sums of equal rows by sorting, then one sum")
def s_cb_host_embeddings():
    import ctypes

    from cuda.bindings import driver as cu
    PTX = b""".version 8.0
.target sm_80
.address_size 64
""" + b"".join(b".visible .entry %s(.param .u64 p) { ret; }\n" % n for n in (b"fwd_bottom", b"fwd_top", b"bwd_all", b"opt_dense")) + b"\0"

    def call(name, *args):
        rc, *got = getattr(cu, name)(*args)
        if rc != cu.CUresult.CUDA_SUCCESS:
            raise RuntimeError("%s: %s" % (name, rc))
        return got[0] if got else None

    call("cuInit", 0)
    call("cuCtxSetCurrent", call("cuDevicePrimaryCtxRetain", call("cuDeviceGet", 0)))
    module = call("cuModuleLoadData", PTX)
    stream = call("cuStreamCreate", 1)
    functions = {n: call("cuModuleGetFunction", module, n.encode()) for n in ("fwd_bottom", "fwd_top", "bwd_all", "opt_dense")}
    ROWS, DIM, FIELDS, BATCH, STEPS = 120_000, 32, 8, 512, 300
    count = BATCH * FIELDS

    def pinned(n):
        p = call("cuMemAllocHost", 4 * n)
        return p, np.ctypeslib.as_array(ctypes.cast(int(p), ctypes.POINTER(ctypes.c_float)), (n,))

    def launch(name, blocks=128):
        call("cuLaunchKernel", functions[name], blocks, 1, 1, 128, 1, 1, 0, stream, ((memory,), (ctypes.c_void_p,)), 0)

    memory = int(call("cuMemAlloc", 4 * count * DIM * 2))
    call("cuMemsetD8", memory, 0, 4 * count * DIM * 2)
    into, rows = pinned(count * DIM)
    back, grads = pinned(count * DIM)
    g = np.random.default_rng(0)
    table = g.normal(0, 0.01, (ROWS, DIM)).astype(np.float32)
    clicks = np.minimum(g.zipf(1.2, (40 * BATCH, FIELDS)), ROWS) - 1

    class EmbeddingBag:
        def __init__(self, table, rate):
            self.table, self.rate = table, np.float32(rate)

        def lookup(self, ids, out):
            np.take(self.table, ids, axis=0, out=out.reshape(-1, DIM), mode="clip")

        def update(self, ids, grad):
            grad = grad.reshape(-1, DIM) * -self.rate
            if FIXED:
                order = np.argsort(ids, kind="stable")
                own, first = np.unique(ids[order], return_index=True)
                self.table[own] += np.add.reduceat(grad[order], first)
            else:
                np.add.at(self.table, ids, grad)  # here

    bag = EmbeddingBag(table, 0.05)
    for step in range(STEPS):
        mark()
        at = step * BATCH % len(clicks)
        ids = clicks[at:at + BATCH].reshape(-1)
        bag.lookup(ids, rows)
        call("cuMemcpyHtoDAsync", memory, int(into), rows.nbytes, stream)
        launch("fwd_bottom")
        launch("fwd_top")
        launch("bwd_all")
        launch("opt_dense")
        call("cuMemcpyDtoHAsync", int(back), memory, grads.nbytes, stream)
        call("cuStreamSynchronize", stream)
        bag.update(ids, grads)  # here
        if step % 60 == 59:
            print("step %d  norm %.3f" % (step + 1, float(np.linalg.norm(table[:1000]))), flush=True)
    return STEPS


@job(35, "host", ["host.python"], 600, NUMBA, sim=kernels("60us", "500us", "20us"), twin=True,
     note="a server of texts decodes all of each answer and its prompt anew for each word; fix: the new piece alone")
def s_nb_stream_decode():
    from numba import cuda
    SESSIONS, LAYERS, WORDS, PROMPT = 4, 10, 120, 900

    @cuda.jit
    def fwd_attention(cache, x, at):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += cache[i] * at

    @cuda.jit
    def fwd_mlp(w, x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += w[i]

    @cuda.jit
    def bwd_head(x, logits):
        i = cuda.grid(1)
        if i < logits.size:
            logits[i] = x[i % x.size]

    @cuda.jit
    def opt_pick(logits, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = logits[i]

    # as GPT-2's tokenizer does it: pieces of letters that stand for bytes
    letters = {chr(256 + b) if b < 33 or b > 126 else chr(b): b for b in range(256)}
    of_byte = {b: c for c, b in letters.items()}
    g = np.random.default_rng(0)
    pieces = ["".join(of_byte[b] for b in bytes(g.integers(97, 123, g.integers(2, 7)).tolist())) for _ in range(8000)]
    pieces[::3] = [of_byte[32] + p for p in pieces[::3]]
    special = {0, 1, 2}

    class Tokenizer:
        def decode(self, ids):
            text = "".join(pieces[i] for i in ids if i not in special)  # here
            return bytearray(letters[c] for c in text).decode("utf-8", errors="replace")  # here

    class Session:
        def __init__(self, request):
            self.ids, self.prompt, self.answer, self.words = list(request["ids"]), len(request["ids"]), request["answer"], []
            self.said = len(tokenizer.decode(self.ids))

        def add(self, word):
            self.ids.append(word)
            if FIXED:
                delta = tokenizer.decode(self.ids[-1:])
                tail = delta
            else:
                text = tokenizer.decode(self.ids)  # here
                delta, self.said, tail = text[self.said:], len(text), text[-20:]
            self.words.append(delta)
            self.answer.put(delta)
            return any(s in tail for s in ("</s>", "\n\nHuman:"))

    tokenizer = Tokenizer()
    cache, weights = cuda.to_device(np.zeros(65536, np.float32)), cuda.to_device(np.ones(65536, np.float32))
    x, logits = cuda.to_device(np.zeros(4096, np.float32)), cuda.device_array(32000, np.float32)
    chosen = cuda.to_device(np.zeros(SESSIONS, np.int32))
    requests, read = queue.Queue(), collections.Counter()

    def client(n):
        own = np.random.default_rng(n)
        for _ in range(5):
            answer = queue.Queue()
            requests.put({"ids": own.integers(3, 8000, PROMPT).tolist(), "answer": answer})
            while (piece := answer.get()) is not None:
                read[n] += len(piece)

    def generate(sessions):
        for at in range(WORDS):
            mark()
            for _ in range(LAYERS):
                fwd_attention[32, 128](cache, x, np.float32(at))
                fwd_mlp[32, 128](weights, x)
            bwd_head[128, 256](x, logits)
            opt_pick[1, 32](logits, chosen)
            words = chosen.copy_to_host()
            for k, session in enumerate(sessions):
                session.add((int(words[k]) + 31 * at + 7 * k) % 8000)  # here

    clients = [thread(client, n) for n in range(SESSIONS)]
    for turn in range(5):
        sessions = [Session(requests.get()) for _ in range(SESSIONS)]
        generate(sessions)
        for session in sessions:
            session.answer.put(None)
        print("turn %d: %d characters" % (turn, sum(read.values())), flush=True)
    for c in clients:
        c.join()
    return 600


if __name__ == "__main__":
    main()
