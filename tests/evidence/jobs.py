"""Jobs whose steps wait for one thing that no driver call tells of: a queue, a lock, a line of Python, a file, a sleep.

usage: jobs.py NAME [--steps N] | jobs.py --list

Each job is a function with a row in JOBS: the causes that are right for it, and in its body a comment "# here" on each
line that may lead the verdict: the line of the job's own thread which waits or works while the device has nothing to do.
The job counts itself what that takes; its last line of output is {"steps", "spent_s", "wall_s"}. --list prints the
table as JSON, with the lines' numbers. Nothing but Python's standard library, and numpy where the name says so.
"""
import argparse
import asyncio
import concurrent.futures
import contextlib
import gc
import http.client
import http.server
import inspect
import json
import math
import mmap
import multiprocessing
import os
import pickle
import queue
import random
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "jobs"))
from device import Device  # noqa: E402

MS = 8          # what the planted thing takes in a step
DEVICE_MS = 2   # what the device computes in a step
INPUT = ["input.*"]
LOADED = ["input.*", "host.python"]  # the main thread makes its batch itself: both words are right
JOBS = {}


def job(*causes, env="main", device=True):
    def put(function):
        JOBS[function.__name__.rstrip("_")] = {"causes": list(causes), "env": env, "device": device, "function": function}
        return function
    return put


class Spent:
    """Adds up the time of its `with` blocks."""
    total = 0.0

    def __enter__(self):
        self.since = time.perf_counter()

    def __exit__(self, *_):
        self.total += time.perf_counter() - self.since


def step(d):
    d.up()
    d.train(DEVICE_MS)
    d.down()


def busy(ms):
    until = time.perf_counter() + ms / 1e3
    x = 0.5
    while time.perf_counter() < until:
        x = math.sin(x)
    return x


def producer(put, steps, make):
    for i in range(steps):
        make()
        put(i)


def worker(target, *args):
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread


# Batches that another thread or process makes.

@job(*INPUT)
def queue_of_sleeper(d, steps, spent):
    q = queue.Queue(2)
    worker(producer, q.put, steps, lambda: time.sleep(MS / 1e3))
    for _ in range(steps):
        with spent:
            q.get()  # here
        step(d)


@job(*INPUT)
def queue_of_inflate(d, steps, spent):
    packed = zlib.compress(random.Random(1).randbytes(1 << 16) * 24)
    q = queue.Queue(2)
    worker(producer, q.put, steps, lambda: [zlib.decompress(packed) for _ in range(3)])
    for _ in range(steps):
        with spent:
            q.get()  # here
        step(d)


@job(*INPUT)
def queue_of_process(d, steps, spent):
    fork = multiprocessing.get_context("fork")
    q = fork.Queue(2)
    fork.Process(target=producer, args=(q.put, steps, lambda: busy(MS)), daemon=True).start()
    for _ in range(steps):
        with spent:
            q.get()  # here
        step(d)


def slow_item(i):
    time.sleep(2 * MS / 1e3)
    return i


@job(*INPUT)
def pool_imap(d, steps, spent):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        batches = pool.imap(slow_item, range(steps))
        for _ in range(steps):
            with spent:
                next(batches)  # here
            step(d)


@job(*INPUT)
def futures_of_threads(d, steps, spent):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        ahead = [pool.submit(slow_item, i) for i in range(2)]
        for i in range(steps):
            with spent:
                ahead.pop(0).result()  # here
            ahead.append(pool.submit(slow_item, i))
            step(d)


@job(*INPUT)
def event_of_loader(d, steps, spent):
    ready, taken = threading.Event(), threading.Event()

    def load():
        for _ in range(steps):
            time.sleep(MS / 1e3)
            ready.set()
            taken.wait()
            taken.clear()
    worker(load)
    for _ in range(steps):
        with spent:
            ready.wait()  # here
        ready.clear()
        taken.set()
        step(d)


@job(*INPUT)
def pipe_of_child(d, steps, spent):
    child = subprocess.Popen([sys.executable, "-c", "import os, time\n"
                              "while True: time.sleep(%f); os.write(1, b'x' * 4096)" % (MS / 1e3)], stdout=subprocess.PIPE)
    for _ in range(steps):
        with spent:
            os.read(child.stdout.fileno(), 4096)  # here
        step(d)
    child.kill()
    child.wait()


