"""Jobs that call the driver by ctypes, without any framework."""
import ctypes
import json
import os
import socket
import sqlite3
import threading
import time

from stranger import FIXED, burn, driver, job, main, mark, temporary, thread


def small_step(d):
    d.run(1.0, "forward")
    d.run(1.0, "backward")
    d.run(0.2, "update")


def short_step(d):
    d.up(20000)
    d.run(0.5, "forward")
    d.run(0.8, "backward")
    d.run(0.2, "update")
    d.sync()


# What a step is.

@job(1, "compute", ["compute.*"], 60, note="GAN: two updates with different kernels are one step")
def dv_gan():
    d = driver()
    for _ in range(60):
        d.up(10000)
        d.run(1.0, "forward")
        d.run(0.6, "backward")
        d.run(0.2, "update")
        d.sync()
        d.up(10000)
        d.run(0.8, "other")
        d.run(0.9, "eval")
        d.run(0.2, "update")
        d.sync()
    return 60


@job(2, "compute", ["compute.*"], 40, note="8 micro-batches without any wait, one update, one sync")
def dv_micro():
    d = driver()
    for _ in range(40):
        for _ in range(8):
            d.up(20000)
            d.run(0.5, "forward")
            d.run(0.8, "backward")
        d.run(0.4, "update")
        d.sync()
    return 40


@job(2, "compute", ["compute.*"], 40, note="8 micro-batches on resident data, no copies, one update, loss every 4 steps")
def dv_micro_resident():
    d = driver()
    for i in range(40):
        for _ in range(8):
            d.run(0.4, "forward")
            d.run(0.7, "backward")
        d.run(0.3, "update")
        if i % 4 == 3:
            d.down()
    return 40


@job(2, "compute", ["compute.*"], 100, note="a wait each fifth step only, resident data")
def dv_wait5():
    d = driver()
    for i in range(100):
        d.run(1.0, "forward")
        d.run(1.4, "backward")
        d.run(0.2, "update")
        if i % 5 == 4:
            d.sync()
    return 100


@job(2, "any", ["*"], 48, note="12 rounds: a rollout of 20 acts (env 1.2 ms each), then 4 updates")
def dv_rollout():
    d = driver()
    for _ in range(12):
        for _ in range(20):
            d.up(4000)
            d.run(0.2, "other")
            d.down(64)
            burn(1.2)
        for _ in range(4):
            d.up(40000)
            d.run(0.8, "forward")
            d.run(1.2, "backward")
            d.run(0.2, "update")
            d.down()
    return 48


# Batches that come too late, copies that need not be.

@job(1, "input", ["input.*", "host.wait", "host.unknown"], 90, note="batches come through a socket from a child process that takes 9 ms")
def dv_socket():
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        for _ in range(90):
            time.sleep(0.009)
            theirs.sendall(bytes(4000))
        os._exit(0)
    theirs.close()
    d = driver()

    def receive():
        n = 0
        while n < 4000:
            n += len(ours.recv(4000 - n))

    for _ in range(90):
        receive()
        d.up(4000)
        d.run(1.5, "forward")
        d.run(1.0, "backward")
        d.run(0.3, "update")
        d.sync()
    return 90


@job(2, "input", ["input.*"], 80, note="a loader object: condition variable, rows from sqlite in a thread")
def dv_condition():
    d = driver()
    condition = threading.Condition()
    ready = []
    path = temporary("db")
    db = sqlite3.connect(path)
    db.execute("create table t (a, b)")
    db.executemany("insert into t values (?,?)", ((i, "word %d" % i) for i in range(30000)))
    db.commit()

    def load():
        reading = sqlite3.connect(path)
        for i in range(80):
            for k in range(3):  # here
                rows = reading.execute("select sum(a) from t where b like ?", ("%%%d%%" % (i + k),)).fetchall()  # here
            with condition:
                while len(ready) > 2:
                    condition.wait()
                ready.append(rows)
                condition.notify_all()

    thread(load)
    for _ in range(80):
        with condition:
            while not ready:  # here
                condition.wait()  # here
            ready.pop(0)
            condition.notify_all()
        d.up(20000)
        small_step(d)
        d.sync()
    return 80


@job(3, "transfer", ["transfer.*"], 60, twin=True, says="sent back|back to the device|comes back",
     note="recurrent state of 12 MB is fetched at a step's end and sent at the next one's begin")
