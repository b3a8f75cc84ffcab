#!/usr/bin/env python3
"""What must hold, with every CPython that is here: in random programs, whatever is said to count a loop's iterations does so, at every
moment; and how many are left is no less than come. TFH_COUNTED: so many programs of seeds of their own, instead of some."""
import os
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import interpreters  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
AT_ONCE, FIRST = 60, 8
library, many = os.environ["TFH_BUILD"] + "/tests/python/libreader.so", int(os.environ.get("TFH_COUNTED", "0"))
first, failures = int(time.time()) if many else FIRST, 0
for version, python in interpreters.every():
    for seed in range(first, first + max(1, many // AT_ONCE)):
        done = subprocess.run([python, here + "/jobs/counted.py", library, str(seed), str(AT_ONCE)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300)
        print(version, "seed", seed, done.stdout.strip())
        if done.returncode or not done.stdout.endswith(" 0 wrong\n") or " 0 counted" in done.stdout:
            failures += 1
            print("FAIL", done.returncode)
sys.exit(bool(failures))
