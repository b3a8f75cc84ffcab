"""Triton without a framework: compiled kernels, launched by the module that it generates and links for each."""
import ctypes

import numpy as np
import triton
import triton.language as tl

cu = ctypes.CDLL("libcuda.so.1")


@triton.jit
def axpy(x, y, a, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(y + i, tl.load(y + i, mask=m) + a * tl.load(x + i, mask=m), mask=m)


class Array:  # what Triton asks of a tensor
    dtype = "float32"

    def __init__(self, n):
        p = ctypes.c_uint64()
        assert cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(4 * n)) == 0
        self.p = p.value

    def data_ptr(self):
        return self.p


print(triton.runtime.driver.active.get_current_target())
n = 1 << 16
x, y = Array(n), Array(n)
h, o = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
for i in range(3):
    assert cu.cuMemcpyHtoD_v2(ctypes.c_uint64(x.p), h.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(h.nbytes)) == 0
    for _ in range(4):
        axpy[(triton.cdiv(n, 1024),)](x, y, 2.0, n, B=1024)
    assert cu.cuMemcpyDtoH_v2(o.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(x.p), ctypes.c_size_t(o.nbytes)) == 0
    assert (o == h).all()
    print("step", i)
