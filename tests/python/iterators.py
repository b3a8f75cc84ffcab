#!/usr/bin/env python3
"""What must hold, with every CPython that is here: of a job that records nothing, `tfhook run` reads how far Python's `for` loops have
come, and the report counts their iterations: in epochs over a range, a list, a tuple, a dict, enumerate of a generator, zip, map,
islice, a reversed list, and objects that keep a generator; as many as the job makes, exactly (but where a range that begins with 1 is made elsewhere, from 3.12 on: one
more). So it does with loops that the program counts itself, in a variable that grows by 1 in every iteration: local, global, of a
closure, an attribute, with `continue` and `break`, also over batches of a class's own iterator. A variable that grows only sometimes,
and a `while` loop without any, show no steps. What C code takes from an iterator, list(map(f, x)), is no loop. Iterators that
refer to each other in a cycle crash neither `tfhook run` nor the job. The digest gives the same report."""
import json
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
import interpreters  # noqa: E402
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
TOOL, TMP = os.path.join(os.environ["TFH_BUILD"], "bin", "tfhook"), os.environ["TFH_TMP"]
JOB = """
import itertools, sys, time
N = %d
def work():
    end = time.perf_counter() + 0.005
    while time.perf_counter() < end: sum(range(200))
def batches(n):
    for i in range(0, 32 * n, 32):
        yield i
class Passes:
    def __init__(self, n): self.n, self.kept = n, None
    def __iter__(self):
        self.kept = batches(self.n)
        return self
    def __next__(self): return next(self.kept)
class Groups(Passes):
    def __iter__(self):
        self.kept = groups(self.n)
        return self
def groups(n):
    group = []
    for i in range(4 * n):
        group.append(i)
        if len(group) == 4:
            yield group
            group = []
def epoch(over):
    for i in over:
        work()
def main():
    for e in range(3):
        epoch(%s)
    print(3 * N)
main()
"""
# A generator that iterates over the object of which it is an attribute, sampled from outside and, once a batch came, in the job.
ITSELF = """
import sys, time
class Source:
    def __init__(self): self.n, self.batches = 0, None
    def __iter__(self): return self
    def __next__(self):
        self.n += 1
        if self.n > 150: raise StopIteration
        return self.n
def batches(source):
    for x in source:
        yield x
source = Source()
source.batches = batches(source)
for x in source.batches:
    end = time.perf_counter() + 0.01
    while time.perf_counter() < end: sum(range(200))
    if x > 75 and len(sys.argv) > 1:
        sys.path.insert(0, sys.argv[1])
        import tfhook
        with tfhook.step_scope("batch"): pass
print(x)
"""
CALL = """
import time
def work(i):
    end = time.perf_counter() + 0.003
    while time.perf_counter() < end: sum(range(200))
    return i
def scores():
    try:
        return list(map(work, range(30)))
    finally:
        pass
def main():
    for step in list(range(15)):
        with open("/dev/null"):
            scores()
    print(15)
main()
"""
WHILE = """
import time
end = time.perf_counter() + 3
while time.perf_counter() < end:
    for layer in range(4):
        sum(range(20000))
"""
HEAD = """
import random, time
N, step, seen = 100, 0, 0
def work():
    end = time.perf_counter() + 0.01
    while time.perf_counter() < end: sum(range(200))
class Loader:
    def __init__(self): self.left = N // 4
    def __iter__(self): return self
    def __next__(self):
        if not self.left: raise StopIteration
        self.left -= 1
        return self.left
def good(i):
    return i % 3 > 0
"""
# What the loop is, and whether its end is known: then the steps are exact.
COUNTED = [
    ("""
def epoch(n):
    i = 0
    while i < n:
        with open("/dev/null"):
            work()
            i += 1
    print(i)
epoch(N)
""", True),
    ("""
while step < N:
    work()
    step += 1
print(step)
""", True),
    ("""
def epoch(n):
    for i in range(1, n + 1):
        work()
    print(n)
epoch(N)
""", True),
    ("""
def epoch():
    i = j = 0
    while True:
        i = i + 1
        work()
        j += good(i)
        if i >= 100: break
    print(i)
epoch()
""", True),
    ("""
def epoch():
    steps = 0
    for e in range(4):
        for batch in Loader():
            work()
            steps += 1
    print(steps)
epoch()
""", False),
    ("""
def epoch(n):
    i = 1
    def last(): return i == n
    while i <= n:
        work()
        i += 1
        if good(i): continue
        last()
    print(i - 1)
epoch(N)
""", True),
    ("""
def epoch():
    global step
    while time.perf_counter() < end:
        work()
        with open("/dev/null") as f: f.read()
        step += 1
end = time.perf_counter() + 1.2
epoch()
print(step)
""", False),
    ("""
def epoch(n):
    i = t = 0
    while t < 10 * n:
        work()
        t += 10
        if good(t): i += 1
    print(0)
epoch(N)
""", True),
    ("""
class Trainer:
    def __init__(self, steps):
        self.step, self.steps, self.options = 0, steps, {}
    def run(self):
        while self.step < self.steps:
            work()
            self.step += 1
        print(self.step)
Trainer(N).run()
""", True),
    ("""
end = time.perf_counter() + 1.2
while time.perf_counter() < end:
    seen += 10
    work()
    if good(seen): continue
    step += 1
print(0)
""", True)]
LOOPS = ["range(N)", "list(range(N))", "tuple(range(N))", "{i: i for i in range(N)}.items()", "enumerate(batches(N))", "zip(batches(N), [0] * N)",
         "map(str, range(N))", "itertools.islice(itertools.count(), N)", "reversed(list(range(N)))", "range(1, N + 1)"]