@job(*INPUT)
def socket_of_child(d, steps, spent):
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    child = os.fork()
    if not child:
        try:
            for _ in range(steps):
                busy(MS)
                theirs.send(b"x" * 1000)
        finally:
            os._exit(0)
    for _ in range(steps):
        with spent:
            ours.recv(4096)  # here
        step(d)
    os.waitpid(child, 0)


@job(*INPUT)
def poll_of_socket(d, steps, spent):
    ours, theirs = socket.socketpair()
    worker(producer, lambda i: theirs.send(b"x"), steps, lambda: time.sleep(MS / 1e3))
    for _ in range(steps):
        with spent:
            select.select([ours], [], [])  # here
        ours.recv(1)
        step(d)


class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(MS / 1e3)
        self.send_response(200)
        self.send_header("Content-Length", "50000")
        self.end_headers()
        self.wfile.write(b"x" * 50000)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def server():
    """A server in a process of its own; its port."""
    there = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    child = os.fork()
    if not child:
        there.serve_forever()
        os._exit(0)
    yield there.server_address[1]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@job(*INPUT)
def http_batches(d, steps, spent):
    with server() as port:
        for _ in range(steps):
            with spent:
                c = http.client.HTTPConnection("127.0.0.1", port)  # here
                c.request("GET", "/batch")  # here
                c.getresponse().read()  # here
            step(d)


@job(*LOADED, "host.sleep")  # samples of an event loop show only its timer
def asyncio_store(d, steps, spent):
    async def load(q):
        for i in range(steps):
            await asyncio.sleep(MS / 1e3)
            await q.put(i)

    async def train():
        q = asyncio.Queue(1)
        loader = asyncio.create_task(load(q))
        for _ in range(steps):
            with spent:
                await q.get()  # here
            step(d)  # here: no stack holds the line of an await, but that of the next call
        await loader
    asyncio.run(train())  # here


# Batches that the main thread makes itself.

@job(*LOADED)
def augment(d, steps, spent):
    pixels = list(range(6000))
    for _ in range(steps):
        with spent:
            for _ in range(14):
                [min(255, p * 3 + 7) for p in pixels]  # here
        step(d)


@job(*LOADED)
def inflate(d, steps, spent):
    packed = zlib.compress(random.Random(1).randbytes(1 << 16) * 24)
    for _ in range(steps):
        with spent:
            for _ in range(4):
                zlib.decompress(packed)  # here
        step(d)


@job("input.read", "input.unknown")
def file_read(d, steps, spent):
    with tempfile.NamedTemporaryFile(buffering=0) as f:
        f.write(os.urandom(1 << 20) * 32)
        for _ in range(steps):
            with spent:
                f.seek(0)
                f.read()  # here
            step(d)


@job(*LOADED)
def mapped_file(d, steps, spent):
    with tempfile.TemporaryFile() as f:
        f.write(os.urandom(1 << 20) * 32)
        f.flush()
        for _ in range(steps):
            with spent:
                m = mmap.mmap(f.fileno(), 0)
                m[:]  # here
                m.close()
            step(d)


@job(*LOADED)
def database(d, steps, spent):
    db = sqlite3.connect(":memory:")
    db.execute("create table t (a, b)")
    db.executemany("insert into t values (?, ?)", ((i, "word %d" % i) for i in range(40000)))
    for i in range(steps):
        with spent:
            db.execute("select count(*) from t where b like ?", ("%%%d%%" % i,)).fetchall()  # here
            db.execute("select sum(a) from t where b like ?", ("%%%d%%" % i,)).fetchall()  # here
        step(d)


@job(*LOADED)
def unpickle(d, steps, spent):
    stored = pickle.dumps([{"a": i, "b": str(i)} for i in range(25000)])
    for _ in range(steps):
        with spent:
            pickle.loads(stored)  # here
        step(d)


@job(*LOADED)
def numpy_augment(d, steps, spent):
    import numpy as np
    images = np.random.default_rng(1).random((500, 1000))
    for _ in range(steps):
        with spent:
            np.sort(images, axis=0)[::2].copy()  # here
        step(d)


# What the main thread does between its steps.

@job("host.python", "host.sleep", "host.wait")
def throttle(d, steps, spent):
    for _ in range(steps):
        step(d)
        with spent:
            time.sleep(MS / 1e3)  # here


@job("host.python")
def metrics(d, steps, spent):
    scores = [random.random() for _ in range(3000)]
    for _ in range(steps):
        step(d)
        with spent:
            for _ in range(12):
                sum(s * math.log(s + 1) for s in scores)  # here


