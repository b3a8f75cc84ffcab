"""Jobs of numba's whose host is in the way."""
import math
import os
import random
import time

import numpy as np
from stranger import FIXED, NUMBA, Numba, burn, every_kernel, filled, job, kernels, main, mark, ones, temporary, thread

USUAL = kernels("2ms", "3ms", "500us")
THIRD = kernels("400us", "600us", "100us")
FOURTH = kernels("700us", "1100us", "200us")


# Launching, waiting, allocating, compiling.

@job(1, "host", ["host.launch"], 50, NUMBA, kernels("10us", "10us", "10us"), note="300 tiny launches a step")
def nb_launch():
    nb = Numba()
    x = nb.cuda.to_device(ones(1 << 10))
    y = nb.cuda.to_device(ones(1 << 10))
    for _ in range(50):
        for _ in range(100):
            nb.three(x, y, 4)
        nb.cuda.synchronize()
    return 50


@job(4, "host", ["host.launch"], 80, NUMBA, kernels("4us", "4us", "4us"),
     note="an optimizer that launches three kernels for each of 40 parameters, 4 us each")
def nb_per_parameter():
    nb = Numba()
    parameters = [nb.cuda.to_device(ones(256)) for _ in range(40)]
    x = nb.cuda.to_device(ones(256))
    for i in range(80):
        mark()
        x.copy_to_device(filled(256, i))
        for parameter in parameters:
            nb.three(x, parameter, 1)
        nb.cuda.synchronize()
    return 80


@job(1, "host", ["host.sync"], 80, NUMBA, kernels("400us", "400us", "50us"), note="waits after each of 8 small kernels")
def nb_sync():
    nb = Numba()
    x = nb.cuda.to_device(ones(1 << 12))
    y = nb.cuda.to_device(ones(1 << 12))
    for _ in range(80):
        for _ in range(6):
            nb.opt[16, 256](x, y)
            nb.cuda.synchronize()
        nb.fwd[16, 256](x, y)
        nb.cuda.synchronize()
        nb.bwd[16, 256](x, y)
        nb.cuda.synchronize()
    return 80


@job(1, "host", ["host.compile"], 40, NUMBA, {"SIM_KERNEL": "* 1ms"}, note="a closure compiled anew in each step")
def nb_recompile():
    nb = Numba()
    cuda = nb.cuda
    y = cuda.to_device(ones(1 << 10))
    for i in range(40):
        factor = float(i)

        @cuda.jit
        def scale(y):
            j = cuda.grid(1)
            if j < y.size:
                y[j] *= factor

        scale[4, 256](y)
        cuda.synchronize()
    return 40


@job(1, "host", ["host.alloc"], 60, NUMBA, {"SIM_KERNEL": "* 500us", "SIM_ALLOC_COST": "400us"},
     note="allocates and frees 12 arrays a step, no pool")
def nb_alloc():
    nb = Numba()
    x = nb.cuda.to_device(ones(1 << 10))
    for i in range(60):
        arrays = [nb.cuda.device_array((1 << 18) + 1000 * i + 10 * k, np.float32) for k in range(12)]
        nb.fwd[4, 256](x, arrays[0])
        nb.bwd[4, 256](x, arrays[1])
        nb.opt[4, 256](x, arrays[2])
        nb.cuda.synchronize()
        del arrays
        nb.cuda.current_context().deallocations.clear()
    return 60


# Python between the steps.

@job(1, "host", ["host.python"], 80, NUMBA, USUAL, note="metrics in Python on the host each step")
def nb_metrics():
    nb = Numba()
    x = nb.cuda.to_device(ones(1 << 14))
    y = nb.cuda.to_device(ones(1 << 14))
    out = np.empty(1 << 14, np.float32)

    def score(values):
        counts = {}
        for v in values[:9000].tolist():
            counts[int(v) % 97] = counts.get(int(v) % 97, 0) + 1
        total = 0
        for k in sorted(counts):
            total += counts[k] * k
        return total + burn(5)

    for _ in range(80):
        nb.three(x, y)
        y.copy_to_host(out)
        score(np.nan_to_num(out))
    return 80


