#!/usr/bin/env python3
"""What must hold: a stack that a sample of a running thread has is one that the program can have had: every frame was called
from the line that the next outer one is at, out to the thread's beginning; of a program whose call graph is known. Looks do not stop the
thread, which may go round and come by the same frames again between the two walks of a sample: under 0.1 % may be wrong."""
import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import interpreters  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
SAMPLES = sys.argv[1] if len(sys.argv) > 1 else "2000"
library = os.environ["TFH_BUILD"] + "/tests/python/libreader.so"
found, failures = interpreters.every(), 0
for version, python in (found if len(sys.argv) > 1 else dict.fromkeys([found[0], found[len(found) // 2], found[-1]])):
    done = subprocess.run([python, f"{here}/jobs/callgraph.py", library, SAMPLES, os.environ["TFH_TMP"] + "/stacks"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    print(done.stdout.strip())
    told = re.search(r" (\d+) samples, \d+ stacks, (\d+) in the graph, (\d+) impossible", done.stdout)
    if not told or int(told[3]) * 1000 >= int(told[1]) or int(told[2]) == 0:
        failures += 1
        print("FAIL", done.returncode)
sys.exit(bool(failures))
