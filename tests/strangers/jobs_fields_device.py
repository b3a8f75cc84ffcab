"""Batch 15: jobs of numba, pycuda, cuda.bindings, cuda.core, drjit and tinygrad."""
import json
import math
import multiprocessing
import os
import socket
import struct
import warnings
import zlib

import numpy as np
from stranger import (CLIENTS, FIXED, MAIN, NUMBA, PYCUDA, TORCH, every_kernel, job, main, mark, pytorch, quiet_tensorflow, temporary,
                      thread, tinygrad_kernels)

HEALTHY = ["compute.dense", "compute.dominant-op", "compute.underfilled"]


def numba_cuda():
    from numba import cuda
    warnings.filterwarnings("ignore")
    return cuda


def ptx(*names):
    return (".version 8.0\n.target sm_80\n.address_size 64\n" + "".join(
        ".visible .entry %s(.param .u64 p, .param .u32 n) { ret; }\n" % name for name in names)).encode() + b"\0"


@job(15, "host", ["host.python"], 120, NUMBA,
     {"SIM_KERNEL": "*conformer_block* 700us; *decoder_step* 50us; *joint* 30us"}, twin=True,
     note="features of each utterance are computed in loops of Python; fix: once. A second defect: each token is fetched")
def t_asr():
    cuda = numba_cuda()
    bands = [(int(3 + 4.4 * i), int(12 + 5.8 * i)) for i in range(40)]
    window = np.hanning(400).astype(np.float32)

    def log_mel(audio):
        frames = np.lib.stride_tricks.sliding_window_view(audio, 400)[::160] * window
        power = np.abs(np.fft.rfft(frames, 512)) ** 2  # here
        out = np.empty((len(frames), 40), np.float32)
        for i, row in enumerate(power):
            for f, (a, b) in enumerate(bands):  # here
                out[i, f] = math.log(row[a:b].sum() + 1e-6)  # here
        return out

    @cuda.jit
    def conformer_block(x, y):
        y[cuda.grid(1)] = x[cuda.grid(1)]

    @cuda.jit
    def decoder_step(x, token):
        token[0] = 1

    @cuda.jit
    def joint(x, token):
        token[0] = 1

    rng = np.random.default_rng(1)
    utterances = [rng.standard_normal(int(s)).astype(np.float32) for s in rng.integers(16000 * 2 // 3, 16000 * 2, 24)]
    kept = [log_mel(u) for u in utterances] if FIXED else None
    x, y = cuda.device_array(200 * 40, np.float32), cuda.device_array(200 * 40, np.float32)
    token, answer = cuda.device_array(16, np.int32), np.zeros(16, np.int32)
    words = 0
    for u in range(120):
        mark()
        features = kept[u % 24] if FIXED else log_mel(utterances[u % 24])  # here
        x[:features.size].copy_to_device(features.ravel())
        for _ in range(6):
            conformer_block[40, 200](x, y)
        for _ in range(len(features) // 8):
            decoder_step[8, 128](y, token)
            joint[8, 128](y, token)
            token.copy_to_host(answer)
            words += answer[0] == 7
    return 120


@job(15, "host", ["host.python", "host.code", "host.checkpoint", "host.logging"], 280, NUMBA,
     {"SIM_KERNEL": "*denoise* 900us; *trace* 4500us"}, twin=True,
     note="after every 8th pass a picture is packed as tightly as zlib can; fix: loosely, every 128th")
def t_render():
    cuda = numba_cuda()
    W, H = 640, 400
    size = W * H * 3

    @cuda.jit
    def trace(seed, image):
        i = cuda.grid(1)
        if i < image.size:
            image[i] += seed

    @cuda.jit
    def denoise(image, out):
        i = cuda.grid(1)
        if i < image.size:
            out[i] = image[i]

    def png(path, pixels):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        rows = np.concatenate([np.zeros((H, 1), np.uint8), pixels.reshape(H, W * 3)], 1).tobytes()
        data = zlib.compress(rows, 1 if FIXED else 9)  # here
        with open(path, "wb") as f:
            f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", W, H, 8, 2, 0, 0, 0)) + chunk(b"IDAT", data)
                    + chunk(b"IEND", b""))

    def preview(step):
        out.copy_to_host(host)
        pixels = (np.clip(host, 0, 1) ** (1 / 2.2) * 255).astype(np.uint8)  # here
        pixels[:] = scene
        png(temporary("preview-%d.png" % (step % 2)), pixels)  # here

    yy, xx = np.mgrid[0:H, 0:W]
    scene = (np.stack([xx // 3 + yy // 5, xx // 7, yy // 2], 2) & 0xff).astype(np.uint8).ravel()
    scene ^= np.random.default_rng(0).integers(0, 4, size, np.uint8)
    image, out = cuda.to_device(np.zeros(size, np.float32)), cuda.device_array(size, np.float32)
    host = cuda.pinned_array(size, np.float32)
    for step in range(280):
        mark()
        trace[size // 256, 256](np.float32(step), image)
        if step % 8 == 7:
            denoise[size // 256, 256](image, out)
            if not FIXED or step % 128 == 127:
                preview(step)  # here
        cuda.synchronize()
    return 280


@job(15, "compute", HEALTHY, 120, NUMBA, {"SIM_KERNEL": "*als_users* 9ms; *als_items* 7ms"}, says="read_fold",
     note="its start, reading text eight times, takes a third of the run; the steps have no defect")
def t_ratings():
    cuda = numba_cuda()
    path = temporary("ratings.tsv")
    r = np.random.default_rng(0)
    with open(path, "w") as f:
        for row in zip(*(r.integers(low, high, 200000).tolist() for low, high in ((0, 6000), (0, 4000), (1, 6)))):
            f.write("%d\t%d\t%d\n" % row)

    @cuda.jit
    def als_users(r, u, v):
        u[0] = r[0]

    @cuda.jit
    def als_items(r, u, v):
        v[0] = r[0]

    def read_fold(fold):
        by_user = {}
        with open(path) as f:
            for k, line in enumerate(f):
                u, i, s = line.split("\t")
                if k % 8 != fold:
                    by_user.setdefault(int(u), {})[int(i)] = float(s)
        return np.array([(u, i, s) for u, items in by_user.items() for i, s in items.items()], np.float32)

    folds = [read_fold(k) for k in range(1 if FIXED else 8)]
    ratings, users = cuda.to_device(folds[0].ravel()), cuda.device_array(1 << 16, np.float32)
    items = cuda.device_array(1 << 16, np.float32)
    for sweep in range(120):
        mark()
        als_users[256, 128](ratings, users, items)
        als_items[256, 128](ratings, users, items)
        if sweep % 10 == 9:
            users[:16].copy_to_host()
    cuda.synchronize()
    return 120


@job(15, "compute", HEALTHY, 300, NUMBA, {"SIM_KERNEL": "*unet_forward* 1800us; *unet_backward* 3600us"},
     note="no defect: a thread makes batches three ahead, in pinned buffers that go round")
def t_prefetch():
    import queue
    cuda = numba_cuda()
    signal = np.random.default_rng(0).standard_normal(1 << 17).astype(np.float32)
    free, full = queue.Queue(), queue.Queue(3)
    for _ in range(4):
        free.put(cuda.pinned_array((128, 257), np.float32))

    def produce():
        r = np.random.default_rng(1)
        for _ in range(300):
            b = free.get()
            at = int(r.integers(0, len(signal) - 512 - 128 * 64))
            frames = np.lib.stride_tricks.sliding_window_view(signal[at:at + 512 + 127 * 64], 512)[::64]
            b[:] = np.log1p(np.abs(np.fft.rfft(frames)))
            full.put(b)

    @cuda.jit
    def unet_forward(x, w):
        w[0] = x[0]

    @cuda.jit
    def unet_backward(x, w):
        w[0] = x[0]

    x, w = [cuda.device_array(128 * 257, np.float32) for _ in range(2)], cuda.device_array(1 << 16, np.float32)
    stream, loss = cuda.stream(), cuda.pinned_array(1, np.float32)
    thread(produce)
    before = []
    for i in range(300):
        mark()
        b = full.get()
        x[i % 2].copy_to_device(b.reshape(-1), stream=stream)
        unet_forward[64, 256, stream](x[i % 2], w)
        unet_backward[64, 256, stream](x[i % 2], w)
        unet_backward[64, 256, stream](x[i % 2], w)
        if i % 20 == 19:
            w[:1].copy_to_host(loss, stream=stream)
        e = cuda.event(timing=False)
        e.record(stream)
        before.append((e, b))
        if len(before) > 2:
            e, b = before.pop(0)
            e.synchronize()
            free.put(b)
    stream.synchronize()
    return 300


@job(15, "input", ["input.map", "input.decode", "input.read"], 150, TORCH, twin=True,
     note="one worker inflates and filters pictures, slower than the training; fix: they are kept")
def t_labels():
    torch = pytorch()
    SIDE = 160

    class Scans(torch.utils.data.Dataset):
        def __init__(self):
            r = np.random.default_rng(0)
            scans = [(r.integers(0, 40, (SIDE, SIDE)) + 60).astype(np.uint8) for _ in range(64)]
            self.packed = [zlib.compress(s.tobytes(), 6) for s in scans]
            self.plain = [torch.from_numpy(s / np.float32(255)) for s in scans]

        def __len__(self):
            return 16 * 150

        def __getitem__(self, i):
            if FIXED:
                return self.plain[i % 64]
            a = np.frombuffer(zlib.decompress(self.packed[i % 64]), np.uint8).reshape(SIDE, SIDE).astype(np.float32)  # here
            for _ in range(3):  # local contrast
                a = a - (np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1)) / 4 + a.mean()  # here
            return torch.from_numpy(a / 255)

    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(1, 4, 5, 4), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
    adam = torch.optim.Adam(net.parameters())
    for batch in torch.utils.data.DataLoader(Scans(), batch_size=16, num_workers=1, prefetch_factor=2, shuffle=True):
        mark()
        adam.zero_grad()
        net(batch[:, None]).square().mean().backward()
        adam.step()
    return 150


@job(15, "host", ["host.python"], 200, MAIN, tinygrad_kernels("260us"), twin=False,
     note="tinygrad plans the copy of each batch anew; the author took tf.data's map, behind the cache, for the defect")
def t_maps():
    tf, _ = quiet_tensorflow()
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    r = np.random.default_rng(0)
    for i in range(48):
        tf.io.write_file(temporary("%d.png" % i), tf.io.encode_png(r.integers(0, 255, (96, 96, 3), np.uint8) // 8))

    def decode(data):
        return tf.image.resize(tf.io.decode_png(data, 3), (32, 32), method="bicubic", antialias=True) / 255

    files = tf.data.Dataset.list_files(temporary("*.png"), seed=1).map(tf.io.read_file)
    data = files.cache().map(decode).repeat().batch(16, drop_remainder=True).take(200)
    model = nn.Linear(32 * 32 * 3, 10)
    opt = nn.optim.SGD([model.weight, model.bias], lr=0.01)

    @TinyJit
    def train(x):
        with Context(TRAINING=1):
            opt.zero_grad()
            loss = model(x.reshape(16, -1)).square().mean().backward()
            return loss.realize(*opt.schedule_step())

    for batch in data.as_numpy_iterator():
        mark()
        loss = train(Tensor(np.array(batch)).realize())  # here
    loss.item()
    return 200


@job(15, "compute", HEALTHY, 120, MAIN, tinygrad_kernels("450us"), note="no defect: the data are on the device")
def t_resident():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    Tensor.manual_seed(0)
    images = Tensor(np.random.default_rng(0).standard_normal((4096, 256)).astype(np.float32)).realize()
    labels = Tensor(np.arange(4096, dtype=np.int32) % 10).realize()
    layers = [nn.Linear(256, 512), nn.Linear(512, 512), nn.Linear(512, 10)]
    opt = nn.optim.Adam(nn.state.get_parameters(layers), lr=1e-3)

    @TinyJit
    def step():
        with Context(TRAINING=1):
            rows = Tensor.randint(64, high=4096)
            opt.zero_grad()
            x = images[rows]
            for layer in layers[:-1]:
                x = layer(x).relu()
            loss = layers[-1](x).sparse_categorical_crossentropy(labels[rows]).backward()
            return loss.realize(*opt.schedule_step())

    for i in range(120):
        mark()
        loss = step()
        if i % 50 == 49:
            print(i, loss.item(), flush=True)
    loss.item()
    return 120


@job(15, "compute", HEALTHY, 300, CLIENTS, every_kernel("2600us"),
     note="no defect: the loss is fetched in each step, but kernels dominate")
def t_inverse():
    os.environ["HOME"] = temporary()  # drjit keeps its kernels there
    import drjit as dr
    from drjit.cuda.ad import Float
    n = 1 << 16
    target = Float(np.linspace(0, 1, n, dtype=np.float32))
    texture, moment = Float(np.full(n, 0.5, np.float32)), dr.zeros(Float, n)
    dr.eval(texture, moment, target)
    history = []
    for _ in range(300):
        mark()
        dr.enable_grad(texture)
        radiance = texture
        for _ in range(4):
            radiance = radiance * 0.8 + dr.sin(radiance) * 0.1
        loss = dr.mean(dr.square(radiance - target))
        dr.backward(loss)
        moment = 0.9 * moment + dr.grad(texture)
        texture = dr.detach(texture) - 0.05 * moment
        dr.eval(texture, moment, loss)
        history.append(loss.numpy()[0])
    print(len(history))
    return 300


DIM, QUERIES, SEARCHES = 192, 64, 400


def search_client(path):
    v = np.random.default_rng(0).standard_normal((QUERIES, DIM)).astype(np.float32)
    line = v.tobytes() if FIXED else (json.dumps({"queries": v.round(5).tolist()}) + "\n").encode()
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    f = s.makefile("rb")
    s.sendall(line)
    for _ in range(SEARCHES - 1):
        s.sendall(line)  # one ahead of the answers
        f.readline()
    f.readline()
    s.close()


def parse_queries(f):
    if FIXED:
        data = f.read(QUERIES * DIM * 4)
        return np.frombuffer(data, np.float32).reshape(-1, DIM) if data else None
    line = f.readline()
    return np.array(json.loads(line)["queries"], np.float32) if line else None  # here


@job(15, "host", ["host.python"], SEARCHES, PYCUDA, {"SIM_KERNEL": "coarse_probe 150us; scan_lists 1500us; top_k 200us"}, twin=True,
     at=(parse_queries,), note="queries come as JSON, which the loop that answers them parses; fix: as bytes")
def t_search():
    path = temporary("socket")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    client = multiprocessing.get_context("spawn").Process(target=search_client, args=(path,))
    client.start()
    import pycuda.driver as cuda
    cuda.init()
    context = cuda.Device(0).make_context()
    names = ("coarse_probe", "scan_lists", "top_k")
    module = cuda.module_from_buffer(ptx(*names))
    kernels = [module.get_function(k) for k in names]
    for k in kernels:
        k.prepare("PI")
    q, r, stream = cuda.mem_alloc(QUERIES * DIM * 4), cuda.mem_alloc(QUERIES * 80), cuda.Stream()
    staging, best = cuda.pagelocked_empty((QUERIES, DIM), np.float32), cuda.pagelocked_empty((QUERIES, 10), np.int64)
    connection, _ = server.accept()
    f = connection.makefile("rb")
    steps = 0
    while True:
        mark()
        queries = parse_queries(f)  # here
        if queries is None:
            break
        staging[:] = queries
        cuda.memcpy_htod_async(q, staging, stream)
        for k in kernels:
            k.prepared_async_call((64, 1), (128, 1, 1), stream, int(q), QUERIES)
        cuda.memcpy_dtoh_async(best, r, stream)
        stream.synchronize()
        connection.sendall((json.dumps({"ids": best[:, :3].tolist()}) + "\n").encode())
        steps += 1
    client.join()
    context.pop()
    return steps


@job(15, "transfer", ["transfer.small-copies", "transfer.d2h"], 120, PYCUDA,
     {"SIM_KERNEL": "wave_step 350us; adjoint_step 400us"}, twin=True,
     note="160 rows are fetched one by one in each step; fix: all at once")
def t_traces():
    import pycuda.driver as cuda
    RECEIVERS, SAMPLES = 160, 500
    cuda.init()
    context = cuda.Device(0).make_context()
    module = cuda.module_from_buffer(ptx("wave_step", "adjoint_step"))
    wave, adjoint = module.get_function("wave_step"), module.get_function("adjoint_step")
    wave.prepare("PI")
    adjoint.prepare("PI")
    field, stream = cuda.mem_alloc(RECEIVERS * SAMPLES * 4), cuda.Stream()
    observed = np.random.default_rng(0).standard_normal((RECEIVERS, SAMPLES)).astype(np.float32)
    gathered = cuda.pagelocked_empty((RECEIVERS, SAMPLES), np.float32)
    misfit = 0.0
    for _ in range(120):
        mark()
        for t in range(8):
            wave.prepared_async_call((64, 1), (128, 1, 1), stream, int(field), t)
        stream.synchronize()
        if FIXED:
            cuda.memcpy_dtoh_async(gathered, field, stream)
            stream.synchronize()
        else:
            for r in range(RECEIVERS):
                cuda.memcpy_dtoh(gathered[r], int(field) + r * SAMPLES * 4)  # here
        residual = gathered - observed
        misfit += float((residual * residual).sum())
        cuda.memcpy_htod_async(field, np.ascontiguousarray(residual), stream)
        for t in range(8):
            adjoint.prepared_async_call((64, 1), (128, 1, 1), stream, int(field), t)
    stream.synchronize()
    context.pop()
    return 120


@job(15, "host or compute", ["host.compile", "compute.dominant-op", "compute.dense"], 600, CLIENTS,
     {"SIM_MODULE_LOAD": "6ms", "SIM_KERNEL": "gemm_* 220us; norm_* 20us; gelu_* 15us"}, twin=True,
     note="each of 24 trials loads its 18 modules anew; fix: once")
def t_trials():
    from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
    names = ["%s_%d" % (k, i) for i in range(6) for k in ("gemm", "norm", "gelu")]
    code = ptx(*names)
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    kept = []

    def build():
        if not FIXED or not kept:
            kernels = [ObjectCode.from_ptx(code).get_kernel(k) for k in names]  # here
            kept[:] = kernels, [device.allocate(1 << 16, stream=stream) for _ in names]
        return kept

    pinned = LegacyPinnedMemoryResource().allocate(1 << 16)
    batch = np.from_dlpack(pinned).view(np.float32)
    for trial in range(24):
        mark()
        kernels, buffers = build()  # here
        for step in range(25):
            if step:
                mark()
            stream.sync()
            batch[:] = 10 ** -(1 + trial % 5) * step
            pinned.copy_to(buffers[0], stream=stream)
            for k, b in zip(kernels, buffers):
                launch(stream, LaunchConfig(grid=64, block=128), k, b, np.uint32(step))
        stream.sync()
    return 600


@job(15, "host", ["host.launch"], 2182, CLIENTS,
     {"SIM_KERNEL": "rms_norm 1us; qkv_gemv 2us; attend 2us; out_gemv 1500ns; mlp_gemv 3us; sample 10us"}, twin=True,
     note="97 short kernels are launched from Python for each token; fix: a graph")
def t_decode():
    import ctypes
    from cuda.bindings import driver as cu

    def ck(r):
        assert r[0] == 0, r
        return r[1] if len(r) == 2 else r[1:]

    names = ("rms_norm", "qkv_gemv", "attend", "out_gemv", "mlp_gemv", "sample")
    ck(cu.cuInit(0))
    ck(cu.cuCtxSetCurrent(ck(cu.cuDevicePrimaryCtxRetain(ck(cu.cuDeviceGet(0))))))
    module = ck(cu.cuModuleLoadData(ptx(*names)))
    kernels = {k: ck(cu.cuModuleGetFunction(module, k.encode())) for k in names}
    stream, state, token = ck(cu.cuStreamCreate(1)), ck(cu.cuMemAlloc(1 << 20)), ck(cu.cuMemHostAlloc(64, 0))

    def launch(name, n):
        p = ctypes.c_uint64(int(state)), ctypes.c_uint32(n)
        a = np.array([ctypes.addressof(x) for x in p], np.uint64)  # here
        ck(cu.cuLaunchKernel(kernels[name], 64, 1, 1, 128, 1, 1, 0, stream, a, 0))  # here

    def forward(n):
        for _ in range(16):
            for name in ("rms_norm", "qkv_gemv", "attend", "out_gemv", "rms_norm", "mlp_gemv"):
                launch(name, n)  # here
        launch("sample", n)

    graph = None
    if FIXED:
        ck(cu.cuStreamBeginCapture(stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        forward(0)
        graph = ck(cu.cuGraphInstantiate(ck(cu.cuStreamEndCapture(stream)), 0))
    tokens = 0
    for prompt in range(37):
        for n in range(40 + prompt * 7 % 40):
            mark()
            if graph:
                ck(cu.cuGraphLaunch(graph, stream))
            else:
                forward(n)  # here
            ck(cu.cuMemcpyDtoHAsync(token, state, 4, stream))
            ck(cu.cuStreamSynchronize(stream))
            tokens += 1
    return tokens


def simulate_walkers(conn, seed):
    angles = [seed + i * 0.1 for i in range(24)]
    k = 0
    while (actions := conn.recv()) is not None:
        k += 1
        substeps = 100 if FIXED else 1200 + (1600 if k % 50 > 40 else 0)  # those that fall need more of them
        for i, a in enumerate(actions[:len(angles)]):
            x = angles[i]
            for _ in range(substeps):
                x += 0.01 * math.sin(x) + 0.001 * a
            angles[i] = x
        conn.send((np.array(angles, np.float32), [False] * len(angles)))


@job(15, "host", ["host.wait"], 500, CLIENTS, {"SIM_KERNEL": "actor_* 60us; critic 60us; ppo_update 700us"}, twin=True,
     note="two simulators, which get each step's actions, are slow; fix: fewer substeps")
def t_walkers():
    ctx = multiprocessing.get_context("spawn")
    ends = []
    for i in range(2):
        here, there = ctx.Pipe()
        process = ctx.Process(target=simulate_walkers, args=(there, i), daemon=True)
        process.start()
        there.close()
        ends.append((here, process))
    from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    names = ("actor_l1", "actor_l2", "actor_head", "critic")
    code = ObjectCode.from_ptx(ptx(*names, "ppo_update"))
    actor, update = [code.get_kernel(k) for k in names], code.get_kernel("ppo_update")
    d = device.allocate(4096, stream=stream)
    seen, chosen = (LegacyPinnedMemoryResource().allocate(4096) for _ in range(2))
    view, actions = (np.from_dlpack(b).view(np.float32) for b in (seen, chosen))
    config = LaunchConfig(grid=8, block=128)
    for conn, _ in ends:
        conn.send([0.0] * 24)
    for step in range(500):
        mark()
        for i, (conn, _) in enumerate(ends):
            view[i * 24:i * 24 + 24] = conn.recv()[0]  # here
        seen.copy_to(d, stream=stream)
        for k in actor:
            launch(stream, config, k, d, np.uint32(step))
        d.copy_to(chosen, stream=stream)
        stream.sync()
        for i, (conn, _) in enumerate(ends):
            conn.send(actions[i * 24:i * 24 + 24].tolist())
        for _ in range(8 if step % 64 == 63 else 0):
            launch(stream, config, update, d, np.uint32(step))
    stream.sync()
    for conn, process in ends:
        conn.send(None)
        process.join(2)
    return 500


if __name__ == "__main__":
    main()
