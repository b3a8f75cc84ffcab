#!/usr/bin/env python3
"""What must hold, with every CPython that is here: the samples that a recording takes of the thread that drives the device show how
far its loops have come, as the job itself counts: `for` loops, also over an object that only has __getitem__, whose length is not
known, and `while` loops and loops over a class's own iterator that have a variable which counts; also while it makes and drops
iterators all the time, in another thread too; a process that it forks meanwhile, and its end, do it no harm."""
import os
import struct
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(os.path.dirname(here), "record")]
import interpreters  # noqa: E402
import tft_reader  # noqa: E402
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
BUILD, SRC, TMP = (os.environ[k] for k in ("TFH_BUILD", "TFH_SRC", "TFH_TMP"))
CALL, EXT, STATE, ENOUGH = 1, 3, 11, 40
N = 45
JOB = """
import itertools, os, sys, threading, time
sys.path.insert(0, %r)
from device import Device
N = %d
device = Device()
def counted(n):
    for i in range(0, 32 * n, 32):
        yield i
def churn(ms):
    end = time.perf_counter() + ms / 1e3
    while time.perf_counter() < end:
        for i, (a, b) in enumerate(zip(range(3), [4, 5, 6])):
            for k in {a: b}: sum(x for x in range(i))
def work(e, n):
    device.up(16 * (1000 * e + n))
    churn(2)
    if n == 30 and hasattr(os, "fork"):
        pid = os.fork()
        if not pid:
            churn(5)
            os._exit(0)
        os.waitpid(pid, 0)
class Rows:
    def __init__(self, n): self.n = n
    def __getitem__(self, i):
        if i == self.n: raise IndexError
        return i
class Batches:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        self.n -= 1
        if self.n < 0: raise StopIteration
def epoch(over, e):
    n = 0
    %s
def main():
    for e in range(3):
        epoch(%s, e)
threading.Thread(target=churn, args=(1e6,), daemon=True).start()
main()
"""
LOOPS = ["range(N)", "Rows(N)", "list(range(N))", "tuple(range(N))", "{i: i for i in range(N)}.items()", "enumerate(counted(N))",
         "zip(counted(N), [0] * N)", "map(str, range(N))", "itertools.islice(itertools.count(), N)", "reversed(list(range(N)))"]
FOR = """k = [0]
    for i in over:
        k[0] += 1
        work(e, k[0])"""
COUNTED = [("""while n < over:
        work(e, n + 1)
        n += 1""", "N"), ("""while True:
        n = n + 1
        work(e, n)
        if n >= over: break""", "N"), ("""for batch in over:
        work(e, n + 1)
        n += 1""", "Batches(N)")]


def numbers(data):
    at, out = 0, []
    while at < len(data):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                break
        out.append(value)
    loops, at = [], 0
    while at < len(out):
        at += 0 if out[at] else 2  # what counts it
        loops.append((out[at] // 2, *out[at + 1:at + 3]))
        at += 3
    return loops


class Recording:
    """The copies to the device and the samples of the main thread, in order of time; names of a place's functions, the outermost first."""

    def __init__(self, directory):
        self.codes, self.frames, self.copies, self.samples, self.bytes = {}, {}, [], [], 0
        for file in sorted(f for f in os.listdir(directory) if f.endswith(".tft")):
            with open(f"{directory}/{file}", "rb") as f:
                data = f.read()
            if not self.copies:
                self.take(data)

    def take(self, data):
        last = None
        for kind, _, _, _, _, runs, payload in tft_reader.chunks(data):
            for row in tft_reader.table_rows(payload, *tft_reader.TABLES[kind]) if kind in ("PYFR", "PYCO") else ():
                (self.frames if kind == "PYFR" else self.codes)[row[0]] = row[1:]
            for _, _, _, record in tft_reader.events(payload, runs) if kind == "EVNT" else ():
                t, end, _, kind_of, flags, left = struct.unpack_from("<QQHBBH", record)
                if kind_of == CALL and struct.unpack_from("<Q", record, 40)[0] >= 16:
                    self.copies.append((end, struct.unpack_from("<Q", record, 40)[0] // 16))
                elif kind_of == STATE:
                    last = (t, *struct.unpack_from("<II", record, 32), [])
                    self.samples.append(last)
                    last = last if flags & 1 else None
                elif kind_of == EXT and last and last[0] == t:
                    last[3].extend(numbers(record[28:28 + left]))
                    last = None

    def names(self, place):
        out = []
        while place:
            place, code, _ = self.frames[place]
            out.append(self.codes[code][1].split(".")[-1])
        return out[::-1]


def compare(name, run):
    """Every sample within an epoch shows its iteration, or the next one if that was about to make its copy."""
    n = right = behind = known = 0
    for t, thread, place, loops in run.samples:
        before = [k for end, k in run.copies if end < t]
        names = run.names(place)
        if thread != 1 or not before or "epoch" not in names or not loops:
            continue
        n += 1
        at = names.index("epoch") + 1
        seen = {depth: (done, left) for depth, done, left in loops if depth in (at, at - 1)}
        epoch, i = divmod(before[-1], 1000)
        right += seen.get(at, (0,))[0] == i and seen.get(at - 1) == (epoch + 1, 3 - epoch)
        behind += seen.get(at, (0,))[0] in (i + 1, 1)
        done, left = seen.get(at, (0, 0))
        known += done + left == N + 1 or not left
    print(name, len(run.samples), "samples,", n, "in epochs,", right, "right,", behind, "one on")
    check(n < ENOUGH or (right + behind >= 0.98 * n and right >= n / 2 and known >= 0.98 * n), name, n, right, behind, known)
    return n


best = 0
for number, (version, python) in enumerate(interpreters.every()):
    # Each interpreter runs three of the loops, and together they run all of them.
    loops = [(FOR, LOOPS[(2 * number + k) % len(LOOPS)]) for k in range(2)] + [COUNTED[number % len(COUNTED)]]
    for k, (body, over) in enumerate(loops):
        name = "%s_%d_%d" % (version, number, k)
        done = subprocess.run([BUILD + "/bin/tfhook", "run", "-q", "-o", f"{TMP}/{name}", "--", python, "-c",
                               JOB % (SRC + "/tests/jobs", N, body, over)], capture_output=True, text=True, timeout=200,
                              env={**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/sim", "TFHOOK_CUPTI": "off"})
        check(done.returncode == 0, name, done.stderr[-500:])
        best = max(best, compare(name + " " + over, Recording(f"{TMP}/{name}")))
if best < ENOUGH:
    print("too few samples on this machine")
sys.exit(failed())
