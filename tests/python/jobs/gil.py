"""Steps between which a job works either with Python's lock ("held") or in a function in C that releases it ("released")."""
import hashlib
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "jobs"))
from device import Device  # noqa: E402

BYTES = bytes(4 << 20)


def held():
    x = 0
    for i in range(100000):
        x += i * i % 7


def released():
    hashlib.sha256(BYTES)


work, device, until = {"held": held, "released": released}[sys.argv[1]], Device(), time.monotonic() + 2.5
while time.monotonic() < until:
    work()
    device.train(1)
