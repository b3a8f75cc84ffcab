"""Between its steps a job calls a function in C, from a function of its own for each way of doing so: called.py WHAT."""
import builtins
import gc
import io
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "jobs"))
from device import Device  # noqa: E402

STEPS = 60
TEXT = "0123456789" * 20000
BYTES = os.urandom(1 << 20) * 16
print_of = {"name": print}
ways = {}


def way(function):
    ways[function.__name__] = function
    return function


@way
def plain(f):
    print(TEXT, file=f)


@way
def attribute(f):
    builtins.print(TEXT, len(TEXT), file=f)


@way
def lines(f):
    print(
        TEXT,
        len(TEXT),
        file=f,
    )


@way
def unpacked(f):
    print(*[TEXT, TEXT], **{"file": f})


@way
def argument(f):  # upper() takes the time
    print(len(TEXT.upper()), file=f)


@way
def unnamed(f):
    print_of["name"](TEXT, file=f)


@way
def passed(f):
    print_of.get("name", print)(TEXT, file=f)


# Names with numbers above 255, which an instruction has no room for; one jump passes over them, or they would take the time.
exec(compile("def numbered(f):\n    if f is None:\n%s    print(TEXT, file=f)\n" % "".join("        n%d\n" % i for i in range(300)), __file__, "exec"))
way(numbered)  # noqa: F821


def repeat(function, f):
    until = time.perf_counter() + 0.004
    while time.perf_counter() < until:
        function(f)


def step(d):
    d.up(20000)
    d.train(1)
    d.sync()


def all_ways(d):
    with open(os.devnull, "w") as f:
        for _ in range(STEPS):
            step(d)
            for function in ways.values():
                repeat(function, f)


def logs(d):
    with open(os.path.join(os.environ["TFH_TMP"], "called.log"), "w") as f:
        for _ in range(STEPS):
            step(d)
            for _ in range(4000):
                print("a line of the log", file=f, flush=True)


def reads(d):
    with tempfile.TemporaryFile(buffering=0) as f:
        f.write(BYTES)
        for _ in range(STEPS):
            for _ in range(3):
                f.seek(0)
                f.read()
            step(d)


def syncs(d):
    with tempfile.TemporaryFile(dir=os.environ["TFH_TMP"], buffering=0) as f:
        for _ in range(STEPS):
            step(d)
            for _ in range(3):
                f.seek(0)
                f.write(BYTES[:1 << 20])
                os.fsync(f.fileno())


def long_enough():
    """Steps for 3.5 s: what a process writes is read once a second."""
    until, i = time.monotonic() + 3.5, 0
    while time.monotonic() < until:
        yield i
        i += 1


def writes(d):
    for i in long_enough():
        step(d)
        with open(os.path.join(os.environ["TFH_TMP"], "called.%d" % (i % 4)), "wb") as f:
            for _ in range(8):
                f.write(BYTES[:1 << 20])


def tells(d):
    with open(os.path.join(os.environ["TFH_TMP"], "called.out"), "w", buffering=1) as f:
        for _ in long_enough():
            step(d)
            for _ in range(4000):
                f.write("a line of the log\n")


def collects(d):
    heap = [{"n": i, "of": [i]} for i in range(60000)]
    for _ in range(STEPS):
        step(d)
        gc.collect()
    return heap


def keeps(d):  # nothing of it goes to a file
    for _ in range(STEPS):
        step(d)
        for _ in range(3):
            io.BytesIO().write(BYTES)


{"ways": all_ways, "writes": writes, "tells": tells, "keeps": keeps, "collects": collects, "logs": logs, "reads": reads, "syncs": syncs}[sys.argv[1]](Device())
