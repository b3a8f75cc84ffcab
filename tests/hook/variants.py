#!/usr/bin/env python3
"""Drivers that are older and newer than our tables, and one that looks itself up while it starts: what they have in
common with ours is recorded call by call, with nothing unhooked; a name or a version that no table knows passes through
as the driver's own, and is reported."""
import json
import os
import subprocess
import sys

from compare import build, calls_of, check, compare, failed, records_of, src, tmp, truth_of

surface = f"{build}/tests/hook/surface"
LIST = f"{src}/tests/hook/cudart13.txt"
NEWER = """
import ctypes as C
cu = C.CDLL("libcuda.so.1")
get, found, status = cu.cuGetProcAddress_v2, C.c_void_p(), C.c_int()
def ask(name, version, flags=0):
    assert get(name, C.byref(found), version, C.c_uint64(flags), C.byref(status)) == 0 and found.value
    return found.value
context, memory, stream, event = C.c_void_p(), C.c_uint64(), C.c_void_p(), C.c_void_p()
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(C.byref(context), 0) == 0 and cu.cuCtxSetCurrent(context) == 0
assert cu.cuMemAlloc_v2(C.byref(memory), C.c_size_t(64)) == 0
assert cu.cuMemcpyHtoD_v2(memory, b"x" * 64, C.c_size_t(64)) == 0
out = C.c_int()
assert C.CFUNCTYPE(C.c_int, C.c_void_p)(ask(b"cuFutureOperation", 14000))(C.byref(out)) == 0 and out.value == 14000
assert cu.cuFutureOperationAlias(C.byref(out)) == 0
# A version of a known name that is newer than the table, and the one that the table has.
create = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_uint, C.c_int)(ask(b"cuEventCreate", 14000))
assert create(C.byref(event), 0, 0) == 0
# Two names with one address.
destroy = C.CFUNCTYPE(C.c_int, C.c_void_p)
assert destroy(ask(b"cuEventDestroy", 2000))(event) == 0
assert C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_uint)(ask(b"cuEventCreate", 2000))(C.byref(event), 0) == 0
assert destroy(ask(b"cuEventDestroy", 4000))(event) == 0
"""


def run(name, folder, *command, **settings):
    place = f"{tmp}/{name}"
    os.mkdir(place)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/{folder}", LD_PRELOAD=f"{build}/lib/libtfhook.so",
               SIM_TRUTH=f"{place}/truth", TFHOOK_DIR=place, **settings)
    done = subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and not done.stderr, name, "exit", done)
    return records_of(place), truth_of(place), place


def unhooked(place):
    runs = [p.path for p in os.scandir(place) if p.name.startswith("tfhook-")]
    told = subprocess.run([f"{build}/bin/tfhook", "report", "--json", *runs], capture_output=True, text=True)
    return json.loads(told.stdout)["quality"]["unhooked"]


for name, folder, command, settings in (
        ("old", "sim/old", [surface, "dlsym"], {}), ("old-replay", "sim/old", [surface, "replay-dlsym", LIST], {}),
        ("future", "sim/future", [surface, "getproc"], {}),
        ("future-replay", "sim/future", [surface, "replay", LIST, "per-thread"], {}),
        ("self", "sim", [surface, "getproc"], {"SIM_SELF_LOOKUP": "1"})):
    if os.path.exists(f"{build}/{folder}/libcuda.so.1"):
        records, truth, place = run(name, folder, *command, **settings)
        compare(name, records, truth, place)
        check(unhooked(place) == 0, name, "unhooked", unhooked(place))
if os.path.exists(f"{build}/sim/future/libcuda.so.1"):
    records, truth, place = run("newer", "sim/future", sys.executable, "-c", NEWER)
    names = [r["fn"] for r in calls_of(records)]
    check(names.count("cuEventCreate") == 1 and sum(n.startswith("cuEventDestroy") for n in names) == 2, "events", names)
    check(unhooked(place) >= 3, "unknown names are counted", unhooked(place))
sys.exit(failed())
