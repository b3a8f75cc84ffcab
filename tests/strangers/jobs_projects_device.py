"""Batch 13: numba's, pycuda's, tinygrad's and drjit's jobs on the simulated GPU."""
import os
import struct
import subprocess
import sys
import warnings
import zlib

import numpy as np
from stranger import CLIENTS, FIXED, NUMBA, PYCUDA, job, main, mark, temporary, tinygrad_kernels


@job(13, "transfer", ["transfer.h2d-pageable", "transfer.d2h"], 300, NUMBA,
     {"SIM_KERNEL": "*diffuse* 400us; *edges* 40us"}, twin=True,
     note="kernels are called with numpy's arrays, which numba copies there and back; fix: arrays on the device")
def z_nb_heat_host_arrays():
    from numba import cuda
    warnings.filterwarnings("ignore")

    @cuda.jit
    def diffuse(old, new, k):
        i, j = cuda.grid(2)
        if 0 < i < old.shape[0] - 1 and 0 < j < old.shape[1] - 1:
            new[i, j] = old[i, j] + k * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1] - 4 * old[i, j])

    @cuda.jit
    def edges(grid, left, right):
        i = cuda.grid(1)
        if i < grid.shape[0]:
            grid[i, 0], grid[i, grid.shape[1] - 1] = left, right

    class Plate:
        def __init__(self, n):
            self.old, self.new = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
            if FIXED:
                self.old, self.new = cuda.to_device(self.old), cuda.to_device(self.new)
            self.blocks = (n + 15) // 16

        def advance(self, k):
            diffuse[(self.blocks, self.blocks), (16, 16)](self.old, self.new, k)  # here
            edges[self.blocks, 16](self.new, 1.0, 0.0)  # here
            self.old, self.new = self.new, self.old

    plate = Plate(1024)
    for step in range(300):
        mark()
        plate.advance(0.2)
        if FIXED:
            cuda.synchronize()
    return 300


@job(13, "host", ["host.alloc"], 300, NUMBA,
     {"SIM_KERNEL": "*knn_features* 60us; *reduce_loss* 20us", "SIM_ALLOC_COST": "400us"}, twin=True,
     note="each of a batch's eight arrays gets new pinned memory; fix: kept")
