"""Jobs of numba's: what the device does, what is copied, and how batches come. What the host does stands in jobs_numba_host.py."""
import os
import queue
import random
import socket
import threading
import time
import zlib

import numpy as np
from stranger import FIXED, NUMBA, Numba, burn, filled, job, kernels, main, mark, ones, temporary, thread

USUAL = kernels("2ms", "3ms", "500us")
SHORT = kernels("300us", "500us", "100us")
THIRD = kernels("400us", "600us", "100us")
FOURTH = kernels("700us", "1100us", "200us")
ONE_MS = kernels("1ms", "1ms", "200us")
PACKED = zlib.compress(random.Random(1).randbytes(1 << 16) * 24)


# Computing.

@job(1, "compute", ["compute.*"], 80, NUMBA, USUAL, note="nothing is wrong")
def nb_plain():
    nb = Numba()
    x = nb.cuda.to_device(ones(1 << 16))
    y = nb.cuda.to_device(ones(1 << 16))
    for _ in range(80):
        nb.step(x, y, 256)
    return 80


@job(1, "compute", ["compute.*"], 30, NUMBA, USUAL, note="accumulation: 4 micro-steps and one optimizer step: 30 steps")
def nb_accumulate():
    nb = Numba()
    y = nb.cuda.to_device(ones(1 << 14))
    for _ in range(30):
        for _ in range(4):
            x = nb.cuda.to_device(ones(1 << 14))
            nb.fwd[64, 256](x, y)
            nb.bwd[64, 256](x, y)
        nb.opt[64, 256](x, y)
        nb.cuda.synchronize()
    return 30


@job(1, "compute", ["compute.*"], 80, NUMBA, USUAL, note="double buffering, pinned, two streams; well tuned")
def nb_tuned():
    nb = Numba()
    cuda = nb.cuda
    computing, copying = cuda.stream(), cuda.stream()
    host = [cuda.pinned_array(1 << 16, dtype=np.float32) for _ in range(2)]
    device = [cuda.device_array(1 << 16, np.float32) for _ in range(2)]
    y = cuda.device_array(1 << 16, np.float32)
    copied = [cuda.event(), cuda.event()]
    done = [cuda.event(), cuda.event()]
    for i in range(80):
        b = i & 1
        if i > 1:
            done[b].synchronize()
        host[b][:] = i
        device[b].copy_to_device(host[b], stream=copying)
        copied[b].record(copying)
        copied[b].wait(computing)
        nb.fwd[256, 256, computing](device[b], y)
        nb.bwd[256, 256, computing](device[b], y)
        nb.opt[256, 256, computing](device[b], y)
        done[b].record(computing)
    computing.synchronize()
    return 80


@job(3, "compute", ["compute.*"], 80, NUMBA, kernels("900us", "1400us", "200us"),
     note="no defect: small batch from memory each step, three kernels, a wait")
def nb_honest():
    nb = Numba()
    y = nb.cuda.to_device(ones(1 << 12))
    data = np.random.rand(80, 1 << 12).astype("f")
    for i in range(80):
        x = nb.cuda.to_device(data[i])
        nb.step(x, y)
    return 80


@job(1, "any", ["*"], 80, NUMBA, USUAL, note="evaluation of 60 forward batches after each 20 steps takes longer than training")
def nb_eval():
    nb = Numba()
    y = nb.cuda.to_device(ones(1 << 14))
    out = np.empty(1 << 14, np.float32)
    for _ in range(4):
        for _ in range(20):
            x = nb.cuda.to_device(ones(1 << 14))
            nb.step(x, y)
        for _ in range(60):
            x = nb.cuda.to_device(ones(1 << 14))
            nb.fwd[64, 256](x, y)
            y.copy_to_host(out)
    return 80


