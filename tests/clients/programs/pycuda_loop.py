"""PyCUDA: a linked extension module; launches through parameter buffers, prepared and not."""
import numpy as np
import pycuda.driver as cuda
import pycuda.gpuarray as gpuarray

PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry axpy(.param .u64 x, .param .f32 a, .param .u32 n) { ret; }
\0"""
cuda.init()
context = cuda.Device(0).make_context()
axpy = cuda.module_from_buffer(PTX).get_function("axpy")
n = 1 << 16
h, o = cuda.pagelocked_empty(n, np.float32), cuda.pagelocked_empty(n, np.float32)
x, stream = cuda.mem_alloc(h.nbytes), cuda.Stream()
begin, end = cuda.Event(), cuda.Event()
axpy.prepare("Pfi")
for i in range(4):
    h[:] = np.arange(n) + i
    begin.record(stream)
    cuda.memcpy_htod_async(x, h, stream)
    axpy(x, np.float32(2), np.uint32(n), block=(256, 1, 1), grid=(n // 256, 1), stream=stream)
    axpy.prepared_async_call((n // 256, 1), (256, 1, 1), stream, x, 2.0, n)
    cuda.memcpy_dtoh_async(o, x, stream)
    end.record(stream)
    stream.synchronize()
    assert (o == h).all() and end.time_since(begin) >= 0
    print("step", i)
a = np.arange(1000, dtype=np.float32)
assert (gpuarray.to_gpu(a).get() == a).all()
context.pop()
