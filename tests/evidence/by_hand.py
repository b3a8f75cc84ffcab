"""Jobs of PyTorch and TensorFlow on the processor that are fed by hand: who makes a batch, and what else a step waits for.

Rows as in jobs.py. No driver call tells which wait feeds the step; what comes behind the step, or between two parts of it, does not.
"""
import concurrent.futures
import multiprocessing
import os
import queue
import socket
import subprocess
import sys
import threading
import time

import later  # noqa: F401, its jobs are in the table
from jobs import INPUT, MS, busy, job, main, producer, worker


class Torch:
    """A model, and a step of a few ms."""

    def __init__(self):
        import torch
        torch.set_num_threads(1)
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 400), torch.nn.ReLU(), torch.nn.Linear(400, 400), torch.nn.ReLU(), torch.nn.Linear(400, 1))
        self.update = torch.optim.SGD(self.net.parameters(), 0.001)
        self.data = torch.randn(64, 64)

    def fit(self, made):
        loss = self.net(self.data + 0.01 * made).square().mean()
        loss.backward()
        self.update.step()
        self.update.zero_grad()
        return loss.item()


class Tensorflow:
    """The same as a function that TensorFlow traces."""

    def __init__(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
        import tensorflow as tf
        net = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(400, "relu"), tf.keras.layers.Dense(400, "relu"), tf.keras.layers.Dense(1)])
        update = tf.keras.optimizers.SGD(0.001)
        self.data = tf.random.normal((64, 64))

        @tf.function
        def learn(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(net(x, training=True) ** 2)
            update.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
            return loss
        self.learn = learn

    def fit(self, made):
        return float(self.learn(self.data + 0.01 * float(made)))


def torch_job(*causes):
    return job(*causes, env="torch", device=False)


def tensorflow_job(*causes):
    return job(*causes, device=False)


def prepared(i):
    busy(2 * MS)
    return i


def answer(pipe, ms):
    while True:
        got = pipe.recv()
        busy(ms)
        pipe.send(got)


def start(target, *args):
    multiprocessing.get_context("fork").Process(target=target, args=args, daemon=True).start()


# ---- somebody makes the batch ----

@torch_job(*INPUT)
def torch_pipe(_, steps, spent):
    here, there = multiprocessing.Pipe()
    model = Torch()
    start(producer, there.send, steps, lambda: busy(2 * MS))
    for _ in range(steps):
        with spent:
            made = here.recv()  # here
        model.fit(made)


@torch_job(*INPUT)
def torch_future(_, steps, spent):
    model, pool = Torch(), concurrent.futures.ThreadPoolExecutor(1)

    def fetch(i):
        time.sleep(2 * MS / 1e3)
        return i
    ahead = pool.submit(fetch, 0)
    for i in range(steps):
        with spent:
            made = ahead.result()  # here
        ahead = pool.submit(fetch, i)
        model.fit(made)


@torch_job(*INPUT)
def torch_socket(_, steps, spent):
    here, there = socket.socketpair()
    model = Torch()
    start(producer, lambda i: there.sendall(b"%8d" % i), steps, lambda: busy(2 * MS))
    for _ in range(steps):
        with spent:
            made = int(here.recv(8, socket.MSG_WAITALL))  # here
        model.fit(made)


@torch_job(*INPUT)
def torch_two_buffers(_, steps, spent):
    """A thread fills one buffer while the step uses the other one."""
    full, free, made = threading.Event(), threading.Event(), [0]

    def fill():
        for i in range(steps):
            time.sleep(2 * MS / 1e3)
            free.wait()
            free.clear()
            made[0] = i
            full.set()
    model = Torch()
    free.set()
    worker(fill)
    for _ in range(steps):
        with spent:
            full.wait()  # here
        full.clear()
        got = made[0]
        free.set()
        model.fit(got)


@torch_job(*INPUT)
def torch_other_program(_, steps, spent):
    text = "import sys, time\nfor i in range(%d):\n    time.sleep(%f)\n    print(i, flush=True)" % (steps, 2 * MS / 1e3)
    model = Torch()
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as source:
        for _ in range(steps):
            with spent:
                made = int(source.stdout.readline())  # here
            model.fit(made)


@tensorflow_job(*INPUT)
def tensorflow_pipe(_, steps, spent):
    here, there = multiprocessing.Pipe()
    model = Tensorflow()
    start(producer, there.send, steps, lambda: busy(2 * MS))
    for _ in range(steps):
        with spent:
            made = here.recv()  # here
        model.fit(made)


@tensorflow_job(*INPUT)
def tensorflow_processes(_, steps, spent):
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        ahead = pool.submit(prepared, 0)
        model = Tensorflow()
        for i in range(steps):
            with spent:
                made = ahead.result()  # here
            ahead = pool.submit(prepared, i)
            model.fit(made)


# ---- other waits ----

@torch_job("host.logging")
def torch_synced_log(_, steps, spent):
    """Each line of a log is written through; much of that the kernel runs for."""
    model = Torch()
    with open(os.path.join(os.environ.get("TFH_TMP", "."), "synced.log"), "w") as log:
        for i in range(steps):
            loss = model.fit(i)
            with spent:
                for k in range(12):
                    print(i, k, loss, file=log, flush=True)
                    os.fsync(log.fileno())  # here


@torch_job("host.lock", "host.wait")
def torch_full_log(_, steps, spent):
    """Lines of a log are written slower than they are made."""
    lines, model = queue.Queue(2), Torch()

    def write():
        while True:
            lines.get()
            time.sleep(2 * MS / 1e3)
    worker(write)
    for i in range(steps):
        loss = model.fit(i)
        with spent:
            lines.put(loss)  # here


@torch_job("host.lock")
def torch_lock(_, steps, spent):
    """Another thread keeps the lock while it looks at the weights."""
    lock, model = threading.Lock(), Torch()

    def look():
        while True:
            with lock:
                time.sleep(2 * MS / 1e3)
            time.sleep(0.0005)
    worker(look)
    for i in range(steps):
        with spent:
            lock.acquire()  # here
        model.fit(i)
        lock.release()
        time.sleep(0.001)  # locks are not fair: without a pause the other thread may never get it


@torch_job("host.lock", "host.wait")
def torch_result(_, steps, spent):
    model, pool = Torch(), concurrent.futures.ThreadPoolExecutor(1)
    for i in range(steps):
        loss = model.fit(i)
        with spent:
            pool.submit(lambda v: time.sleep(2 * MS / 1e3), loss).result()  # here


@torch_job("host.wait")
def torch_told(_, steps, spent):
    """A process keeps the score, and says when it has it."""
    here, there = multiprocessing.Pipe()
    model = Torch()
    start(answer, there, 2 * MS)
    for i in range(steps):
        here.send(model.fit(i))
        with spent:
            here.recv()  # here


@tensorflow_job("host.wait")
def tensorflow_told(_, steps, spent):
    here, there = multiprocessing.Pipe()
    model = Tensorflow()
    start(answer, there, 2 * MS)
    for i in range(steps):
        here.send(model.fit(i))
        with spent:
            here.recv()  # here


@tensorflow_job("host.lock", "host.wait")
def tensorflow_joined_log(_, steps, spent):
    lines, model = queue.Queue(), Tensorflow()

    def write():
        while True:
            lines.get()
            time.sleep(2 * MS / 1e3)
            lines.task_done()
    worker(write)
    for i in range(steps):
        lines.put(model.fit(i))
        with spent:
            lines.join()  # here


@torch_job("host.lock", "host.wait")
def torch_scored(_, steps, spent):
    """Scores come back through a queue, behind the step."""
    ask, told, model = queue.Queue(), queue.Queue(), Torch()

    def score():
        while True:
            ask.get()
            time.sleep(2 * MS / 1e3)
            told.put(1)
    worker(score)
    for i in range(steps):
        ask.put(model.fit(i))
        with spent:
            told.get()  # here


if __name__ == "__main__":
    main()
