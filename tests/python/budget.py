#!/usr/bin/env python3
"""What must hold: samples of threads take at most half a percent of a processor, beyond what the first steps of a run get at once, also where
stacks are deep; of the workers that make batches one is sampled at a time, each as often as the others."""
import glob
import os
import statistics
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path += [here, os.path.join(os.path.dirname(here), "record")]
import tft_reader  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
SECONDS, AT_ONCE_MS, SHARE = 4.0, 25.0, 0.005
CHILD, ENOUGH, TOGETHER = 12, 60, 0.2
JOB = r"""
import os, sys, time
sys.path.insert(0, sys.argv[1])
from device import Device
d = Device()
def deep(n):
    if n:
        return deep(n - 1)
    until = time.perf_counter() + 0.002
    while time.perf_counter() < until:
        pass
begin = time.perf_counter()
while time.perf_counter() - begin < float(sys.argv[2]):
    d.up(20000)
    d.train(1)
    d.sync()
    deep(60)
used = 0
for tid in os.listdir("/proc/self/task"):
    with open("/proc/self/task/%s/comm" % tid) as name:
        if name.read().startswith("tfhook-"):
            with open("/proc/self/task/%s/schedstat" % tid) as stat:
                used += int(stat.read().split()[0])
print(used / 1e6)
"""


def run(name, *command, **env):
    directory = f"{tmp}/{name}"
    done = subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", directory, "--", sys.executable, *command], capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI": "off", **env})
    assert done.returncode == 0, done
    return directory, done.stdout


def used_ms(name, **env):
    """Processor time of the recorder's threads."""
    return float(run(name, "-c", JOB, os.environ["TFH_SRC"] + "/tests/jobs", str(SECONDS), **env)[1])


def children(directory):
    """Time in us and process of each sample of a worker."""
    seen = []
    for path in glob.glob(f"{directory}/*.tft"):
        with open(path, "rb") as f:
            data = f.read()
        for kind, _, _, _, _, runs, payload in tft_reader.chunks(data):
            for *_, record in tft_reader.events(payload, runs) if kind == "EVNT" else ():
                if record[18] == CHILD and not int.from_bytes(record[28:32], "little"):
                    seen.append((int.from_bytes(record[:8], "little"), int.from_bytes(record[32:36], "little")))
    return sorted(seen)


without, samples = used_ms("without", TFHOOK_SAMPLES="0"), used_ms("with")
print(f"{SECONDS:.0f} s: the recorder's threads {without:.1f} ms without samples, {samples:.1f} ms with them")
assert samples - without < AT_ONCE_MS + 1e3 * SHARE * SECONDS, (without, samples)

seen = children(run("workers", f"{here}/jobs/workers.py", "fork", "2")[0])
of = {pid: sum(p == pid for _, p in seen) for _, pid in seen}
gaps = [b[0] - a[0] for a, b in zip(seen, seen[1:])]
print(f"samples of {len(of)} workers: {sorted(of.values())}")
if len(seen) < ENOUGH:
    print("too few samples on this machine")
    sys.exit(0)
mean = len(seen) / len(of)
assert len(of) == 2 and all(abs(n - mean) < 4 * mean ** 0.5 for n in of.values()), of
# Two at once would be a fraction of a mean interval apart.
together = sum(g < statistics.mean(gaps) / 50 for g in gaps) / len(gaps)
assert together < TOGETHER, together
