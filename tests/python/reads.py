#!/usr/bin/env python3
"""What must hold, with every CPython that is here: a sample of a thread copies memory by few system calls, also where its stack is made of
loops of functions that no sample has met before, over iterators of many kinds. Samples have a budget of time, so a sample that costs more
means fewer of them, which no other test notices. System calls are counted, not timed."""
import json
import os
import re
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
STATE, CHILD, FUNCTIONS, DEPTH, ENOUGH = 11, 12, 150, 12, 20
ENOUGH_OUTSIDE = 8
# System calls: for what is met once, a function; for each sample; for one that `tfhook run` takes before there are records, while modules
# are loaded, all of whose functions are new.
ONCE, EACH, EACH_OUTSIDE = 12, 10, 60
JOB = """
import sys, time
sys.path.insert(0, %r)
from device import Device
FUNCTIONS, DEPTH = %d, %d
class Given:
    def __init__(self): self.a, self.b, self.left = 1, "x", 2
    def __iter__(self): return self
    def __next__(self):
        self.left -= 1
        if self.left < 0: raise StopIteration
def generated():
    for i in (1, 2, 3): yield i
OVER = [Given, generated, lambda: [1, 2], lambda: range(3), lambda: enumerate(generated()), lambda: zip([1], (2, 3)), lambda: {1: 2}.items()]
ONE = '''
def f%%d(n, over):
    count, total, name = 0, 1.5, "none"
    for i in over:
        total = total * 3 + 17 - 2.5
        if total > 1e6: total = 5
        count += 1
        if total < 0 or name == "some": print(12, 13, 14, 15)
        if n: return f%%d(n - 1, OVER[(n + %%d) %%%% len(OVER)]())
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until: pass
        return count
'''
for k in range(FUNCTIONS):
    exec(compile(ONE %% (k, (k + 1) %% FUNCTIONS, k), "/made/%%d.py" %% (k %% 9), "exec"))
device = Device()
end = time.perf_counter() + 1.5
step = 0
while time.perf_counter() < end:
    device.up(20000)
    globals()["f%%d" %% (7 * step %% FUNCTIONS)](DEPTH, range(3))
    step += 1
""" % (SRC + "/tests/jobs", FUNCTIONS, DEPTH)


def run(name, python, **env):
    """How often the job asked the kernel to copy memory, and how many samples were recorded."""
    directory, script = f"{TMP}/{name}", f"{TMP}/job.py"
    with open(script, "w") as f:
        f.write(JOB)
    env = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/sim", "LD_PRELOAD": f"{BUILD}/tests/python/libvmreads.so", "TFHOOK_CUPTI": "off", **env}
    done = subprocess.run([f"{BUILD}/bin/tfhook", "run", "-q", "-o", directory, "--", python, script], env=env, stderr=subprocess.PIPE,
                          text=True, timeout=100)
    check(done.returncode == 0, name, done.stderr)
    samples = 0
    for file in (f for f in os.listdir(directory) if f.endswith(".tft")):
        with open(f"{directory}/{file}", "rb") as f:
            data = f.read()
        for kind, _, _, _, _, runs, payload in tft_reader.chunks(data):
            samples += sum(record[18] in (STATE, CHILD) for *_, record in tft_reader.events(payload, runs)) if kind == "EVNT" else 0
    reads = {of: int(n) for n, of in re.findall(r"process_vm_readv: (\d+) in (\S+)", done.stderr)}
    looks = 0
    if os.path.exists(directory + "/start.json"):
        with open(directory + "/start.json") as f:
            looks = sum(len(p["looks"]) for p in json.load(f)["processes"])
    return max(n for of, n in reads.items() if of != "tfhook"), samples, reads.get("tfhook", 0), looks


for version, python in interpreters.every():
    without, none, *_ = run(version + "_without", python, TFHOOK_SAMPLES="0")
    reads, samples, outside, looks = run(version, python)
    reads -= without
    print(f"{version}: {reads} system calls for {samples} samples, {reads / max(1, samples):.1f} for each; from outside {outside} for {looks}")
    check(looks < ENOUGH_OUTSIDE or outside <= EACH_OUTSIDE * looks, version, outside, looks)
    if samples < ENOUGH:
        print("too few samples on this machine")
        continue
    check(not none and reads <= ONCE * FUNCTIONS + EACH * samples, version, reads, samples)
sys.exit(failed())
