"""A few steps in a process whose Python may not be read.

usage: refused.py interpreters|hidden|plain    two interpreters in it; it is not dumpable any more; nothing of the kind
"""
import ctypes
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "jobs"))
from device import Device  # noqa: E402

PR_SET_DUMPABLE = 4
if sys.argv[1] == "interpreters":
    import _xxsubinterpreters
    other = _xxsubinterpreters.create()
elif sys.argv[1] == "hidden" and ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0):
    sys.exit("prctl")
d = Device()
for _ in range(30):
    d.up(4 << 20)
    d.run(1)
    time.sleep(0.005)
    d.down()
print("done")
