"""Jobs in which something else than the steps costs most, or not quite: recurs_jobs.py NAME."""
import os
import sys
import tempfile
import time

sys.argv.append(os.devnull)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from shapes_jobs import C, cu, down, evaluate, host, k, sync, text, train, up  # noqa: E402


def load():
    m = C.c_void_p()
    assert cu.cuModuleLoadData(C.byref(m), text.encode()) == 0


def busy(s):
    end = time.perf_counter() + s
    while time.perf_counter() < end:
        sum(i * i for i in range(50))


def saves():                # every 15 steps the model is fetched and written out
    with tempfile.TemporaryFile(dir=os.environ.get("TFH_TMP")) as f:
        for i in range(90):
            train(ms=2)
            if i % 15 == 14:
                down(1 << 22)
                f.seek(0)
                f.write(host.raw)
                time.sleep(0.15)


def saves_little():         # the same, but it costs a hundredth
    for i in range(90):
        train(ms=2)
        if i % 30 == 29:
            down(1 << 22)
            time.sleep(0.002)


def new_shapes():           # every tenth batch has another shape, for which kernels are made
    for i in range(100):
        if i % 10 == 5:
            busy(0.12)
            load()
        train(ms=2)


def first_shapes():         # all shapes come in the first steps
    for i in range(100):
        if i < 12:
            busy(0.06)
            load()
        train(ms=2)


def one_save():             # at the end only
    for i in range(80):
        train(ms=2)
    down(1 << 22)
    time.sleep(0.6)


def slow_evaluation():      # the evaluation prepares its batches while the device waits
    for _ in range(4):
        for _ in range(20):
            train(ms=2)
        for _ in range(25):
            time.sleep(0.02)
            up(10000)
            k("forward", 1)
            sync()


def short_evaluation():
    for _ in range(4):
        for _ in range(30):
            train(ms=2)
        for _ in range(4):
            time.sleep(0.005)
            evaluate(ms=1)


def slower():               # the second half waits
    for i in range(160):
        if i >= 80:
            time.sleep(0.012)
        train(ms=1)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