@job(1, "host", ["host.python", "host.gc", "host.unknown"], 80, NUMBA, USUAL, note="gc.collect() each step over 150,000 objects")
def nb_gc():
    import gc
    nb = Numba()
    x = nb.cuda.to_device(ones(1 << 12))
    y = nb.cuda.to_device(ones(1 << 12))
    junk = [[i] for i in range(150000)]
    for _ in range(80):
        nb.step(x, y, 16)
        gc.collect()
    del junk
    return 80


@job(1, "any", ["*"], 90, NUMBA, USUAL, note="slow rise: each step's host work grows 0.2 ms (a list that is searched)")
def nb_rise():
    nb = Numba()
    x = nb.cuda.to_device(ones(1 << 12))
    y = nb.cuda.to_device(ones(1 << 12))
    for i in range(90):
        burn(0.2 * i)
        nb.step(x, y, 16)
    return 90


@job(2, "any", ["input.*", "host.python"], 100, NUMBA, USUAL, note="4 s of imports and tables first, then batches made by `prepare`")
def nb_long_start():
    rows = {}
    end = time.perf_counter() + 4
    while time.perf_counter() < end:
        rows[len(rows) % 5000] = [math.sin(v) for v in range(200)]
    nb = Numba()
    y = nb.cuda.to_device(ones(1 << 14))

    def prepare(i):
        end = time.perf_counter() + 0.010
        total = 0
        while time.perf_counter() < end:  # here
            total += sum(rows[i])  # here
        return filled(1 << 14, total)

    for i in range(100):
        batch = prepare(i)  # here
        x = nb.cuda.to_device(batch)
        nb.step(x, y)
    return 100


@job(3, "any", ["host.python", "input.*"], 80, NUMBA, THIRD, twin=True,
     note="mixup in Python before the step 7 ms, running averages in Python after it 3 ms; fix: mixup")
def nb_two_places():
    nb = Numba()
    y = nb.cuda.to_device(ones(1 << 14))
    rng = random.Random(4)
    rows = [[rng.random() for _ in range(60)] for _ in range(200)]
    average = {}

    def mixup(i):
        out = []
        end = time.perf_counter() + (0 if FIXED else 0.007)
        while time.perf_counter() < end:  # here
            out = [a * 0.3 + b * 0.7 for a, b in zip(rows[i % 200], rows[(i * 7) % 200])]  # here
        return filled(1 << 14, len(out))

    def averages(i):
        end = time.perf_counter() + 0.003
        while time.perf_counter() < end:
            for k in range(50):
                average[k] = average.get(k, 0) * 0.9 + i

    for i in range(80):
        mark()
        batch = mixup(i)
        x = nb.cuda.to_device(batch)
        nb.step(x, y)
        averages(i)
    return 80


@job(3, "any", ["host.python", "transfer.fallback"], 60, NUMBA, every_kernel("1ms"), twin=True,
     note="k-means: labels fetched, centres averaged by a Python loop (10 ms), centres sent")
def nb_kmeans():
    nb = Numba()
    points_there = nb.cuda.to_device(ones(1 << 16))
    labels = nb.cuda.device_array(1 << 12, np.float32)
    points = np.random.rand(1 << 12).tolist()
    for _ in range(60):
        mark()
        centres = nb.cuda.to_device(ones(256))
        nb.fwd[64, 256](centres, points_there)
        nb.bwd[64, 256](points_there, labels)
        labels.copy_to_host()
        sums = [0.0] * 256
        end = time.perf_counter() + (0 if FIXED else 0.010)
        while time.perf_counter() < end:  # here
            for v, k in zip(points[:200], range(200)):  # here
                sums[k] += v  # here
    return 60


