#!/usr/bin/env python3
"""What must hold: a look at a thread that is in a function in C names it, however the line calls it (by name, as an attribute, over several
lines, with unpacked arguments), and names nothing where the call has no name; where that is print, reading, writing, fsync or gc.collect the cause is
what it does; writing much to a file is a checkpoint, many lines a log, and to memory neither. On CPython 3.11 to 3.15, whose bytecode is known; on every other one nothing is named, and the rest is the same."""
import json
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
import interpreters  # noqa: E402
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, tool  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
tfhook = f"{build}/bin/tfhook"
NAMED = ("plain", "attribute", "lines", "unpacked", "numbered")
UNNAMED = ("unnamed", "passed")
# What is written to a tmpfs goes to memory, and is no writing of files to the kernel's counters.
ON_DISK = subprocess.run(["stat", "-f", "-c", "%T", tmp], capture_output=True, text=True).stdout.strip() != "tmpfs"
ARGUMENT = "argument"  # of print: mostly at another call
LEAST = 20  # looks that a cause must rest on: a crowded machine has fewer


def run(version, python, what):
    out = f"{tmp}/{version}.{what}"
    done = subprocess.run([tfhook, "run", "-q", "-o", out, "--", python, f"{here}/jobs/called.py", what], text=True, capture_output=True,
                          env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFH_TMP": tmp})
    check(done.returncode == 0, version, what, done.stderr)
    return out


def told(out, *flags):
    return tool("report", *flags, out)


def stacks(out):
    """Function of the program's that calls: time under a name in C, and without."""
    found = {}
    for line in told(out, "--folded").splitlines():
        stack, time = line.rsplit(" ", 1)
        frames = [f.split("_(")[0] for f in stack.split(";")]
        called = frames.pop() if stack.endswith("_(<builtin>)") else None
        of = found.setdefault(frames[-1], {})
        of[called] = of.get(called, 0) + int(time)
    return found


for version, python in interpreters.every():
    known = (3, 11) <= tuple(int(x) for x in version.split(".")[:2]) <= (3, 15)
    found = stacks(run(version, python, "ways"))
    print(version, {k: v for k, v in found.items() if k in NAMED + UNNAMED})
    for function in NAMED:
        of = found.get(function, {})
        check((of.get("print", 0) > of.get(None, 0)) if known else set(of) == {None}, version, function, of)
    for function in UNNAMED:
        of = found.get(function, {})
        check(of and "print" not in of, version, function, of)
    check(found.get(ARGUMENT, {}).get(None, 0) > found.get(ARGUMENT, {}).get("print", 0), version, found.get(ARGUMENT))
    if not known:
        continue
    for what, cause in (("logs", "host.logging"), ("reads", "input.read"), ("syncs", "host.checkpoint"), ("writes", "host.checkpoint"),
                        ("tells", "host.logging"), ("keeps", "host.python"), ("collects", "host.gc")):
        if what in ("writes", "tells") and not ON_DISK:
            print(version, what, "not tried: the tests' folder is in memory")
            continue
        verdict = json.loads(told(run(version, python, what), "--json"))["verdict"]
        place = verdict["place"]
        print(version, what, verdict["cause"], place and (place["function"], place["samples"]))
        if place and place["samples"] >= LEAST:
            check(verdict["cause"] == cause, version, what, verdict["cause"])
            check(place["function"] == what, version, what, place)
sys.exit(failed())
