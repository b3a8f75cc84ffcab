#!/usr/bin/env python3
"""Two loops with two seconds of sleep between them: the report names the line that sleeps, with most of that time, in JSON, in the
advice and on the page; no share is above 1."""
import json
import os
import subprocess
import sys

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
JOB = r"""
import ctypes as C, time
cu = C.CDLL("libcuda.so.1")
context, module, memory = C.c_void_p(), C.c_void_p(), C.c_uint64()
entry = ".visible .entry %s(.param .u64 ns)\n{\n\tret;\n}\n"
text = ".version 7.0\n.target sm_50\n.address_size 64\n" + "".join(entry % n for n in ("spin_first", "spin_second"))
assert cu.cuInit(0) == 0 and cu.cuCtxCreate_v2(C.byref(context), 0, 0) == 0
assert cu.cuModuleLoadData(C.byref(module), text.encode()) == 0
assert cu.cuMemAlloc_v2(C.byref(memory), 1 << 20) == 0
host = C.create_string_buffer(1 << 20)
def loop(name, kernels):
    f = C.c_void_p()
    assert cu.cuModuleGetFunction(C.byref(f), module, name) == 0
    for _ in range(80):
        assert cu.cuMemcpyHtoD_v2(memory, host, 10000) == 0
        for _ in range(kernels):
            ns = C.c_uint64(2000000)
            arguments = (C.c_void_p * 1)(C.addressof(ns))
            assert cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, None, arguments, None) == 0
        assert cu.cuCtxSynchronize() == 0
loop(b"spin_first", 1)
def pause():
    for _ in range(20):
        time.sleep(0.1)  # between the loops
assert cu.cuMemcpyDtoD_v2(memory, memory, 1000) == 0
pause()
assert cu.cuMemcpyDtoH_v2(host, memory, 1 << 19) == 0
loop(b"spin_second", 3)
"""
job, run = f"{tmp}/two_loops.py", f"{tmp}/run"
with open(job, "w") as f:
    f.write(JOB)
line = next(i for i, text in enumerate(JOB.splitlines(), 1) if "# between the loops" in text)


def report(*flags):
    return subprocess.run([f"{build}/bin/tfhook", "report", *flags, run], stdout=subprocess.PIPE, text=True, check=True).stdout


subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", run, sys.executable, job], check=True, stdout=subprocess.DEVNULL,
               env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"})
told = json.loads(report("--json"))
for part in told["start"]:
    assert sum(x["share"] for x in part["lines"]) <= 1.0001 and sum(part["states"].values()) <= 1.0001, part
between = [x for x in told["start"] if x["part"] == "between"]
assert between and between[0]["wall_s"] > 1.5, (told["start"], told["tree"])
if between[0]["samples"] < 20:
    print("too few looks on this machine")
    sys.exit(77)
most = between[0]["lines"][0]
assert (os.path.basename(most["file"]), most["line"]) == ("two_loops.py", line) and most["share"] > 0.5, between
text = report("--all", "--color", "never")
assert f"% at two_loops.py:{line}" in text and "between loops: " in text, text
assert "between loops (" not in text  # what the advice says is no note, too
subprocess.run([f"{build}/bin/tfhook", "report", "--html", f"{tmp}/page.html", run], check=True)
with open(f"{tmp}/page.html") as f:
    assert "Besides the steps: the longest time between loops, " in f.read()