# Sleeping, waiting, writing.

@job(1, "any", ["*"], 100, NUMBA, USUAL, note="after step 50 the loader takes 15 ms instead of 0: a change point")
def nb_change():
    nb = Numba()
    y = nb.cuda.to_device(ones(1 << 14))
    for i in range(100):
        if i >= 50:
            time.sleep(0.015)
        x = nb.cuda.to_device(ones(1 << 14))
        nb.step(x, y)
    return 100


@job(4, "host", ["host.sleep"], 80, NUMBA, FOURTH, twin=True,
     note="a throttle to at most 80 steps a second, written as a class with a token bucket")
def nb_bucket():
    nb = Numba()
    y = nb.cuda.to_device(ones(1 << 14))

    class Bucket:
        def __init__(self, rate):
            self.rate = rate
            self.at = time.monotonic()

        def take(self):
            self.at += 1 / self.rate
            left = self.at - time.monotonic()
            if left > 0 and not FIXED:
                time.sleep(left)  # here

    bucket = Bucket(80)
    data = np.random.rand(80, 1 << 14).astype("f")
    for i in range(80):
        mark()
        x = nb.cuda.to_device(data[i])
        nb.step(x, y)
        bucket.take()
    return 80


@job(1, "host", ["host.wait", "host.python", "host.unknown", "host.sleep", "host.logging"], 60, NUMBA, USUAL,
     note="an HTTP tracker answered in 8 ms each step")
def nb_http():
    import http.client
    import http.server

    class Tracker(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(0.008)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tracker)
    thread(server.serve_forever)
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    nb = Numba()
    x = nb.cuda.to_device(ones(1 << 12))
    y = nb.cuda.to_device(ones(1 << 12))

    def track():
        connection.request("POST", "/", body=b"x" * 100)
        connection.getresponse().read()

    for _ in range(60):
        nb.step(x, y, 16)
        track()
    return 60


@job(1, "host", ["host.logging", "host.python"], 100, NUMBA, USUAL, note="each 4th step logs 1500 lines to a file handler")
def nb_logging():
    import logging
    nb = Numba()
    x = nb.cuda.to_device(ones(1 << 12))
    y = nb.cuda.to_device(ones(1 << 12))
    log = logging.getLogger("t")
    log.setLevel(10)
    log.addHandler(logging.FileHandler(temporary("log.txt")))
    log.propagate = False
    for i in range(100):
        nb.step(x, y, 16)
        if i % 4 == 0:
            for k in range(1500):
                log.info("step %d value %d", i, k)
    return 100


@job(1, "host", ["host.checkpoint"], 100, NUMBA, USUAL, note="every 5 steps weights of 24 MB are fetched and written with fsync")
def nb_checkpoint():
    nb = Numba()
    weights = nb.cuda.to_device(ones(6 << 20))
    x = nb.cuda.to_device(ones(1 << 12))
    for i in range(100):
        nb.step(x, weights, 16)
        if i % 5 == 4:
            with open(temporary("ck%d.bin" % i), "wb") as f:
                np.save(f, weights.copy_to_host())
                f.flush()
                os.fsync(f.fileno())
    return 100


@job(4, "any", ["host.checkpoint"], 100, NUMBA, FOURTH, note="each tenth step fetches 8 MB of weights and writes a compressed npz")
def nb_npz_each_ten():
    nb = Numba()
    weights = nb.cuda.to_device(np.random.rand(1 << 18).astype("f"))
    x = nb.cuda.to_device(ones(1 << 12))
    for i in range(100):
        mark()
        x.copy_to_device(filled(1 << 12, i))
        nb.step(x, weights, 16)
        if i % 10 == 9 and not FIXED:
            np.savez_compressed(temporary("w.npz"), w=weights.copy_to_host(), step=i)  # here
    return 100


if __name__ == "__main__":
    main()