@job(2, "compute", ["compute.*"], 75, NUMBA, USUAL, note="3 epochs of 25, evaluation of 10 forward batches each")
def nb_epochs():
    nb = Numba()
    y = nb.cuda.to_device(ones(1 << 14))
    out = np.empty(1 << 14, np.float32)
    for _ in range(3):
        for _ in range(25):
            x = nb.cuda.to_device(ones(1 << 14))
            nb.step(x, y)
        for _ in range(10):
            x = nb.cuda.to_device(ones(1 << 14))
            nb.fwd[64, 256](x, y)
            y.copy_to_host(out)
    return 75


@job(1, "any", ["*"], 45, NUMBA, USUAL, note="rollout 16 acts with env steps of 1 ms, then 3 update batches: 15 rounds")
def nb_rollout():
    nb = Numba()
    x = nb.cuda.to_device(ones(1 << 10))
    y = nb.cuda.to_device(ones(1 << 10))
    out = np.empty(1 << 10, np.float32)
    for _ in range(15):
        for _ in range(16):
            nb.opt[4, 256](x, y)
            y.copy_to_host(out)
            burn(1)
        for _ in range(3):
            nb.step(x, y, 4)
    return 45


# Copies.

@job(1, "transfer", ["transfer.h2d*", "transfer.*const*"], 60, NUMBA, ONE_MS, note="a constant table of 32 MB is sent each step")
def nb_constant():
    nb = Numba()
    table = ones(8 << 20)
    y = nb.cuda.to_device(ones(8 << 20))
    for i in range(60):
        sent = nb.cuda.to_device(table)
        x = nb.cuda.to_device(filled(1 << 12, i))
        nb.fwd[256, 256](sent, y)
        nb.bwd[256, 256](x, y)
        nb.opt[256, 256](x, y)
        nb.cuda.synchronize()
    return 60


@job(1, "transfer", ["transfer.d2h*"], 60, NUMBA, ONE_MS, note="fetches the whole activations each step for logging")
def nb_fetch():
    nb = Numba()
    x = nb.cuda.to_device(ones(6 << 20))
    y = nb.cuda.to_device(ones(6 << 20))
    total = 0
    for _ in range(60):
        nb.three(x, y, 256)
        activations = y.copy_to_host()
        total += activations[0]
    return 60


@job(1, "transfer", ["transfer.small-copies", "transfer.*", "host.launch"], 50, NUMBA, kernels("300us", "300us", "100us"),
     note="200 scalars copied one by one each step")
def nb_scalars():
    nb = Numba()
    y = nb.cuda.to_device(ones(1 << 12))
    scalars = [nb.cuda.device_array(16, np.float32) for _ in range(200)]
    one = ones(16)
    for _ in range(50):
        for scalar in scalars:
            scalar.copy_to_device(one)
        nb.fwd[16, 256](scalars[0], y)
        nb.bwd[16, 256](scalars[1], y)
        nb.opt[16, 256](scalars[2], y)
        nb.cuda.synchronize()
    return 50


@job(2, "transfer", ["transfer.*"], 60, NUMBA, SHORT, note="activations fetched (12 MB) and sent back at the next step's begin")
def nb_back_again():
    nb = Numba()
    n = 3 << 20
    x = nb.cuda.to_device(ones(n))
    y = nb.cuda.to_device(ones(n))
    home = ones(n)
    for _ in range(60):
        x.copy_to_device(home)
        nb.three(x, y, 256)
        y.copy_to_host(home)
    return 60


@job(2, "transfer", ["transfer.d2h*", "transfer.*"], 60, NUMBA, SHORT,
     note="the same weights (16 MB) are fetched each step for a check of their norm")
def nb_weights_home():
    nb = Numba()
    weights = nb.cuda.to_device(ones(4 << 20))
    x = nb.cuda.to_device(ones(1 << 12))
    for i in range(60):
        x.copy_to_device(filled(1 << 12, i))
        nb.three(x, weights, 16)
        home = weights.copy_to_host()
        assert home[0] == 1
    return 60