def dv_state():
    d = driver(16)
    state = ctypes.create_string_buffer(12 << 20)
    n = ctypes.c_size_t(12 << 20)
    for _ in range(60):
        mark()
        d.up(4000)
        if not FIXED:
            d.call("cuMemcpyHtoDAsync_v2", d.memory, state, n, d.stream)
        d.run(0.5, "forward")
        d.run(0.8, "backward")
        d.run(0.2, "update")
        if not FIXED:
            d.call("cuMemcpyDtoHAsync_v2", state, d.memory, n, d.stream)
        d.sync()
    return 60


# The host in the way.

@job(1, "host", ["host.lock", "host.gil", "host.python", "host.wait"], 80,
     note="a thread that burns the GIL all the time; main loop does small Python work")
def dv_gil():
    d = driver()
    stop = []

    def other():
        while not stop:
            sum(range(2000))

    thread(other)
    for _ in range(80):
        for _ in range(4):
            d.up(1000)
            d.run(0.2, "forward")
        d.run(0.3, "update")
        d.sync()
    stop.append(1)
    return 80


@job(2, "host", ["host.gil"], 80, note="a metrics thread computes in Python all the time; the loop has its own small Python work")
def dv_metrics_thread():
    d = driver()
    stop = []
    history = list(range(20000))

    def metrics():
        while not stop:
            sorted(history, key=lambda v: -v)

    thread(metrics)
    for _ in range(80):
        d.up(4000)
        d.run(1.0, "forward")
        d.run(0.8, "backward")
        d.run(0.2, "update")
        d.sync()
    stop.append(1)
    return 80


@job(1, "host", ["host.sleep"], 80, note="a rate limiter sleeps")
def dv_throttle():
    d = driver()

    def throttle():
        time.sleep(0.007)

    for _ in range(80):
        throttle()
        d.up(10000)
        d.run(2, "forward")
        d.run(1, "backward")
        d.sync()
    return 80


@job(2, "host", ["host.sleep", "host.wait"], 80, note="waits for a lease: polls a file each 1 ms, 6 ms a step")
def dv_lease():
    d = driver()
    path = temporary("lease")
    stop = []

    def lender():
        while not stop:
            time.sleep(0.006)
            open(path, "w").close()

    thread(lender)
    for _ in range(80):
        d.up(4000)
        small_step(d)
        d.sync()
        while not os.path.exists(path):  # here
            time.sleep(0.001)  # here
        os.unlink(path)
    stop.append(1)
    return 80


@job(3, "host", ["host.python", "input.*"], 90, twin=True,
     note="sleeps 3 ms for a rate limit, builds features in Python for 7 ms; fix: features")
def dv_wait_and_run():
    d = driver()
    words = ["w%d" % i for i in range(500)]

    def features(i):
        counts = {}
        end = time.perf_counter() + (0 if FIXED else 0.007)
        while time.perf_counter() < end:  # here
            for w in words[:40]:  # here
                counts[w] = counts.get(w, 0) + len(w) * i  # here
        return counts

    def pace():
        time.sleep(0.003)

    for i in range(90):
        mark()
        short_step(d)
        features(i)
        pace()
    return 90


@job(3, "host", ["host.sleep", "host.wait"], 90, twin=True, note="the other way round: waits 8 ms for a lease, Python 3 ms; fix: no lease")
def dv_run_and_wait():
    d = driver()
    words = ["w%d" % i for i in range(500)]

    def tally(i):
        counts = {}
        end = time.perf_counter() + 0.003
        while time.perf_counter() < end:
            for w in words[:40]:
                counts[w] = counts.get(w, 0) + len(w) * i

    def lease():
        if not FIXED:
            time.sleep(0.008)  # here

    for i in range(90):
        mark()
        short_step(d)
        tally(i)
        lease()
    return 90


@job(4, "host", ["host.lock"], 80, twin=True, note="the loop takes a lock that an exporting thread holds 9 of 10 ms (asleep)")
def dv_exporter():
    d = driver()
    lock = threading.Lock()
    stats = {}

    def export():
        while True:
            with lock:
                json.dumps(stats)
                time.sleep(0.009)
            time.sleep(0.001)

    if not FIXED:
        thread(export)
    for i in range(80):
        mark()
        d.up(20000)
        d.run(0.6, "forward")
        d.run(1.0, "backward")
        d.run(0.2, "update")
        d.sync()
        with lock:  # here
            stats[i % 10] = i  # here
    return 80


if __name__ == "__main__":
    main()
