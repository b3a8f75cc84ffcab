"""Steps that allocate and free what they could keep, in calls of a fifth of a millisecond each: allocates.py FOLDER-OF-device.py"""
import ctypes
import sys

sys.path.insert(0, sys.argv[1])
from device import Device  # noqa: E402

d = Device()
memory = ctypes.c_void_p()


def scratch():
    d.cu.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20))  # allocate
    d.cu.cuMemFree_v2(memory)


for _ in range(60):
    for _ in range(10):
        scratch()
    d.up()
    d.run(0.5)
    d.sync()