@job("host.python")
def confusion(d, steps, spent):
    words = ["w%d" % random.randrange(1000) for _ in range(14000)]
    for _ in range(steps):
        step(d)
        with spent:
            for _ in range(2):
                sorted(words)  # here


@job("host.gc")
def collections(d, steps, spent):
    kept = [[i] for i in range(150000)]
    for _ in range(steps):
        step(d)
        with spent:
            gc.collect()  # here
    del kept


@job("host.compile", "host.python")
def retracing(d, steps, spent):
    source = "\n".join("def f%d(x):\n    return [x * %d for _ in range(x) if x > %d]" % (i, i, i) for i in range(120))
    for _ in range(steps):
        step(d)
        with spent:
            compile(source, "generated", "exec")  # here


@job("host.logging", "host.python")
def log_lines(d, steps, spent):
    with tempfile.NamedTemporaryFile("w") as f:
        for i in range(steps):
            step(d)
            with spent:
                for k in range(2500):
                    print("step", i, "loss", i * k, file=f, flush=True)  # here


@job("host.logging", "host.checkpoint")
def fsync_log(d, steps, spent):
    with tempfile.TemporaryFile(dir=os.environ.get("TFH_TMP")) as f:
        for _ in range(steps):
            step(d)
            with spent:
                for _ in range(2):
                    f.write(b"x" * 3000000)  # here
                    f.flush()  # here
                    os.fsync(f.fileno())  # here


@job("host.checkpoint", "host.python")
def checkpoint(d, steps, spent):
    state = {"layer%d" % i: [random.random() for _ in range(600)] for i in range(60)}
    with tempfile.TemporaryFile() as f:
        for _ in range(steps):
            step(d)
            with spent:
                for _ in range(8):
                    pickle.dump(state, f)  # here


@job("host.logging", "host.python", "host.wait")
def tracker(d, steps, spent):
    with server() as port:
        for i in range(steps):
            step(d)
            with spent:
                c = http.client.HTTPConnection("127.0.0.1", port)  # here
                c.request("POST", "/log", json.dumps({"step": i}))  # here
                c.getresponse().read()  # here


@job("host.python", "host.wait", "host.sleep")
def child_each_step(d, steps, spent):
    for _ in range(steps):
        step(d)
        with spent:
            subprocess.run(["/bin/sleep", "0.006"])  # here


@job("host.lock", "host.python", "host.wait")
def lock_of_saver(d, steps, spent):
    lock, go = threading.Lock(), threading.Semaphore(0)

    def save():
        while True:
            go.acquire()
            with lock:
                time.sleep(MS / 1e3)
    worker(save)
    for _ in range(steps):
        step(d)
        go.release()
        time.sleep(0.0002)
        with spent:
            with lock:  # here
                pass


@job("host.gil")
def gil(d, steps, spent):
    def count():
        while True:
            busy(1000)
    worker(count)
    for _ in range(steps):
        with spent:
            step(d)


@job("host.python")
def idle_python_callback(d, steps, spent):
    history = []

    def on_step(i):
        with spent:
            history.append(i)
            for _ in range(9):
                json.dumps(list(range(4000)))  # here
    for i in range(steps):
        step(d)
        on_step(i)


@job("host.python")
def spin_on_flag(d, steps, spent):
    """Another process sets a flag in shared memory; this one polls it."""
    shared = mmap.mmap(-1, 4096)
    child = os.fork()
    if not child:
        try:
            for i in range(steps):
                time.sleep(MS / 1e3)
                shared[0] = (i + 1) % 256
        finally:
            os._exit(0)
    for i in range(steps):
        with spent:
            while shared[0] == i % 256:  # here
                pass  # here
        step(d)
    os.waitpid(child, 0)


def lines_of(function):
    text, first = inspect.getsourcelines(function)
    return [first + i for i, line in enumerate(text) if "# here" in line]


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("name", nargs="?", choices=JOBS)
    p.add_argument("--steps", type=int, default=120)
    p.add_argument("--list", action="store_true")
    a = p.parse_args()
    if a.list:
        print(json.dumps({name: {"causes": j["causes"], "env": j["env"], "file": os.path.basename(inspect.getsourcefile(j["function"])),
                                 "lines": lines_of(j["function"])} for name, j in JOBS.items()}))
        return
    spent, d, since = Spent(), Device() if JOBS[a.name]["device"] else None, time.perf_counter()
    JOBS[a.name]["function"](d, a.steps, spent)
    print(json.dumps({"steps": a.steps, "spent_s": spent.total, "wall_s": time.perf_counter() - since}), flush=True)


if __name__ == "__main__":
    main()
