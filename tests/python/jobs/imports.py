"""A job that imports for long before its first call: it counts itself where that goes, and prints it as JSON.

usage: imports.py FOLDER SECONDS     FOLDER: has lib/python3/site-packages/heavy and lazy, which tests/python/imports.py makes
"""
import json
import os
import sys
import time

folder, seconds = sys.argv[1], float(sys.argv[2])
sys.path[:0] = [folder, folder + "/lib/python3/site-packages", os.path.join(os.path.dirname(__file__), "..", "..", "jobs")]
os.environ["IMPORT_SECONDS"] = str(seconds)
began = time.monotonic()
import heavy  # noqa: E402, F401
heavy_s, began = time.monotonic() - began, time.monotonic()


def vocabulary():
    time.sleep(seconds)  # read


vocabulary()
read_s, began = time.monotonic() - began, time.monotonic()
import lazy  # noqa: E402
lazy.begin()  # imports then
lazy_s = time.monotonic() - began
from device import Device  # noqa: E402

device = Device()
for _ in range(60):
    device.up(), device.train(1), device.down()
print(json.dumps({"heavy": heavy_s, "vocabulary": read_s, "lazy": lazy_s}))
