#!/usr/bin/env python3
"""Beside another preload that takes malloc over (jemalloc, tcmalloc, mimalloc), in either order, a program runs as without tfhook
and is recorded call by call."""
import ctypes.util
import os
import subprocess
import sys

from compare import build, check, compare, failed, records_of, src, tmp, truth_of

if os.environ.get("TFH_SAN"):
    sys.exit(77)
subprocess.run([f"{src}/scripts/bootstrap", "allocators"])  # without them: those that are here
hook = f"{build}/lib/libtfhook.so"
program = f"{tmp}/client"
subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", program, f"{src}/tests/hook/linked/sanitized.c", "-ldl", "-lpthread"],
               check=True)
seen = [name for name in map(ctypes.util.find_library, ("jemalloc", "tcmalloc_minimal", "mimalloc")) if name]
for other in seen:
    for preload in (f"{hook} {other}", f"{other} {hook}"):
        place = f"{tmp}/{other}-{preload.startswith(hook)}"
        os.mkdir(place)
        done = subprocess.run([program, "4", "100"], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", LD_PRELOAD=preload, TFHOOK_DIR=place,
                                       SIM_TRUTH=f"{place}/truth"))
        check((done.returncode, done.stdout, done.stderr) == (3, "all copies are the same\n", ""), preload, done)
        compare(preload, records_of(place), truth_of(place), place)
print(", ".join(seen) or "none of them is here")
sys.exit(failed() if seen else 77)
