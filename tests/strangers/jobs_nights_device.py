"""Batch 14: numba's and pycuda's jobs."""
import json
import os
import threading
import warnings
import zlib

import numpy as np
from stranger import FIXED, NUMBA, PYCUDA, job, main, mark, temporary


@job(14, "compute", ["compute.dominant-op"], 420, NUMBA, {"SIM_KERNEL": "*simulate* 24ms; *reduce* 800us"},
     note="no defect: one large kernel; logs, prints and waits in each step, and collects garbage in every tenth")
def u_mc_pricing():
    import gc
    import logging

    from numba import cuda, float32

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", filename=temporary("mc.log"), filemode="w")
    log = logging.getLogger("mc")
    BLOCKS = 420

    @cuda.jit
    def simulate(payoff, seed, s0, k, r, sigma, dt, n):
        i = cuda.grid(1)
        state = (seed * 1664525 + i * 1013904223) & 0xFFFFFFFF
        s, total = s0, float32(0)
        for _ in range(n):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            z = (float32(state) / float32(4294967296.0) - float32(0.5)) * float32(3.46)
            s += s * (r * dt + sigma * z * dt)
            total += s
        if i < payoff.size:
            gain = total / n - k
            payoff[i] = gain if gain > 0 else 0

    @cuda.jit
    def reduce_sums(payoff, out):
        i = cuda.grid(1)
        if i < payoff.size:
            cuda.atomic.add(out, 0, payoff[i])
            cuda.atomic.add(out, 1, payoff[i] * payoff[i])

    payoff = cuda.device_array(1 << 18, np.float32)
    sums = cuda.to_device(np.zeros(2, np.float32))
    history = []
    for block in range(BLOCKS):
        mark()
        simulate[1024, 256](payoff, block, 100.0, 100.0, 0.02, 0.3, 1 / 252, 252)
        reduce_sums[1024, 256](payoff, sums)
        cuda.synchronize()
        mean, square = sums.copy_to_host()
        history.append(float(mean))
        error = np.std(history[-50:]) / max(1, len(history)) ** 0.5
        log.info("block %d price %.5f +- %.5f", block, np.mean(history), error)
        print(block, np.mean(history), error, flush=True)
        if block % 10 == 0:
            gc.collect()
    return BLOCKS


@job(14, "compute", ["compute.dominant-op", "compute.dense", "compute.underfilled"], 550, NUMBA,
     {"SIM_KERNEL": "*sgd_block* 7ms; *rmse* 2ms; *shuffle* 1500us"},
     note="no defect: matrix factorisation, a validation and a copy back in every 25th step; stops early")
def u_early_stop():
    from numba import cuda
    warnings.filterwarnings("ignore")

    USERS, ITEMS, RANK = 20_000, 5_000, 32

    @cuda.jit("void(float32[:,:], float32[:,:], float32)")
    def sgd_block(p, q, lr):
        u = cuda.grid(1)
        if u < p.shape[0]:
            for k in range(p.shape[1]):
                p[u, k] -= lr * q[u % q.shape[0], k]

    @cuda.jit("void(float32[:,:], float32[:])")
    def rmse(p, out):
        u = cuda.grid(1)
        if u < p.shape[0]:
            cuda.atomic.add(out, 0, p[u, 0])

    @cuda.jit("void(int32[:], int32)")
    def shuffle(order, seed):
        i = cuda.grid(1)
        if i < order.size:
            order[i] = (order[i] * 17 + seed) % order.size

    class EarlyStopping:
        def __init__(self, patience):
            self.best, self.bad, self.patience, self.kept = float("inf"), 0, patience, None

        def __call__(self, value, p):
            if value < self.best:
                self.best, self.bad, self.kept = value, 0, p.copy_to_host()
            else:
                self.bad += 1
            return self.bad >= self.patience

    p = cuda.to_device(np.random.default_rng(0).random((USERS, RANK), dtype=np.float32))
    q = cuda.to_device(np.random.default_rng(1).random((ITEMS, RANK), dtype=np.float32))
    order = cuda.to_device(np.arange(1 << 16, dtype=np.int32))
    score = cuda.to_device(np.zeros(1, np.float32))
    stopper, rng = EarlyStopping(6), np.random.default_rng(2)
    steps = 0
    for step in range(2000):
        mark()
        shuffle[256, 256](order, step)
        sgd_block[80, 256](p, q, np.float32(0.01))
        sgd_block[80, 256](p, q, np.float32(0.01))
        steps += 1
        if step % 25 == 24:
            rmse[80, 256](p, score)
            value = float(score.copy_to_host()[0]) + 1 / (1 + step) if step < 400 else 1.0 + float(rng.random())
            print(f"step {step + 1}: validation {value:.5f}")
            if stopper(value, p):
                print("no better for a while: stop")
                break
    cuda.synchronize()
    return steps


