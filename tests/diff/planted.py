#!/usr/bin/env python3
"""`diff` tells of a library that has another version in the second run; of a run whose steps jump about it says that the noise is too large
to tell, and not that there is no difference.

timeout: 240
"""
import json
import os
import re
import subprocess
import sys

build, tmp, src = os.environ["TFH_BUILD"], os.environ["TFH_TMP"], os.environ["TFH_SRC"]
TOOL = f"{build}/bin/tfhook"
env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"}
JOB = """
import ctypes, os, subprocess, sys, time
sys.path.insert(0, %r)
from device import Device
if len(sys.argv) > 2:
    ctypes.CDLL(sys.argv[2])
d = Device()
for i in range(200):
    time.sleep(float(sys.argv[1]) * (i // 40 %% 2))
    d.up()
    d.run(2)
    d.sync()
""" % os.path.join(src, "tests/jobs")
# Libraries are looked for once a second, later on a busy machine.
UNTIL_SEEN = """
end = time.time() + 60
while time.time() < end:
    d.up()
    subprocess.run([os.environ["TOOL"], "ctl", os.environ["RUN"], "flush"], stdout=-3, env={"PATH": "/bin"})
    if b"cuDNN" in subprocess.run([os.environ["TOOL"], "info", os.environ["RUN"]], stdout=-1, env={"PATH": "/bin"}).stdout:
        break
    time.sleep(0.2)
"""


def record(name, job, *args):
    subprocess.run([TOOL, "run", "-q", "-o", name, sys.executable, "-c", job, *args], check=True, timeout=150,
                   env={**env, "RUN": name, "TOOL": TOOL})
    subprocess.run([TOOL, "digest", name], check=True, stdout=subprocess.DEVNULL)


def diff(*args):
    def run(*form):
        return subprocess.run([TOOL, "diff", *form, *args], check=True, stdout=subprocess.PIPE, text=True, timeout=100).stdout
    return json.loads(run("--json")), run()


os.chdir(tmp)
for name, version in (("older", "9.1.0"), ("newer", "9.2.1")):
    os.mkdir(name + ".lib")
    library = os.path.abspath(f"{name}.lib/libcudnn.so.{version}")
    subprocess.run(["cc", "-shared", "-o", library, "-x", "c", "/dev/null"], check=True)
    record(name, JOB + UNTIL_SEEN, "0", library)
found, text = diff("older", "newer")
facts = {f["name"]: (f["a"], f["b"]) for f in found["facts"]}
assert facts.get("software.cuDNN") == ("9.1.0", "9.2.1"), facts
assert re.search(r"^  cuDNN +9\.1\.0 -> 9\.2\.1$", text, re.M) and re.search(r"^  argument \d+ ", text, re.M), text

# Long stretches of two kinds: neighbours are alike, so few of them tell something new, and the interval is wide.
record("jumps", JOB, "0.02")
found, text = diff("--at", "0-", "--at", "0-", "jumps")
assert not found["step"]["found"] and found["step"]["off_s"] * 4 > found["step"]["a_s"], found["step"]
assert "TOO NOISY TO TELL" in text and "NO DIFFERENCE" not in text, text
