#!/usr/bin/env python3
"""Where a run went: a job that counts its own time spends it before its first call, in epochs of training and evaluation, in
checkpoints between them and after its last call. Every part that it names is in the tree with the job's count and, to 5 %
of the run or 50 ms (2 % in quiet), its time; the parts of each part add up to it; and the text names them."""
import json
import os
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of, tool  # noqa: E402

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
JOB = r"""
import ctypes as C, json, sys, time
t = time.monotonic
ticks = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]) / 100
began = t() - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks)
time.sleep(0.4)
cu = C.CDLL("libcuda.so.1")
context, module, memory = C.c_void_p(), C.c_void_p(), C.c_uint64()
entry = ".visible .entry %s(.param .u64 ns)\n{\n\tret;\n}\n"
text = ".version 7.0\n.target sm_50\n.address_size 64\n" + "".join(entry % n for n in ("spin_forward", "spin_back", "spin_update"))
first = t()
assert cu.cuInit(0) == 0 and cu.cuCtxCreate_v2(C.byref(context), 0, 0) == 0
assert cu.cuModuleLoadData(C.byref(module), text.encode()) == 0
def function(name):
    f = C.c_void_p()
    assert cu.cuModuleGetFunction(C.byref(f), module, name) == 0
    return f
forward, back, update = function(b"spin_forward"), function(b"spin_back"), function(b"spin_update")
assert cu.cuMemAlloc_v2(C.byref(memory), 1 << 20) == 0
host = C.create_string_buffer(1 << 20)
def launch(f, ms):
    ns = C.c_uint64(int(ms * 1e6))
    arguments = (C.c_void_p * 1)(C.addressof(ns))
    assert cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, None, arguments, None) == 0
def step(train):
    assert cu.cuMemcpyHtoD_v2(memory, host, 10000) == 0
    launch(forward, 2)
    if train:
        launch(back, 3)
        launch(update, 1)
    assert cu.cuCtxSynchronize() == 0
spent = {"before": first - began, "train": 0, "evaluate": 0, "save": 0}
loops = t()
for epoch in range(4):
    a = t()
    for i in range(30 if epoch < 3 else 17):
        step(True)
    b = t()
    for i in range(20 if epoch < 3 else 0):
        step(False)
    c = t()
    if epoch < 3:
        assert cu.cuMemcpyDtoH_v2(host, memory, 1 << 20) == 0
        time.sleep(0.15)
    d = t()
    for name, s in (("train", b - a), ("evaluate", c - b), ("save", d - c)):
        spent[name] += s
spent["epochs"] = t() - loops
last = t()
time.sleep(0.3)
spent["after"] = t() - last
open(sys.argv[1], "w").write(json.dumps(spent))
"""
run, truth = f"{tmp}/run", f"{tmp}/truth"
env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"}
done = subprocess.run([f"{build}/bin/tfhook", "run", "-o", run, sys.executable, "-c", JOB, truth],
                      env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
check(done.returncode == 0, "the job ended with", done.returncode, done.stderr[-500:])
report = report_of(run)
spent, tree = json.load(open(truth)), report["tree"]
found = {}


def walk(part):
    found.setdefault(part["kind"], []).append(part)
    if part["parts"]:
        whole = sum(p["wall_s"] for p in part["parts"])
        check(abs(whole - part["wall_s"]) < 1e-6, part["kind"], "is", part["wall_s"], "its parts are", whole)
    for p in part["parts"]:
        check(p["wall_s"] >= 0, p)
        walk(p)


walk(tree)
off = max(0.05 * tree["wall_s"], 0.05)
for kind, name, count in (("before", "before", 1), ("epoch", "epochs", 4), ("train", "train", 107), ("evaluate", "evaluate", 60),
                          ("between", "save", None), ("after", "after", 1)):
    parts = found.get(kind, [])
    if check(len(parts) == 1, kind, "stands", len(parts), "times, of", sorted(found)):
        took = parts[0]["wall_s"] + (sum(p["wall_s"] for p in found.get("first", [])) if kind == "train" else 0)
        # The interpreter's own end comes after all that the job can count.
        more = 2 if kind == "after" else off
        check(-off < took - spent[name] < more, kind, "took", spent[name], "found", took)
        check(count is None or parts[0]["count"] == count, kind, "came", count, "times, found", parts[0]["count"])
text = tool("report", "--all", run)
for line in ("WHERE THE RUN WENT", "before the first GPU call", "4 epochs", "107 training steps", "60 evaluation steps", "after the last GPU call"):
    check(line in text, "not in the text:", line)
if failed():
    print(json.dumps(tree, indent=1)[:4000], spent)
sys.exit(failed())