@job(3, "transfer", ["transfer.d2h*"], 60, NUMBA, THIRD, twin=True, says="same|again",
     note="an average of the weights is kept on the host: the same 16 MB come in each step")
def nb_average():
    nb = Numba()
    weights = nb.cuda.to_device(ones(4 << 20))
    x = nb.cuda.to_device(ones(1 << 12))
    home = np.empty(4 << 20, np.float32)
    for i in range(60):
        mark()
        x.copy_to_device(filled(1 << 12, i))
        nb.three(x, weights, 16)
        if FIXED:
            nb.cuda.synchronize()
        else:
            weights.copy_to_host(home)
    return 60


# Batches that come too late.

@job(1, "input", ["input.*"], 100, NUMBA, USUAL, note="producer thread sleeps 12 ms per batch (network)")
def nb_queue():
    nb = Numba()
    batches = queue.Queue(4)

    def produce():
        for i in range(100):
            time.sleep(0.012)
            batches.put(filled(1 << 16, i))
        batches.put(None)

    thread(produce)
    y = nb.cuda.to_device(ones(1 << 16))
    steps = 0
    while True:
        batch = batches.get()
        if batch is None:
            break
        x = nb.cuda.to_device(batch)
        nb.step(x, y, 256)
        steps += 1
    return steps


@job(1, "input", ["input.read", "host.python", "input.*"], 70, NUMBA, USUAL, note="each batch is np.load of an npz written before")
def nb_npz():
    nb = Numba()
    for k in range(5):
        np.savez_compressed(temporary("b%d.npz" % k), x=np.random.default_rng(k).normal(size=100000).astype(np.float32))
    y = nb.cuda.to_device(ones(100000))

    def load(i):
        with np.load(temporary("b%d.npz" % (i % 5))) as archive:
            return archive["x"]

    for i in range(70):
        x = nb.cuda.to_device(load(i))
        nb.step(x, y, 256)
    return 70


@job(1, "input", ["input.*", "host.wait"], 60, NUMBA, USUAL, note="multiprocessing.Queue, one forked worker that burns 12 ms a batch")
def nb_process_queue():
    import multiprocessing
    fork = multiprocessing.get_context("fork")
    batches = fork.Queue(4)

    def work():
        for i in range(60):
            burn(12)
            batches.put(filled(1 << 14, i))

    worker = fork.Process(target=work, daemon=True)
    worker.start()
    nb = Numba()
    y = nb.cuda.to_device(ones(1 << 14))
    for _ in range(60):
        x = nb.cuda.to_device(batches.get())
        nb.step(x, y)
    return 60


@job(2, "input", ["input.*"], 90, NUMBA, SHORT, note="two threads inflate (GIL released) for a bounded queue")
def nb_inflate_threads():
    nb = Numba()
    batches = queue.Queue(4)

    def fill(k):
        for i in range(k, 90, 2):
            for _ in range(12):  # here
                zlib.decompress(PACKED)  # here
            batches.put(filled(1 << 14, i))

    for k in range(2):
        thread(fill, k)
    y = nb.cuda.to_device(ones(1 << 14))
    for _ in range(90):
        batch = batches.get()  # here
        x = nb.cuda.to_device(batch)
        nb.step(x, y)
    return 90


@job(2, "any", ["input.*", "host.gil"], 80, NUMBA, SHORT, note="reader thread -> transform thread in pure Python (9 ms of GIL) -> loop")
def nb_two_stages():
    nb = Numba()
    raw_batches, batches = queue.Queue(4), queue.Queue(4)
    path = temporary("data")
    with open(path, "wb") as f:
        f.write(os.urandom(1 << 20))

    def read():
        with open(path, "rb") as f:
            for i in range(80):
                f.seek(i * 4096)
                raw_batches.put(f.read(4096))

    def transform():
        for _ in range(80):
            raw = raw_batches.get()
            total = 0
            end = time.perf_counter() + 0.009
            while time.perf_counter() < end:
                for c in raw[:200]:  # here
                    total = (total * 31 + c) % 65521  # here
            batches.put(filled(1 << 14, total))

    thread(read)
    thread(transform)
    y = nb.cuda.to_device(ones(1 << 14))
    for _ in range(80):
        batch = batches.get()  # here
        x = nb.cuda.to_device(batch)
        nb.step(x, y)
    return 80


