#!/usr/bin/env python3
"""A job that shares one CPU with six programs which never sleep waits for it. That is not called waiting for the device (host.sync), nor
anything with high confidence, and the report says that threads were ready to run without a CPU, and who had them. Holds on any machine:
the crowd is made here, and the job works for more of a step than a seventh, which is all that it gets."""
import json
import os
import subprocess
import sys

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL = os.path.join(BUILD, "bin", "tfhook")
JOB = """import sys; sys.path.insert(0, sys.argv[1]); import device, time; d = device.Device(); until = time.time() + 6; n = 0
while n < 60 or time.time() < until:
    d.train(2); d.sync(); n += 1; sum(k * k % 7 for k in range(60000))
"""

if os.environ.get("TFH_SAN") or not os.path.exists(os.path.join(BUILD, "sim", "libcuda.so.1")):
    sys.exit(77)
if not os.path.exists("/proc/self/schedstat"):
    sys.exit(77)
cpu = min(os.sched_getaffinity(0))


def pin():
    os.sched_setaffinity(0, {cpu})


crowd = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=pin) for _ in range(6)]
try:
    folder = os.path.join(TMP, "crowded")
    subprocess.run([TOOL, "run", "-q", "-o", folder, "--", sys.executable, "-c", JOB, os.path.join(SRC, "tests", "jobs")],
                   env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim")), stdin=subprocess.DEVNULL, check=True,
                   preexec_fn=pin)
finally:
    for c in crowd:
        c.kill()
        c.wait()


def report(*flags):
    return subprocess.run([TOOL, "report", *flags, folder], capture_output=True, text=True, check=False).stdout


found, text = json.loads(report("--json")), " ".join(report("--all").split())
verdict = found["verdict"]
assert verdict["cause"] != "host.sync", verdict
assert verdict["confidence"] != "high", verdict
assert "waits for a CPU" in text or "waited for a CPU" in text, text
assert "CPUs in use: " in text, text
print("%(class)s %(cause)s %(confidence)s" % verdict)
