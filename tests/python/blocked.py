#!/usr/bin/env python3
"""The main thread's Python frames are read in place, not copied by the kernel (27 us a call), also when the job's launcher left a
signal blocked that has no handler. In a handler of a signal, which may have interrupted the interpreter anywhere, they are copied. Either
way the calls have their line."""
import os
import re
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, src, tmp = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
tfhook, CALLS = f"{build}/bin/tfhook", 500
JOB = f"""
import ctypes, signal, sys
sys.path.insert(0, {src!r} + "/tests/jobs")
from device import Device
d = Device()
def fetch():
    d.run(1.5)
    d.down()
if sys.argv[1] == "blocked":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPROF, signal.SIGRTMIN + 3])
if sys.argv[1] == "handled":
    signal.signal(signal.SIGPROF, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPROF])
for i in range({CALLS}):
    fetch()
"""


def copied(how):
    """How often the job's process asked the kernel to copy memory: once for each variable of its environment, too."""
    script, directory = f"{tmp}/job.py", f"{tmp}/{how}"
    with open(script, "w") as f:
        f.write(JOB)
    env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "LD_PRELOAD": f"{build}/tests/python/libvmreads.so", "TFHOOK_SAMPLES": "0",
           "TFHOOK_CUPTI": "off"}
    done = subprocess.run([tfhook, "run", "-q", "-o", directory, "--", sys.executable, script, how], env=env, stderr=subprocess.PIPE,
                          text=True, timeout=100)
    check(done.returncode == 0, how, done.stderr)
    js = report_of(directory)
    where = {t["fn"]: t["where"] for t in js["transfers"]}
    check("device.py" in where.get("cuMemcpyDtoHAsync_v2", ""), how, where)
    return max(int(n) for n in re.findall(r"process_vm_readv: (\d+)", done.stderr))


for how in ("plain", "blocked"):
    n = copied(how)
    check(n < CALLS // 2, how, n)
n = copied("handled")
check(n >= CALLS, "handled", n)
sys.exit(failed())
