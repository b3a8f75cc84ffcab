#!/usr/bin/env python3
"""What must hold: a sample of a running thread says whether it held Python's global interpreter lock: in the program's own code it did, in a
function in C that releases it (hashing) it did not; on every version of CPython."""
import os
import struct
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import interpreters  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
STATE, RUNNING = 11, 1  # of lib/format/layout.h
NAMES = {0: "unknown", 1: "held", 2: "released"}
LEAST, MOST = 20, 0.8  # samples, and part of them that must be right: some are taken at the launches in between


def lock(out):
    """How often the lock was held, released, or nothing is known, in samples with a place."""
    count = dict.fromkeys(NAMES.values(), 0)
    for name in os.listdir(out):
        if name.endswith(".tft"):
            dump = subprocess.run([f"{build}/tests/record/tft_dump", f"{out}/{name}"], stdout=subprocess.PIPE, check=True, text=True).stdout
            for line in dump.splitlines():
                part = line.split()
                if len(part) == 4 and len(part[3]) == 128:
                    record = bytes.fromhex(part[3])
                    kind, = struct.unpack_from("<B", record, 18)
                    state, = struct.unpack_from("<H", record, 20)
                    stack, word = struct.unpack_from("<I", record, 36)[0], struct.unpack_from("<Q", record, 40)[0]
                    if kind == STATE and state == RUNNING and stack:
                        count[NAMES[word]] += 1
    return count


failures = 0
for version, python in interpreters.every():
    for work in "held", "released":
        out = f"{tmp}/{version}.{work}"
        subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", out, "--", python, f"{here}/jobs/gil.py", work], check=True,
                       env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFH_TMP": tmp})
        count = lock(out)
        print(version, work, count)
        if sum(count.values()) >= LEAST and (count["unknown"] or count[work] < MOST * sum(count.values())):
            failures += 1
            print("FAIL", version, work, count)
assert not failures
