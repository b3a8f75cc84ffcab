"""slangpy, whose library exports variables named like the driver's functions. Buffers come back unchanged."""
import numpy as np
import slangpy as spy

SOURCE = """
[shader("compute")]
[numthreads(64, 1, 1)]
void twice(uint3 id : SV_DispatchThreadID, RWStructuredBuffer<float> x) { x[id.x] *= 2; }
"""
device = spy.Device(type=spy.DeviceType.cuda, enable_ray_tracing=False)
module = device.load_module_from_source("m", SOURCE)
kernel = device.create_compute_kernel(device.link_program([module], [module.entry_point("twice")]))
n = 1 << 14
x = device.create_buffer(element_count=n, struct_size=4,
                         usage=spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access)
for i in range(3):
    h = np.arange(n, dtype=np.float32) + i
    x.copy_from_numpy(h)
    kernel.dispatch(thread_count=[n, 1, 1], vars={"x": x})
    device.wait()
    assert (x.to_numpy().view(np.float32) == h).all()
    print("step", i)
