"""Taichi opens its core with RTLD_DEEPBIND. Fields go to the device and come back through kernels of its own."""
import numpy as np
import taichi as ti

ti.init(arch=ti.cuda, log_level=ti.ERROR, device_memory_GB=0.25, offline_cache=False)
assert ti.cfg.arch == ti.cuda
n = 1 << 14
x = ti.field(ti.f32, shape=n)


@ti.kernel
def axpy(a: ti.f32):
    for i in x:
        x[i] = x[i] * a + 1.0


for i in range(3):
    x.from_numpy(np.arange(n, dtype=np.float32))
    axpy(2.0)
    axpy(2.0)
    print("step", i, x.to_numpy().shape)
    ti.sync()
