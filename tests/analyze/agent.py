#!/usr/bin/env python3
"""An agent that plays between its updates, fetching its actions one by one and sending back what came of them, is held up by its
own Python at the line that plays. It saves no checkpoints, although it fetches more in these steps than in others, and none of its
ops falls back to the processor. A loop that does save is still told so."""
import json
import os
import subprocess
import sys

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
jobs = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "jobs")
env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"}
JOB = """
import ctypes, sys
sys.path.insert(0, %r)
from device import Device
d = Device(16)
step = ctypes.CDLL(None).tfhook_step

def play(actions):
    total = 0
    for i in range(60000):
        total += i ^ 3
    return total

def plays():
    for _ in range(12):
        d.run(0.2)
        d.down(100000)
        play(d.host)
        d.up(100000)

def saves():
    for _ in range(12):
        d.down(1000000)

for turn in range(12):
    %s()
    for update in range(8):
        d.run(1.5, "backward")
        d.run(0.1, "update")
        d.down(4)
        step()
"""


def verdict(name):
    run = f"{tmp}/{name}"
    with open(f"{tmp}/{name}.py", "w") as file:
        file.write(JOB % (jobs, name))
    subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", run, "--", sys.executable, file.name], env=env, check=True, timeout=120)
    done = subprocess.run([f"{build}/bin/tfhook", "report", "--json", run], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    return result, {c["cause"] for c in result["causes"]}


result, causes = verdict("plays")
told = result["verdict"]
crowded = any("for a CPU" in remark for remark in result["remarks"])  # samples then are where a thread loses its CPU, at system calls
if told["cause"] != "host.cpu-contention":  # on a machine that is busy with something else
    assert not causes & {"transfer.fallback", "host.checkpoint"}, causes
    assert (told["class"], told["cause"]) == ("host-bound", "host.python"), told
    assert crowded or told["place"]["function"] == "play", told["place"]
assert not any(s["kind"] == "checkpoint" for s in result["segments"]), result["segments"]
result, _ = verdict("saves")
assert any(s["kind"] == "checkpoint" for s in result["segments"]), result["segments"]
sys.exit(0)
