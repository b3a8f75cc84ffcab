#!/usr/bin/env python3
"""A recording holds what the machine did meanwhile: processors and memory as /proc tells them, forced and voluntary
switches, network and disks that only grow, in JSON with lines over time and as a table of 80 columns; a recording that
ended before the first sample says that it has none. Of its first seconds a job has several samples each, as many jobs that
are tried last no longer; the machine is read once a second all the same."""
import glob
import json
import os
import struct
import subprocess
import sys

import tft_reader

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL = os.path.join(BUILD, "bin", "tfhook")
JOB = "import sys; sys.path.insert(0, sys.argv[1]); import device, time; d = device.Device(); until = time.time() + %s\n" \
      "while time.time() < until: d.up(); d.train(2); d.down()"


def record(name, seconds):
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"))
    folder = os.path.join(TMP, name)
    subprocess.run([TOOL, "run", "-q", "-o", folder, "--", sys.executable, "-c", JOB % seconds, os.path.join(SRC, "tests", "jobs")],
                   env=env, stdin=subprocess.DEVNULL, check=True)
    return folder


def report(folder, *flags):
    """What it prints; its status is that of a verdict, for which the job may have been too short on a busy machine."""
    return subprocess.run([TOOL, "report", *flags, folder], capture_output=True, text=True, check=False).stdout


def samples(folder):
    """Of each: its time in ticks, and whether the machine was read."""
    out = []
    for path in glob.glob(os.path.join(folder, "*.tft")):
        with open(path, "rb") as f:
            data = f.read()
        for payload in (c[6] for c in tft_reader.chunks(data) if c[0] == "SAMP"):
            at = 0
            while at < len(payload):
                ticks, n = struct.unpack_from("<Q", payload, at)[0], struct.unpack_from("<I", payload, at + 44)[0]
                ids = [struct.unpack_from("<II", payload, at + 48 + 24 * i) for i in range(n)]
                out.append((ticks, any(thread == 0xFFFFFFFF and 4 <= tid < 32 for thread, tid in ids)))
                at += 48 + 24 * n
    return out


if os.environ.get("TFH_SAN") or not os.path.exists(os.path.join(BUILD, "sim", "libcuda.so.1")):
    sys.exit(77)
folder = record("four", 4.2)
meters = {m["name"]: m for m in json.loads(report(folder, "--json"))["machine"]}
cpus = os.sysconf("SC_NPROCESSORS_ONLN")
total = next(int(line.split()[1]) * 1024 for line in open("/proc/meminfo") if line.startswith("MemTotal:"))
assert meters["cpu.count"]["mean"] == cpus, meters["cpu.count"]
assert meters["memory.total"]["mean"] == total, (meters["memory.total"], total)
assert 0 < meters["cpu.busy"]["mean"] <= cpus * 1.1, meters["cpu.busy"]
assert 0 < meters["memory.available"]["least"] <= meters["memory.available"]["most"] <= total
assert meters["process.switches.voluntary"]["mean"] > 0
for m in meters.values():
    assert m["least"] <= m["mean"] * (1 + 1e-9) and m["mean"] <= m["most"] * (1 + 1e-9), m
    assert m["line"] and m["width_s"] > 0, m
    assert m["unit"] != "share" or m["least"] >= 0, m
table = report(folder, "--machine").splitlines()
assert any(line.startswith("cpu.busy ") for line in table), table
assert all(len(line) <= 80 for line in table), table
for _ in range(5):  # on a busy machine the shortest job may live for longer
    folder = record("short%d" % _, 0.02)
    if json.loads(report(folder, "--json"))["machine"] == []:
        break
else:
    raise AssertionError("a job of 0.02 s was sampled")
assert "nothing was recorded about the machine" in report(folder, "--machine")
taken = samples(record("second", 1.5))
assert len(taken) >= 4, taken
assert [t for t, _ in taken] == sorted(t for t, _ in taken), taken
# Five a second at first; the machine is read once a second.
least = min(b[0] - a[0] for a, b in zip(taken, taken[1:]))
read = [t for t, machine in taken if machine]
assert read and all(b - a >= 4 * least for a, b in zip(read, read[1:])), taken
