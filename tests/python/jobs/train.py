"""A training loop as tests/python/where.py wants it: a batch is made in Python, copied up, and a number fetched through an
installed library. The lines that the report has to name end in a comment that says what they do."""
import ctypes
import sys
import time

sys.path.insert(0, sys.argv[1])
import fetching  # noqa: E402

STEPS, BYTES = 40, 8 << 20
cuda, marks = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
context, memory, host = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(BYTES)


def upload():
    cuda.cuMemcpyHtoD_v2(memory, host, ctypes.c_size_t(BYTES))  # upload


def augment():
    end = time.perf_counter() + 0.002
    while time.perf_counter() < end:
        pass


def step():
    augment()
    upload()
    fetching.item(cuda, memory, host)  # fetch


assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0 and cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(BYTES)) == 0
for _ in range(STEPS):
    marks.tfhook_step_begin(b"step")
    step()
    marks.tfhook_step_end()
