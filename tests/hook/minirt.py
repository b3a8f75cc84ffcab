#!/usr/bin/env python3
"""Programs on a runtime library, shared, static, and several of them in one process, each with its own lookups: every
call of every runtime is in the trace as the driver saw it, and none is there twice."""
import os
import subprocess
import sys

from compare import build, calls_of, check, compare, failed, run, src, tmp

LINKED = f"{src}/tests/hook/linked"
RUNTIME, WORK = f"{LINKED}/minirt.c", f"{LINKED}/minirt_work.c"
client = f"{build}/tests/hook/minirt"
STEPS = 10


def link(name, *parts):
    out = f"{tmp}/{name}"
    done = subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", out, *parts, "-ldl", "-lpthread"],
                          capture_output=True, text=True)
    check(done.returncode == 0, name, "link", done.stderr)
    return out


shared = link("libminirt.so", "-shared", "-fPIC", RUNTIME)
# A static runtime hides its names, so that the objects of one process do not share one.
private = [link(f"libprivate{n}.so", "-shared", "-fPIC", "-Wl,-Bsymbolic", RUNTIME, WORK) for n in "ab"]
user = link("libuser.so", "-shared", "-fPIC", WORK, shared, f"-Wl,-rpath,{tmp}")
program = link("program", f"{src}/tests/hook/minirt.c", RUNTIME, WORK)

for name, users, command in (("shared", 1, [client, user]), ("static", 1, [program, "-"]),
                             ("both", 2, [program, "-", user]), ("two-objects", 2, [client, *private]),
                             ("all", 4, [program, "-", user, *private])):
    records, truth, place = run(name, *command)
    compare(name, records, truth, place)
    # Each user works twice: alone, and beside the others.
    got = [r["fn"] for r in calls_of(records)]
    for fn, times in (("cuMemcpyHtoD_v2", 1), ("cuMemcpyHtoDAsync_v2", 1), ("cuMemcpyAsync", 1), ("cuLaunchKernel", 1),
                      ("cuMemcpyDtoH_v2", 1), ("cuMemsetD8Async", 1), ("cuEventRecord", 1)):
        check(got.count(fn) == times * STEPS * 2 * users, name, fn, got.count(fn))
sys.exit(failed())
