#!/usr/bin/env python3
"""A thread in a callback of dl_iterate_phdr(), which has the loader's list locked, waits for Python's lock. Another holds that lock and
calls the driver (as extensions do): its backtraces and its first lookups of functions must not wait for the list, or both wait for ever."""
import ctypes
import os
import subprocess
import sys
import threading
import time

COPIES = 20


def job(what):
    cuda, libc = ctypes.PyDLL("libcuda.so.1"), ctypes.CDLL(None)  # PyDLL: calls are made with Python's lock held
    context, device, host = ctypes.c_void_p(), ctypes.c_ulonglong(), ctypes.create_string_buffer(64)
    assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not cuda.cuCtxSetCurrent(context)
    assert not cuda.cuMemAlloc_v2(ctypes.byref(device), ctypes.c_size_t(64))

    def copy():
        assert not cuda.cuMemcpyHtoD_v2(device, host, ctypes.c_size_t(64))

    copy()
    time.sleep(0.5)  # recording begins
    inside = threading.Event()

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    def callback(_info, _size, _data):
        inside.set()
        time.sleep(0.02)
        return 0

    other = threading.Thread(target=lambda: libc.dl_iterate_phdr(callback, None))
    other.start()
    inside.wait()
    if what == "lookups":
        for name in ("cuMemcpyDtoH_v2", "cuStreamCreate", "cuEventCreate", "cuMemFree_v2"):
            assert getattr(cuda, name)
            time.sleep(0.01)
    else:
        for _ in range(COPIES):
            copy()
            time.sleep(0.01)
    assert other.is_alive(), "the other thread was in the callback for too short a time"
    other.join()
    print("done")


def main():
    build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
    if os.environ.get("TFH_SAN"):
        sys.exit(77)
    libraries = {"": "", "preloaded": f"{build}/lib/libtfhook.so"}
    for what in ("backtraces", "lookups"):
        for form, library in libraries.items():
            env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", TFHOOK_DIR=tmp, TFHOOK_STACKS="copy", LD_PRELOAD=library)
            try:
                done = subprocess.run([sys.executable, __file__, what], env=env, stdout=subprocess.PIPE, text=True, timeout=60)
                said = done.stdout
            except subprocess.TimeoutExpired:
                said = "does not end"
            assert said == "done\n", (what, form, said)


if len(sys.argv) > 1:
    job(sys.argv[1])
else:
    main()
