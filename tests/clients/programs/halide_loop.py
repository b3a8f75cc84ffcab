"""Halide compiles a pipeline for the GPU and runs it; buffers go to the device and come back."""
import halide as hl
import numpy as np

n = 1 << 14
x, block, thread = hl.Var("x"), hl.Var("block"), hl.Var("thread")
source = hl.Buffer(np.arange(n, dtype=np.float32))
axpy = hl.Func("axpy")
axpy[x] = source[x] * 2.0 + 1.0
axpy.gpu_tile(x, block, thread, 256)
target = hl.get_host_target().with_feature(hl.TargetFeature.CUDA).with_feature(hl.TargetFeature.CUDACapability80)
assert target.has_gpu_feature()
for i in range(3):
    source.set_host_dirty()
    result = axpy.realize([n], target)
    result.copy_to_host()
    print("step", i, np.array(result).shape)