@job(2, "input", ["input.*"], 70, NUMBA, USUAL, note="double buffer by threading.Event; the filler uses numpy for 14 ms")
def nb_events():
    nb = Numba()
    full, free = threading.Event(), threading.Event()
    buffer = np.zeros(1 << 16, np.float32)
    free.set()

    def fill():
        for _ in range(70):
            free.wait()
            free.clear()
            end = time.perf_counter() + 0.014
            while time.perf_counter() < end:  # here
                buffer[:] = np.sort(np.random.rand(1 << 16))  # here
            full.set()

    thread(fill)
    y = nb.cuda.to_device(ones(1 << 16))
    x = nb.cuda.device_array(1 << 16, np.float32)
    for _ in range(70):
        full.wait()  # here
        full.clear()  # here
        x.copy_to_device(buffer)
        free.set()
        nb.step(x, y, 256)
    return 70


# Jobs that serve.

@job(1, "any", ["*"], 60, NUMBA, USUAL, note="serve: 60 requests at random, idle 30 ms between; nothing to gain from the idle time")
def nb_serve():
    nb = Numba()
    rng = random.Random(3)
    y = nb.cuda.to_device(ones(1 << 14))
    out = np.empty(1 << 14, np.float32)
    requests = queue.Queue()

    def clients():
        for i in range(60):
            time.sleep(rng.expovariate(1 / 0.03))
            requests.put(i)
        requests.put(None)

    thread(clients)
    served = 0
    while requests.get() is not None:
        x = nb.cuda.to_device(ones(1 << 14))
        nb.fwd[64, 256](x, y)
        y.copy_to_host(out)
        served += 1
    return served


@job(3, "any", ["*"], 60, NUMBA, THIRD, says="request", never_first="(6|7|8|9|[1-9][0-9])\\.[0-9]+x",
     note="TCP server: child sends a request, waits for the answer, thinks 25 ms on average; idle is no defect")
def nb_tcp_server():
    nb = Numba()
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(1)
    y = nb.cuda.to_device(ones(1 << 14))
    out = np.empty(1 << 14, np.float32)
    if not os.fork():
        client = socket.create_connection(listening.getsockname())
        rng = random.Random(5)
        for _ in range(60):
            time.sleep(rng.expovariate(1 / 0.025))
            client.sendall(b"x" * 4096)
            client.recv(1 << 16)
        os._exit(0)
    connection, _ = listening.accept()
    served = 0
    while True:
        request = connection.recv(1 << 16)
        if not request:
            break
        while len(request) < 4096:
            request += connection.recv(1 << 16)
        x = nb.cuda.to_device(np.frombuffer(request, np.float32).repeat(16))
        nb.fwd[64, 256](x, y)
        y.copy_to_host(out)
        connection.sendall(out[:64].tobytes())
        served += 1
    return served


@job(4, "transfer", ["transfer.h2d-pageable"], 60, NUMBA, FOURTH, twin=True,
     note="float64 images of 16 MB are made on the host once and sent from pageable memory each step")
def nb_doubles():
    nb = Numba()
    images = np.random.rand(2 << 20)
    x = nb.cuda.device_array(2 << 20, np.float64)
    y = nb.cuda.to_device(ones(1 << 14))
    x.copy_to_device(images)
    for _ in range(60):
        mark()
        if not FIXED:
            x.copy_to_device(images)  # here
        nb.step(y, y)
    return 60


if __name__ == "__main__":
    main()
