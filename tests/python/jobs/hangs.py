"""Waits for a kernel that never ends, with its first waiting call. Prints its process' number before.

usage: hangs.py main|thread    in which thread
"""
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "jobs"))
from device import Device  # noqa: E402

d = Device()
d.run(1)
print(os.getpid(), flush=True)
d.run(1e12)


def wait_for_all():
    d.cu.cuCtxSetCurrent(d.context)
    d.cu.cuStreamSynchronize(d.stream)  # hangs


def step():
    wait_for_all()


if sys.argv[1] == "main":
    step()
thread = threading.Thread(target=step)
thread.start()
thread.join()
