#!/usr/bin/env python3
"""What it costs to read the Python stack of a call: waits from 20 frames deep, each with a backtrace, with TFHOOK_PYTHON=1
and 0 in turn, best of five; on every interpreter of this machine, holding the GIL or not."""
import os
import subprocess
import sys
import tempfile

src, build = os.environ["TFH_SRC"], os.environ["TFH_BUILD"]
sys.path.insert(0, src + "/tests/python")
import interpreters  # noqa: E402

JOB = """
import ctypes, sys, time, threading
cuda = (ctypes.PyDLL if sys.argv[1] == "with" else ctypes.CDLL)("libcuda.so.1")
context = ctypes.c_void_p()
memory, host = ctypes.c_void_p(), ctypes.create_string_buffer(64)
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
wait = cuda.cuCtxSynchronize
def deep(n):
    if n:
        return deep(n - 1)
    cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64))
    end = time.monotonic() + 0.1
    while time.monotonic() < end:  # until the recorder has begun, which a copy makes it do
        cuda.cuMemcpyHtoD_v2(memory, host, ctypes.c_size_t(64))
    best = 1e9
    for _ in range(20):
        begin = time.thread_time_ns()
        for _ in range(500):
            wait()
        best = min(best, (time.thread_time_ns() - begin) / 500)
    print(best)
def start():
    cuda.cuCtxSetCurrent(context)
    deep(18)
if sys.argv[2] == "main":
    start()
else:
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
"""


def cost(python, gil, thread, read):
    with tempfile.TemporaryDirectory() as tmp:
        env = {**os.environ, "LD_LIBRARY_PATH": build + "/sim", "LD_PRELOAD": build + "/lib/libtfhook.so", "TFHOOK_DIR": tmp,
               "TFHOOK_STACKS": "copy", "TFHOOK_PYTHON": read, "TFHOOK_CUPTI": "off"}
        return float(subprocess.run([python, "-c", JOB, gil, thread], env=env, stdout=subprocess.PIPE, check=True).stdout)


print("ns of processor time a call: with its Python stack, without, difference")
for version, python in interpreters.every():
    for gil, thread in (("with", "main"), ("without", "main"), ("without", "other")):
        pairs = [(cost(python, gil, thread, "1"), cost(python, gil, thread, "0")) for _ in range(5)]
        read, not_read = min(p[0] for p in pairs), min(p[1] for p in pairs)
        print(f"  {version:8} {gil + ' the GIL':16} {thread + ' thread':13} {read:8.0f} {not_read:8.0f} {read - not_read:8.0f}")