@job(14, "compute", ["compute.dominant-op", "compute.dense"], 420, NUMBA,
     {"SIM_KERNEL": "*collide* 11ms; *propagate* 6ms; *vorticity* 1ms"},
     note="no defect: threads write a picture of every tenth step from pinned memory; the loop waits in every second step only")
def u_fluid_async():
    import concurrent.futures as cf
    from numba import cuda
    warnings.filterwarnings("ignore")

    NX, NY, STEPS = 1024, 512, 420

    @cuda.jit("void(float32[:,:,:], float32[:,:,:])")
    def collide(f, g):
        x, y = cuda.grid(2)
        if x < NX and y < NY:
            rho = 0.0
            for k in range(9):
                rho += f[k, y, x]
            for k in range(9):
                g[k, y, x] = f[k, y, x] * 0.4 + rho * 0.0667

    @cuda.jit("void(float32[:,:,:], float32[:,:,:])")
    def propagate(g, f):
        x, y = cuda.grid(2)
        if x < NX and y < NY:
            for k in range(9):
                f[k, y, (x + k % 3 - 1) % NX] = g[k, y, x]

    @cuda.jit("void(float32[:,:,:], float32[:,:])")
    def vorticity(f, w):
        x, y = cuda.grid(2)
        if 0 < x < NX - 1 and 0 < y < NY - 1:
            w[y, x] = f[1, y, x + 1] - f[1, y, x - 1]

    def write(buffer, done, step, back):
        done.synchronize()
        data = zlib.compress(buffer.view(np.uint8)[::4].tobytes(), 6)
        with open(temporary(f"flow_{step % 4}.z"), "wb") as out:
            out.write(data)
            os.fsync(out.fileno())
        back.append(buffer)
        return len(data)

    f = cuda.device_array((9, NY, NX), np.float32)
    g, w = cuda.device_array_like(f), cuda.device_array((NY, NX), np.float32)
    buffers = [cuda.pinned_array((NY, NX), np.float32) for _ in range(4)]
    stream = cuda.stream()
    grid, block = (NX // 32, NY // 8), (32, 8)
    writers, jobs = cf.ThreadPoolExecutor(2), []
    for step in range(STEPS):
        mark()
        collide[grid, block, stream](f, g)
        propagate[grid, block, stream](g, f)
        if step % 10 == 9:
            vorticity[grid, block, stream](f, w)
            buffer = buffers.pop()
            w.copy_to_host(buffer, stream=stream)
            event = cuda.event()
            event.record(stream)
            jobs.append(writers.submit(write, buffer, event, step, buffers))
            jobs[-3].result() if len(jobs) > 3 else None
        if step % 2:
            stream.synchronize()
    stream.synchronize()
    print("written", sum(j.result() for j in jobs), "bytes")
    return STEPS


@job(14, "host or compute", ["host.python", "compute.dense", "compute.dominant-op", "compute.underfilled"], 600, PYCUDA,
     {"SIM_KERNEL": "mlp_fwd 1ms; mlp_bwd 2ms; sgd 300us"}, twin=True,
     note="after each epoch a bootstrapped AUC in Python takes three times as long as the epoch; fix: by ranks")
def u_eval_auc():
    from itertools import islice

    import pycuda.autoinit  # noqa: F401
    import pycuda.driver as cuda

    EPOCHS, PER_EPOCH, VALID = 10, 60, 60
    B, D = 256, 64

    def kernels(*names):
        head = ".version 8.0\n.target sm_80\n.address_size 64\n"
        body = "".join(f".visible .entry {n}(.param .u64 w, .param .u64 x) {{ ret; }}\n" for n in names)
        m = cuda.module_from_buffer((head + body).encode() + b"\0")
        return [m.get_function(n) for n in names]

    fwd, bwd, sgd = kernels("mlp_fwd", "mlp_bwd", "sgd")
    w, x_dev, scores_dev = cuda.mem_alloc(1 << 20), cuda.mem_alloc(4 * B * D), cuda.mem_alloc(4 * B)
    cuda.memset_d32(scores_dev, 0, B)
    shape = dict(block=(256, 1, 1), grid=(32, 1))
    rng = np.random.default_rng(0)
    X = rng.random((B * 80, D), dtype=np.float32)
    Y = rng.integers(0, 2, B * 80)
    host_x, host_s = cuda.pagelocked_empty((B, D), np.float32), cuda.pagelocked_empty(B, np.float32)

    def batches(count):
        order = rng.permutation(80)
        for i in islice((order[j % 80] for j in range(count)), count):
            yield X[i * B:(i + 1) * B], Y[i * B:(i + 1) * B]

    def auc(scores, labels):
        """Share of (positive, negative) pairs in the right order."""
        if FIXED:
            order = np.argsort(scores, kind="stable")
            ranks = np.empty(len(scores))
            ranks[order] = np.arange(1, len(scores) + 1)
            pos = labels.sum()
            return (ranks[labels == 1].sum() - pos * (pos + 1) / 2) / (pos * (len(labels) - pos))
        pairs = sorted(zip(scores.tolist(), labels.tolist()))
        good = below = 0
        for _ in range(1200):  # bootstrap, for the error bars
            below = 0
            for s, l in pairs:  # here
                if l:
                    good += below
                else:
                    below += 1
        return good / 1200 / max(1, sum(labels)) / max(1, len(labels) - sum(labels))

    def train():
        n = 0
        for xb, yb in batches(PER_EPOCH):
            mark()
            cuda.Context.synchronize()
            host_x[:] = xb
            cuda.memcpy_htod(x_dev, host_x)
            fwd(w, x_dev, **shape)
            bwd(w, x_dev, **shape)
            sgd(w, x_dev, **shape)
            n += 1
        cuda.Context.synchronize()
        return n

    def validate():
        scores, labels = [], []
        for xb, yb in batches(VALID):
            host_x[:] = xb
            cuda.memcpy_htod(x_dev, host_x)
            fwd(w, x_dev, **shape)
            cuda.memcpy_dtoh(host_s, scores_dev)
            scores.append(host_s + rng.random(B, dtype=np.float32))
            labels.append(yb)
        return auc(np.concatenate(scores), np.concatenate(labels))

    steps = 0
    for epoch in range(EPOCHS):
        steps += train()
        value = validate()
        print(f"epoch {epoch}: AUC {value:.4f}")
    return steps


@job(14, "input or host", ["input.generator", "input.map", "input.unknown", "host.python"], 400, PYCUDA,
     {"SIM_KERNEL": "gather_feats 1ms; sage_gemm* 2500us; scatter_mean 700us; adam 200us; * 50us"}, twin=True,
     note="an iterator samples neighbours node by node in Python; fix: with numpy")
def u_gnn_sampler():
    import random

    import pycuda.autoinit  # noqa: F401
    import pycuda.driver as cuda

    NODES, FANOUT, BATCH = 60_000, (10, 6), 768
    PTX = ".version 8.0\n.target sm_80\n.address_size 64\n"
    names = "gather_feats", "sage_gemm_1", "sage_gemm_2", "scatter_mean", "xent", "adam"
    for kernel in names:
        PTX += f".visible .entry {kernel}(.param .u64 a, .param .u64 b, .param .u32 n) {{ ret; }}\n"

    class Graph:
        """CSR, plus the adjacency lists that the first version of this code used."""

        def __init__(self, seed=0):
            g = np.random.default_rng(seed)
            deg = g.integers(8, 30, NODES)
            self.ptr = np.concatenate([[0], np.cumsum(deg)])
            self.col = g.integers(0, NODES, self.ptr[-1]).astype(np.int32)
            cols = self.col.tolist()
            self.adj = {i: cols[a:b] for i, (a, b) in enumerate(zip(self.ptr[:-1].tolist(), self.ptr[1:].tolist()))}

    class NeighbourSampler:
        def __init__(self, graph, batches):
            self.g, self.batches = graph, batches
            self.rng = np.random.default_rng(5)

        def __iter__(self):
            hop = self.fast if FIXED else self.slow
            for _ in range(self.batches):
                seeds = self.rng.integers(0, NODES, BATCH)
                first = hop(seeds, FANOUT[0])
                second = hop(first, FANOUT[1])
                yield seeds.astype(np.int32), first, second

        def slow(self, nodes, k):
            out = []
            for n in nodes.tolist():
                out.extend(random.choices(self.g.adj[n], k=k))  # here
            return np.array(out, dtype=np.int32)

        def fast(self, nodes, k):
            lo, hi = self.g.ptr[nodes], self.g.ptr[nodes + 1]
            pick = lo[:, None] + (self.rng.random((len(nodes), k)) * (hi - lo)[:, None]).astype(np.int64)
            return self.g.col[pick].ravel()

    class Sage:
        def __init__(self):
            m = cuda.module_from_buffer(PTX.encode() + b"\0")
            self.k = {n: m.get_function(n) for n in names}
            self.ids = cuda.mem_alloc(4 * BATCH * (1 + FANOUT[0] + FANOUT[0] * FANOUT[1]))
            self.feats = cuda.mem_alloc(64 << 20)
            self.loss = cuda.mem_alloc(4)
            self.stream = cuda.Stream()

        def train(self, batch):
            ids = np.concatenate(batch)
            cuda.memcpy_htod_async(self.ids, ids, self.stream)
            for name in ("gather_feats", "sage_gemm_1", "scatter_mean", "sage_gemm_2", "scatter_mean", "xent",
                         "sage_gemm_2", "sage_gemm_1", "adam"):
                self.k[name](self.ids, self.feats, np.uint32(len(ids)), block=(128, 1, 1), grid=(64, 1), stream=self.stream)

    graph, model = Graph(), Sage()
    sampler = NeighbourSampler(graph, 400)
    loss = np.zeros(1, np.float32)
    for it, batch in enumerate(sampler):
        mark()
        model.train(batch)
        if it % 25 == 0:
            model.stream.synchronize()
            cuda.memcpy_dtoh(loss, model.loss)
            print("iteration", it, "loss", loss[0])
    model.stream.synchronize()
    return 400


@job(14, "compute", ["compute.dense", "compute.dominant-op"], 700, PYCUDA, {"SIM_KERNEL": "backbone* 3ms; head 1ms"},
     note="no defect: a thread reads into pinned buffers, and a stream copies one batch ahead")
def u_double_buffer():
    import queue
    import threading

    import pycuda.driver as cuda

    PATH = temporary("frames.bin")
    FRAME = 16 << 20
    SLOTS, BATCHES = 3, 700

    np.random.default_rng(0).integers(0, 255, 4 * FRAME, dtype=np.uint8).tofile(PATH)

    cuda.init()
    context = cuda.Device(0).make_context()
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n"
    for name in ("backbone_a", "backbone_b", "head"):
        ptx += ".visible .entry %s(.param .u64 x) { ret; }\n" % name
    module = cuda.module_from_buffer(ptx.encode() + b"\0")
    net = [module.get_function(n) for n in ("backbone_a", "backbone_b", "backbone_a", "head")]

    class Slot:
        def __init__(self):
            self.host = cuda.pagelocked_empty(FRAME, np.uint8)
            self.dev = cuda.mem_alloc(FRAME)
            self.copied, self.used = cuda.Event(), cuda.Event()
            self.result = cuda.pagelocked_empty(1000, np.float32)

    free, full = queue.Queue(), queue.Queue()
    for _ in range(SLOTS):
        free.put(Slot())

    def reader():
        with open(PATH, "rb", buffering=0) as f:
            for _ in range(BATCHES):
                slot = free.get()
                if f.readinto(slot.host) < FRAME:
                    f.seek(0)
                full.put(slot)
        full.put(None)

    copy, compute = cuda.Stream(), cuda.Stream()
    threading.Thread(target=reader, daemon=True).start()

    def upload():
        slot = full.get()
        if slot is not None:
            cuda.memcpy_htod_async(slot.dev, slot.host, copy)
            slot.copied.record(copy)
        return slot

    checksum = 0.0
    slot = upload()
    behind = None
    while slot is not None:
        mark()
        compute.wait_for_event(slot.copied)
        for k in net:
            k(slot.dev, block=(256, 1, 1), grid=(1024, 1), stream=compute)
        cuda.memcpy_dtoh_async(slot.result, slot.dev, compute)
        slot.used.record(compute)
        following = upload()
        if behind is not None:
            behind.used.synchronize()
            checksum += float(behind.result[0] if np.isfinite(behind.result[0]) else 0)
            free.put(behind)
        behind, slot = slot, following
    behind.used.synchronize()
    print("checksum", checksum)
    context.pop()
    return BATCHES


REQUESTS, SIZE = 960, 3 * 96 * 96  # of u_http_infer


def ask(port, tickets):
    import base64
    import http.client
    x = np.random.default_rng(os.getpid()).random(SIZE).astype(np.float32)
    body = json.dumps({"b64": base64.b64encode(x.tobytes()).decode()} if FIXED else {"pixels": x.tolist()})
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while True:
        try:
            tickets.pop()
        except IndexError:  # another thread took the last one
            return
        connection.request("POST", "/classify", body)
        connection.getresponse().read()


def ask_often(port):
    tickets = [None] * REQUESTS  # shared, so that eight requests are on their way until the end
    threads = [threading.Thread(target=ask, args=(port, tickets)) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


@job(14, "host or input", ["host.python", "host.code", "input.decode", "input.map", "host.gil"], 120, PYCUDA,
     {"SIM_KERNEL": "resblock* 450us; classify 200us"}, twin=True,
     note="a server parses pictures from JSON lists, eight in a batch; another process sends them; fix: base64")
def u_http_infer():
    import base64
    import multiprocessing
    import queue
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    BATCH = 8

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        inbox: "queue.Queue" = queue.Queue()

        def do_POST(self):
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            answer = queue.SimpleQueue()
            self.inbox.put((raw, answer))
            label = str(answer.get()).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(label)))
            self.end_headers()
            self.wfile.write(label)

        def log_message(self, *a):
            pass

    class Engine:
        def __init__(self):
            import pycuda.driver as cuda
            self.cuda = cuda
            cuda.init()
            self.ctx = cuda.Device(0).make_context()
            src = ".version 8.0\n.target sm_80\n.address_size 64\n"
            for name in ("resblock", "classify"):
                src += ".visible .entry %s(.param .u64 x) { ret; }\n" % name
            m = cuda.module_from_buffer(src.encode() + b"\0")
            self.resblock, self.head = m.get_function("resblock"), m.get_function("classify")
            self.x = cuda.pagelocked_empty((BATCH, SIZE), np.float32)
            self.y = cuda.pagelocked_empty((BATCH, 10), np.float32)
            self.dx = cuda.mem_alloc(self.x.nbytes)

        def decode(self, raw):
            doc = json.loads(raw)  # here
            if "b64" in doc:
                return np.frombuffer(base64.b64decode(doc["b64"]), np.float32)
            return np.array(doc["pixels"], np.float32)  # here

        def infer(self, requests):
            for i, (raw, _) in enumerate(requests):
                self.x[i] = self.decode(raw)
            self.cuda.memcpy_htod(self.dx, self.x)
            for _ in range(8):
                self.resblock(self.dx, block=(256, 1, 1), grid=(200, 1))
            self.head(self.dx, block=(256, 1, 1), grid=(2, 1))
            self.cuda.memcpy_dtoh(self.y, self.dx)
            return self.y.argmax(1)

    ThreadingHTTPServer.request_queue_size = 64
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    load = multiprocessing.get_context("spawn").Process(target=ask_often, args=(server.server_port,))
    load.start()
    engine = Engine()
    done = steps = 0
    while done < REQUESTS:
        mark()
        batch = [Handler.inbox.get()]
        while len(batch) < BATCH and done + len(batch) < REQUESTS:
            batch.append(Handler.inbox.get())
        labels = engine.infer(batch)
        for (_, answer), label in zip(batch, labels):
            answer.put(int(label))
        done += len(batch)
        steps += 1
    load.join()
    engine.ctx.pop()
    return steps


if __name__ == "__main__":
    main()
