"""A process that ends while other threads are in driver calls, from deep Python stacks and without the GIL.

usage: endings.py daemons|_exit|raise|fork|exec"""
import atexit
import ctypes
import os
import sys
import threading
import time

how = sys.argv[1]
cuda = ctypes.CDLL("libcuda.so.1")
context, memory, host = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(1 << 12)
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0 and cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 12)) == 0
copy, size = cuda.cuMemcpyHtoD_v2, ctypes.c_size_t(64)


def deep(n, times):
    if n:
        return deep(n - 1, times)
    cuda.cuCtxSetCurrent(context)
    while times:
        copy(memory, host, size)
        times -= 1


class Copies:
    """Is taken apart with the interpreter."""

    def __del__(self, copy=copy, memory=memory, host=host, size=size):
        copy(memory, host, size)


kept = [Copies() for _ in range(20)]
ring = [Copies()]
ring.append(ring)
atexit.register(copy, memory, host, size)
begin = time.monotonic()
while time.monotonic() < begin + 0.05:  # until the recorder has begun
    copy(memory, host, size)
for _ in range(4):
    threading.Thread(target=deep, args=(40, -1), daemon=True).start()
time.sleep(0.01)
if how == "_exit":
    os._exit(3)
if how == "raise":
    raise ValueError("the end")
if how == "fork":
    child = os.fork()
    if not child:
        threads = [threading.Thread(target=deep, args=(40, 200)) for _ in range(2)]
        for thread in threads:
            thread.start()
        deep(10, 200)
        for thread in threads:
            thread.join()
        sys.exit(5)
    assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 5
if how == "exec":
    os.execv("/bin/sh", ["sh", "-c", "exit 4"])