def z_nb_pin_every_batch():
    from numba import cuda
    warnings.filterwarnings("ignore")
    N, BATCHES, EPOCHS = 65536, 100, 3

    @cuda.jit
    def knn_features(points, out):
        i = cuda.grid(1)
        if i < points.shape[0]:
            out[i] = points[i, 0] + points[i, 1]

    @cuda.jit
    def reduce_loss(out, loss):
        if cuda.grid(1) == 0:
            loss[0] = out[0]

    class Stager:
        def __init__(self):
            self.stream, self.pool = cuda.stream(), {}

        def buffer(self, shape, slot):
            """A pinned array for one array of a batch."""
            if FIXED:
                if slot not in self.pool:
                    self.pool[slot] = cuda.pinned_array(shape, np.float32)
                return self.pool[slot]
            return cuda.pinned_array(shape, np.float32)  # here

        def upload(self, arrays, targets):
            for slot, (a, d) in enumerate(zip(arrays, targets)):
                host = self.buffer(a.shape, slot)  # here
                host[:] = a
                d.copy_to_device(host, stream=self.stream)

    def run(stager, batches):
        out, loss = cuda.device_array(N, np.float32), cuda.device_array(1, np.float32)
        on_device = [cuda.device_array((N // 8, 3), np.float32) for _ in range(8)]
        for epoch in range(EPOCHS):
            for b in range(BATCHES):
                mark()
                stager.upload(batches[b % len(batches)], on_device)
                for d in on_device:
                    knn_features[N // 8 // 128, 128, stager.stream](d, out)
                reduce_loss[1, 32, stager.stream](out, loss)
                loss.copy_to_host(stream=stager.stream)
                stager.stream.synchronize()

    rng = np.random.default_rng(0)
    run(Stager(), [[rng.random((N // 8, 3), dtype=np.float32) for _ in range(8)] for _ in range(4)])
    return BATCHES * EPOCHS


@job(13, "host", ["host.python", "host.checkpoint", "host.code"], 240, NUMBA,
     {"SIM_KERNEL": "*gray_scott* 250us; *to_bytes* 40us"}, twin=True,
     note="every frame becomes a PNG on the loop's thread; fix: every 20th")
def z_nb_movie_frames():
    from numba import cuda
    warnings.filterwarnings("ignore")
    SIDE, FRAMES = 384, 240

    @cuda.jit
    def gray_scott(u, v, u2, v2):
        i, j = cuda.grid(2)
        if i < u.shape[0] and j < u.shape[1]:
            u2[i, j] = u[i, j] - u[i, j] * v[i, j] * v[i, j]
            v2[i, j] = v[i, j] + u[i, j] * v[i, j] * v[i, j]

    @cuda.jit
    def to_bytes(v, picture):
        i, j = cuda.grid(2)
        if i < v.shape[0] and j < v.shape[1]:
            picture[i, j] = int(v[i, j] * 255) & 255

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    def png(pixels, level):
        rows = np.zeros((SIDE, SIDE + 1), np.uint8)
        rows[:, 1:] = pixels
        head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
        body = zlib.compress(rows.tobytes(), level)  # here
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")

    class Movie:
        def __init__(self, folder):
            self.folder, self.count = folder, 0

        def add(self, pixels):
            if not FIXED or self.count % 20 == 0:
                data = png(pixels, 9)  # here
                with open("%s/%05d.png" % (self.folder, self.count % 50), "wb") as f:
                    f.write(data)
            self.count += 1

    noise = (np.random.default_rng(0).random((SIDE, SIDE)) * 40).astype(np.uint8)
    u, v, u2, v2 = (cuda.to_device(np.random.default_rng(i).random((SIDE, SIDE), np.float32)) for i in range(4))
    picture, host = cuda.device_array((SIDE, SIDE), np.uint8), cuda.pinned_array((SIDE, SIDE), np.uint8)
    grid, block = (SIDE // 16, SIDE // 16), (16, 16)
    movie = Movie(temporary())
    for frame in range(FRAMES):
        mark()
        for _ in range(4):
            gray_scott[grid, block](u, v, u2, v2)
            u, v, u2, v2 = u2, v2, u, v
        to_bytes[grid, block](v, picture)
        picture.copy_to_host(host)
        movie.add(host + noise)  # here
    return FRAMES


GATEWAY = """
import sys, time, array
pace, blocks, size = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
block = array.array("f", [i * 0.001 for i in range(size)]).tobytes()
for _ in range(blocks):
    time.sleep(pace)
    sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()
"""


@job(13, "input or host", ["input.unknown", "host.wait", "input.read"], 500, NUMBA,
     {"SIM_KERNEL": "*zscore* 600us; *adapt* 50us"}, twin=True,
     note="blocks come through a pipe from a process that sleeps 6.5 ms before each; fix: without sleeping")
def z_nb_ticks_from_pipe():
    from numba import cuda
    warnings.filterwarnings("ignore")
    BLOCK, BLOCKS = 8192, 500

    @cuda.jit
    def zscore(ticks, state, out):
        i = cuda.grid(1)
        if i < ticks.shape[0]:
            out[i] = (ticks[i] - state[0]) / state[1]

    @cuda.jit
    def adapt(ticks, state):
        if cuda.grid(1) == 0:
            state[0] = 0.99 * state[0] + 0.01 * ticks[0]

    class Source:
        """The blocks that the gateway prints."""

        def __init__(self):
            pace = "0" if FIXED else "0.0065"
            self.process = subprocess.Popen([sys.executable, "-c", GATEWAY, pace, str(BLOCKS), str(BLOCK)], stdout=subprocess.PIPE)

        def __iter__(self):
            while True:
                data = self.process.stdout.read(4 * BLOCK)  # here
                if len(data) < 4 * BLOCK:
                    return
                yield np.frombuffer(data, np.float32)

    def score():
        ticks = cuda.device_array(BLOCK, np.float32)
        state, out = cuda.to_device(np.array([1, 1], np.float32)), cuda.device_array(BLOCK, np.float32)
        alarms, host = 0, np.zeros(BLOCK, np.float32)
        mark()
        for block in Source():  # here
            ticks.copy_to_device(block)
            zscore[BLOCK // 256, 256](ticks, state, out)
            adapt[1, 32](ticks, state)
            out.copy_to_host(host)
            alarms += int(host[0] > 3)
            mark()
        return alarms

    print("alarms", score())
    return BLOCKS


@job(13, "transfer", ["transfer.small-copies"], 600, PYCUDA,
     {"SIM_KERNEL": "attend 90us; feed_forward 120us; project 300us"}, twin=True,
     note="the states of 160 beams are sent one by one; fix: in one copy")
def z_pc_beams_one_by_one():
    import pycuda.autoinit  # noqa: F401
    import pycuda.driver as drv
    PTX = b".version 8.0\n.target sm_80\n.address_size 64\n" + b"".join(
        b".visible .entry %s(.param .u64 x, .param .u64 y) { ret; }\n" % n for n in (b"attend", b"feed_forward", b"project")) + b"\0"

    class Decoder:
        def __init__(self, beams, width):
            mod = drv.module_from_buffer(PTX)
            self.attend, self.feed_forward, self.project = (mod.get_function(n) for n in ("attend", "feed_forward", "project"))
            self.states = drv.pagelocked_zeros((beams, width), np.float32)
            self.d_states, self.d_scores = drv.mem_alloc(self.states.nbytes), drv.mem_alloc(beams * 32)
            self.scores = drv.pagelocked_zeros((beams, 8), np.float32)

        def upload(self):
            if FIXED:
                drv.memcpy_htod(self.d_states, self.states)
                return
            row = self.states.strides[0]
            for b in range(len(self.states)):
                drv.memcpy_htod(int(self.d_states) + b * row, self.states[b])  # here

        def token(self):
            self.upload()  # here
            for layer in range(4):
                self.attend(self.d_states, self.d_scores, block=(128, 1, 1), grid=(64, 1))
                self.feed_forward(self.d_states, self.d_scores, block=(128, 1, 1), grid=(64, 1))
            self.project(self.d_states, self.d_scores, block=(128, 1, 1), grid=(200, 1))
            drv.memcpy_dtoh(self.scores, self.d_scores)
            best = self.scores.argmax(1)
            self.states[:, 0] = best
            return int(best[0])

    decoder = Decoder(160, 256)
    for sentence in range(12):
        for position in range(50):
            mark()
            decoder.token()
    return 12 * 50


@job(13, "host", ["host.python"], 90, sim=tinygrad_kernels("40us"), twin=True,
     note="no TinyJit; fix: with it")
def z_tg_no_jit():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context

    class TwoHeads:
        def __init__(self):
            self.a, self.b = nn.Linear(24, 64), nn.Linear(64, 64)
            self.left, self.right = nn.Linear(64, 4), nn.Linear(64, 2)

        def __call__(self, x):
            h = self.b(self.a(x).relu()).relu()
            return self.left(h), self.right(h)

    model = TwoHeads()
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)

    def train_step(x, left, right):
        with Context(TRAINING=1):
            optimizer.zero_grad()
            a, b = model(x)
            loss = (a.sparse_categorical_crossentropy(left) + b.sparse_categorical_crossentropy(right)).backward()
            return loss.realize(*optimizer.schedule_step())  # here

    def batches(n, rng):
        for _ in range(n):
            yield (Tensor(rng.random((32, 24), dtype=np.float32)).realize(), Tensor(rng.integers(0, 4, 32).astype(np.int32)).realize(),
                   Tensor(rng.integers(0, 2, 32).astype(np.int32)).realize())

    step = TinyJit(train_step) if FIXED else train_step
    for i, (x, left, right) in enumerate(batches(90, np.random.default_rng(0))):
        mark()
        loss = step(x, left, right)  # here
        if i % 30 == 29:
            print("step %d loss %.3f" % (i + 1, loss.item()))
    return 90


@job(13, "host", ["host.compile"], 140, CLIENTS,
     {"SIM_KERNEL_DEFAULT": "2ms", "SIM_MODULE_LOAD": "12ms"}, twin=True,
     note="a Python float that changes makes a new kernel in every step; fix: dr.opaque")
def z_dj_literal_schedule():
    os.environ["HOME"] = temporary()  # no cache of kernels from an earlier run
    import drjit as dr
    from drjit.cuda.ad import Float, UInt32
    PIXELS, ITERATIONS = 1 << 14, 140

    class Scene:
        def __init__(self):
            self.albedo, self.light = Float(np.full(PIXELS, 0.4, np.float32)), Float(1.5)

        def render(self):
            i = dr.arange(UInt32, PIXELS)
            u = Float(i % 128) / 128
            shade = dr.fma(u, self.light, 0.1)
            for bounce in range(12):
                shade = dr.fma(shade, self.albedo, 0.03 * dr.sin(shade + bounce))
            return shade

    def optimise(scene, target):
        for it in range(ITERATIONS):
            mark()
            rate = 0.5 * 0.98 ** it
            rate = dr.opaque(Float, rate) if FIXED else rate
            dr.enable_grad(scene.albedo)
            loss = dr.mean(dr.square(scene.render() - target))
            dr.backward(loss)
            scene.albedo = dr.clip(dr.detach(scene.albedo) - rate * dr.grad(scene.albedo), 0, 1)
            dr.eval(scene.albedo, loss)  # here
            dr.sync_thread()
        return loss

    scene = Scene()
    target = dr.opaque(Float, 0.7, PIXELS)
    print("done", optimise(scene, target).numpy().shape)
    return ITERATIONS


if __name__ == "__main__":
    main()
