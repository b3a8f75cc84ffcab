"""The driver interface by hand: a stream, events, pinned and pageable copies in both directions, launches."""
import ctypes

import numpy as np
from cuda.bindings import driver

PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry axpy(.param .u64 x, .param .f32 a, .param .u32 n) { ret; }
\0"""


def ok(result):
    assert result[0] == driver.CUresult.CUDA_SUCCESS, result
    return result[1] if len(result) == 2 else result[1:]


ok(driver.cuInit(0))
device = ok(driver.cuDeviceGet(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(device))))
axpy = ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(PTX)), b"axpy"))
n = 1 << 16
h, o = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
x = ok(driver.cuMemAlloc(h.nbytes))
address = ok(driver.cuMemAllocHost(h.nbytes))
pinned = np.ctypeslib.as_array((ctypes.c_float * n).from_address(int(address)))
stream = ok(driver.cuStreamCreate(0))
begin, end = ok(driver.cuEventCreate(0)), ok(driver.cuEventCreate(0))
arguments = ((x, 2.0, n), (None, ctypes.c_float, ctypes.c_uint))
for i in range(5):
    pinned[:] = h + i
    ok(driver.cuEventRecord(begin, stream))
    ok(driver.cuMemcpyHtoDAsync(x, address, h.nbytes, stream))
    ok(driver.cuLaunchKernel(axpy, n // 256, 1, 1, 256, 1, 1, 0, stream, arguments, 0))
    ok(driver.cuMemcpyDtoHAsync(o, x, h.nbytes, stream))
    ok(driver.cuEventRecord(end, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert (o == h + i).all() and ok(driver.cuEventElapsedTime(begin, end)) > 0
    ok(driver.cuMemcpyHtoD(x, h, h.nbytes))
    ok(driver.cuLaunchKernel(axpy, n // 256, 1, 1, 256, 1, 1, 0, 0, arguments, 0))
    ok(driver.cuMemsetD32Async(x, i, 100, 0))
    ok(driver.cuMemcpy(int(address), int(x), 4 * n))  # its name tells no direction
    assert (pinned.view(np.uint32)[:100] == i).all() and (pinned[100:] == h[100:]).all()
    print("step", i)
assert driver.cuMemFree(12345)[0] != driver.CUresult.CUDA_SUCCESS
ok(driver.cuEventDestroy(begin))
ok(driver.cuStreamDestroy(stream))
ok(driver.cuMemFree(x))
ok(driver.cuMemFreeHost(address))
