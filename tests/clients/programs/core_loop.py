"""cuda.core: memory of a pool, pinned buffers, copies whose names tell no direction, extended launches, events."""
import numpy as np
from cuda.core import Device, EventOptions, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch

PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry axpy(.param .u64 x, .param .f32 a, .param .u32 n) { ret; }
\0"""
device = Device(0)
device.set_current()
stream = device.create_stream()
axpy = ObjectCode.from_ptx(PTX).get_kernel("axpy")
n = 1 << 16
x = device.allocate(4 * n, stream=stream)
pinned = LegacyPinnedMemoryResource()
source, result = pinned.allocate(4 * n), pinned.allocate(4 * n)
timed = EventOptions(timing_enabled=True)
for i in range(4):
    np.from_dlpack(source).view(np.float32)[:] = i
    begin = stream.record(options=timed)
    source.copy_to(x, stream=stream)
    launch(stream, LaunchConfig(grid=n // 256, block=256), axpy, x, np.float32(2), np.uint32(n))
    x.copy_to(result, stream=stream)
    end = stream.record(options=timed)
    stream.sync()
    assert (np.from_dlpack(result).view(np.float32) == i).all() and end - begin >= 0
    print("step", i)
