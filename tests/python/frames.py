#!/usr/bin/env python3
"""A thread's Python stack, read out of the interpreter's memory, is the one that Python itself tells: in recursion,
generators, coroutines, comprehensions, classes, exceptions, finalizers, traced and profiled code, code made at run time
under names of all widths, with frames that lie far apart in memory, in seven threads at once, with and without the GIL,
straight and from copies; on every interpreter of this machine."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import interpreters  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
job = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jobs", "everything.py")
library = os.environ["TFH_BUILD"] + "/tests/python/libreader.so"
failures = 0
for version, path in interpreters.every():
    done = subprocess.run([path, job, library], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    print(version, path, done.stdout.strip())
    if done.returncode or " 0 wrong" not in done.stdout:
        failures += 1
        print("FAIL", done.returncode)
sys.exit(bool(failures))
