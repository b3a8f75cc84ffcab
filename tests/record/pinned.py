#!/usr/bin/env python3
"""What must hold: where a job ties its thread to one processor before its first recorded call, the recorder's threads use the
processors that the process was started with, and the job's thread stays where it was. A job that was started on one processor keeps its
recorder there; one that chose several has it among these."""
import json
import os
import subprocess
import sys

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
cores = sorted(os.sched_getaffinity(0))
if len(cores) < 2 or os.environ.get("TFH_SAN") in ("address", "thread"):
    print("needs two processors, and a recorder that can be loaded into Python")
    sys.exit(77)
JOB = """import sys; sys.path.insert(0, sys.argv[1])
import json, os, time
if sys.argv[2] != "-":
    os.sched_setaffinity(0, json.loads(sys.argv[2]))
from device import Device
d = Device()
for _ in range(100):
    d.train(1)
found = {}
for tid in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{tid}/comm") as f:
        name = "main" if int(tid) == os.getpid() else f.read().strip()
    found[name] = sorted(os.sched_getaffinity(int(tid)))
print(json.dumps(found))
"""
failures = 0


def threads(started, chosen, name):
    env = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/sim", "LD_PRELOAD": f"{BUILD}/lib/libtfhook.so", "TFHOOK_DIR": f"{TMP}/{name}"}
    done = subprocess.run([sys.executable, "-c", JOB, f"{SRC}/tests/jobs", json.dumps(chosen) if chosen else "-"], env=env, check=True,
                          stdout=subprocess.PIPE, text=True, timeout=60, preexec_fn=lambda: os.sched_setaffinity(0, started))
    return json.loads(done.stdout)


def check(name, started, chosen, main, recorder):
    global failures
    found = threads(started, chosen, name)
    if found["main"] != main or found.get("tfhook-flush") != recorder:
        failures += 1
        print("FAIL", name, found)


check("tied", cores, cores[1:2], cores[1:2], cores)
check("started-on-one", cores[1:2], None, cores[1:2], cores[1:2])
check("free", cores, None, cores, cores)
if len(cores) > 2:
    check("several", cores, cores[1:3], cores[1:3], cores[1:3])
sys.exit(1 if failures else 0)