def judged(name, job, python):
    directory, path = os.path.join(TMP, name), os.path.join(TMP, name + ".py")
    with open(path, "w") as f:
        f.write(job)
    done = subprocess.run([TOOL, "run", "-q", "-o", directory, "--", python, path], capture_output=True, text=True, timeout=200)
    check(done.returncode == 0 and not done.stderr, name, done)
    if not os.path.exists(directory):
        return None, done.stdout
    report = subprocess.run([TOOL, "report", "--json", directory], capture_output=True, text=True)
    check(report.returncode in (0, 3), name, report)
    return json.loads(report.stdout), done.stdout


every = interpreters.every()
for number, (version, python) in enumerate(every.items() if isinstance(every, dict) else every):
    # Each interpreter runs two of the loops, and together they run all of them.
    for over in (LOOPS[(2 * number + k) % len(LOOPS)] for k in range(2)):
        name = "%s_%d" % (version, LOOPS.index(over))
        report, out = judged(name, JOB % (100, over), python)
        if not report or report["sampled"]["samples"] < 40:
            print(name, "too few samples on this machine")
            continue
        loop, steps = report["sampled"]["step_loop"], report["steps"]["total"]
        first = over.startswith("range(1") and tuple(map(int, version.split(".")[:2])) >= (3, 12)
        check(loop and loop["function"] == "epoch" and report["steps"]["clock"] == "loop", name, over, loop, report["steps"])
        check(steps == int(out) or (first and steps == int(out) + 3), name, over, steps, out)
        check(0.003 < (report["steps"]["median_s"] or 0) < 0.05, name, over, report["steps"])
    # What C code takes from an iterator is part of the step: the loop around it counts.
    report, out = judged("%s_call" % version, CALL, python)
    if report and report["sampled"]["samples"] >= 40:
        loop = report["sampled"]["step_loop"]
        check(loop and loop["function"] == "main" and report["steps"]["total"] == int(out), version, "call", loop, report["steps"], out)
    # An iterator of a class that keeps a generator: what that one gives in each iteration of its loop is counted, and nothing else.
    for over in ("Passes(N)", "Groups(N)") if tuple(map(int, version.split(".")[:2])) >= (3, 11) else ():
        report, out = judged(version + over[:6], JOB % (100, over), python)
        if report and report["sampled"]["samples"] >= 40:
            steps = report["steps"]["total"]
            check(steps == int(out) if over[0] == "P" else steps <= int(out), version, over, report["steps"])
    for kind in (2 * number % len(COUNTED), (2 * number + 1) % len(COUNTED)):
        name, (loop, exact) = "%s_counted_%d" % (version, kind), COUNTED[kind]
        report, out = judged(name, HEAD + loop, python)
        if not report or report["sampled"]["samples"] < 40:
            print(name, "too few samples on this machine")
            continue
        steps = report["steps"]["total"]
        check(steps == int(out) or (not exact and 0.8 * int(out) < steps < 1.1 * int(out)), name, steps, out)

for inside in [], [os.environ["TFH_SRC"] + "/lib/python"]:
    run = subprocess.run([TOOL, "run", "-q", "-o", os.path.join(TMP, "itself%d" % len(inside)), "--", sys.executable, "-c", ITSELF] + inside,
                         capture_output=True, text=True)
    check(run.returncode == 0 and run.stdout.split() == ["150"], "itself", inside, run)

report, out = judged("while", WHILE, sys.executable)
check(not report or (report["steps"]["total"] == 0 and not report["sampled"]["step_loop"]), "while", report and report["steps"])

report, out = judged("digest", JOB % (100, "range(N)"), sys.executable)
if report:
    subprocess.run([TOOL, "digest", os.path.join(TMP, "digest")], check=True, capture_output=True)
    os.remove(os.path.join(TMP, "digest", "start.json"))
    again = subprocess.run([TOOL, "report", "--json", os.path.join(TMP, "digest")], capture_output=True, text=True)
    check(json.loads(again.stdout) == report, "digest")
sys.exit(failed())
