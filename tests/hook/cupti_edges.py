#!/usr/bin/env python3
"""A profiler inside the job that does not behave like the usual one (begins before the driver does, begins twice, never ends,
begins in two threads at once) gets as many records as without tfhook, under tee and off; under tee so does tfhook."""
import os
import subprocess
import sys

from devicetimes import build, check, failed, read, read_truth, tmp

PROGRAM = """
import ctypes as C, sys, threading
how = sys.argv[1]
cupti, cu = C.CDLL("libcupti.so.13"), C.CDLL("libcuda.so.1")
REQUESTED = C.CFUNCTYPE(None, C.POINTER(C.c_void_p), C.POINTER(C.c_size_t), C.POINTER(C.c_size_t))
COMPLETED = C.CFUNCTYPE(None, C.c_void_p, C.c_uint32, C.c_void_p, C.c_size_t, C.c_size_t)
KINDS = (10, 1, 2)
buffers, seen, lock = {}, set(), threading.Lock()
@REQUESTED
def requested(buffer, size, most):
    b = C.create_string_buffer(1 << 16)
    buffers[C.addressof(b)] = b
    buffer[0], size[0], most[0] = C.addressof(b), 1 << 16, 0
@COMPLETED
def completed(ctx, stream, buffer, size, valid):
    record = C.c_void_p(None)
    while not cupti.cuptiActivityGetNextRecord(C.c_void_p(buffer), C.c_size_t(valid), C.byref(record)):
        kind = C.c_uint32.from_address(record.value).value
        at = {10: 92, 1: 44, 2: 44}.get(kind)
        if at:
            with lock:
                seen.add((kind, C.c_uint32.from_address(record.value + at).value))
def begin():
    cupti.cuptiActivityRegisterCallbacks(requested, completed)
    for kind in KINDS:
        cupti.cuptiActivityEnable(kind)
def end():
    cupti.cuptiActivityFlushAll(1)
    for kind in KINDS:
        cupti.cuptiActivityDisable(kind)
if how == "before":
    begin()
context, module, function, device = (C.c_void_p() for _ in range(4))
text = b".version 7.0\\n.target sm_50\\n.address_size 64\\n.visible .entry spin(.param .u64 ns)\\n{\\n\\tret;\\n}\\n"
assert cu.cuInit(0) == 0 and cu.cuCtxCreate_v2(C.byref(context), 0, 0) == 0
assert cu.cuModuleLoadData(C.byref(module), text) == 0 and cu.cuModuleGetFunction(C.byref(function), module, b"spin") == 0
assert cu.cuMemAlloc_v2(C.byref(device), C.c_size_t(4096)) == 0
ns = C.c_uint64(20000)
arguments = (C.c_void_p * 1)(C.addressof(ns))
def work(n=100):
    for i in range(n):
        assert cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None) == 0
        assert cu.cuMemcpyHtoD_v2(device, bytes(4096), C.c_size_t(4096)) == 0
    assert cu.cuCtxSynchronize() == 0
work(10)
if how == "twice":
    begin(); work(); end(); work(20); begin(); begin(); work(); end()
elif how == "threads":
    threads = [threading.Thread(target=begin) for _ in range(2)]
    [t.start() for t in threads]; [t.join() for t in threads]
    work(); end()
elif how == "abandons":
    begin(); work(); cupti.cuptiActivityFlushAll(0)
else:
    work(); end()
print(len(seen), flush=True)
# Not through the interpreter's end, during which its callbacks cannot be called at all.
C.CDLL(None).exit(0)
"""


def records(name, how, **env):
    """How many the profiler has; ours, and how many ops there were."""
    run, truth = f"{tmp}/{name}", f"{tmp}/{name}.truth"
    full = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "SIM_TRUTH": truth, "TFHOOK_RUN": run, **env}
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], env=full, stdout=subprocess.PIPE, text=True, timeout=60)
    check(done.returncode == 0, name, "ended with", done.returncode)
    ours = len(read(run)[0]) if "LD_PRELOAD" in env else 0
    return int(done.stdout or -1), ours, len(read_truth(truth)[0])


for how in ("before", "twice", "threads", "abandons"):
    alone, _, _ = records(how, how)
    check(alone >= 200, how, "alone", alone)
    for share in ("tee", "off", "own"):
        theirs, ours, ops = records(f"{how}-{share}", how, LD_PRELOAD=f"{build}/lib/libtfhook.so", TFHOOK_CUPTI="on",
                                    TFHOOK_CUPTI_SHARE=share)
        check(share == "own" or theirs == alone, how, share, "it has", theirs, "alone", alone)
        # What ran before recording began is not ours.
        check(share == "off" or ours == ops, how, share, "we have", ours, "of", ops)
sys.exit(failed())
