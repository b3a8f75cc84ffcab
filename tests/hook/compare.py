"""Runs programs under the preload on the simulated driver and compares the trace with the driver's own log."""
import glob
import json
import os
import re
import struct
import subprocess
import sys

build, src, tmp = (os.environ[k] for k in ("TFH_BUILD", "TFH_SRC", "TFH_TMP"))
if os.environ.get("TFH_SAN"):
    sys.exit(77)
hooked = set(re.findall(r"^CUDA_FN\((\w+)", open(f"{src}/lib/base/cuda_api.def").read(), re.M))
CALL, MARK, NAME, ALLOC, GRAPH = 1, 5, 8, 9, 10
CAPTURED, PTDS, FAILED = 2, 8, 32
STREAM, CONTEXT, FUNCTION = 1, 2, 3
EPSILON = 2000  # ns between the two programs' ideas of the same clock
failures = 0


def check(condition, what, *more):
    global failures
    if not condition:
        failures += 1
        if failures < 20:
            print("FAILED:", what, *more)


def run(name, *command, **settings):
    """The records and the truth of one run, both as lists of dictionaries."""
    place = os.path.join(tmp, name)
    os.mkdir(place)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", LD_PRELOAD=f"{build}/lib/libtfhook.so",
               SIM_TRUTH=f"{place}/truth", TFHOOK_DIR=place, **settings)
    done = subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, name, "exit", done.returncode, done.stdout, done.stderr)
    # drjit says so where no LLVM is installed; it needs none for the GPU.
    said = [line for line in done.stderr.splitlines() if line and "jitc_llvm_init()" not in line]
    check(not said, name, "said", done.stderr)
    return records_of(place), truth_of(place), place


def records_of(place):
    files = sorted(glob.glob(f"{place}/tfhook-*/*.tft"))
    shown = subprocess.run([f"{build}/tests/hook/show", *files], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in shown.stdout.splitlines()]


def truth_of(place):
    return [t for t in map(json.loads, open(f"{place}/truth")) if t["ev"] == "call"]


def calls_of(records):
    return [r for r in records if r["kind"] in (CALL, ALLOC)]


def compare(name, records, truth, place):
    by_thread = {}
    for call in truth:
        if call["fn"] in hooked:
            by_thread.setdefault(call["tid"], []).append(call)
    ours = {}
    begin = min(call["t0"] for call in truth)  # the log is opened by cuInit
    for record in calls_of(records):
        # Not in the log: what the simulator does not implement, and calls after the driver's own exit.
        if record["fn"] in hooked and record["t1"] > begin and record["result"] not in (801, 4):
            ours.setdefault(record["tid"], []).append(record)
    check(set(ours) == set(by_thread), name, "threads", set(ours), set(by_thread))
    kernels = {}
    for record in records:
        if record["kind"] == NAME and record["number"] == FUNCTION:
            kernels[record["stream"]] = record.get("ext", "")
    for tid, expected in by_thread.items():
        got = sorted(ours.get(tid, []), key=lambda r: r["t0"])
        expected.sort(key=lambda c: c["t0"])
        check([r["fn"] for r in got] == [c["fn"] for c in expected], name, "sequence of thread", tid,
              [(a["fn"], b["fn"]) for a, b in zip(got, expected) if a["fn"] != b["fn"]][:3], len(got), len(expected))
        for r, c in zip(got, expected):
            same(name, r, c, kernels)
    files = glob.glob(f"{place}/tfhook-*/*.tft")
    notes = subprocess.run([f"{build}/tests/hook/show", "--notes", *files], capture_output=True, text=True).stdout
    check("unhooked" not in notes, name, "unhooked names", re.findall(".*unhooked.*", notes))


def same(name, r, c, kernels):
    where = f"{name}: {c['fn']} call {c['n']}"
    check(r["result"] == c["rc"], where, "result", r["result"], c["rc"])
    check(bool(r["flags"] & FAILED) == (c["rc"] != 0), where, "failed flag")
    check(r["t0"] <= c["t0"] + EPSILON and r["t1"] >= c["t1"] - EPSILON, where, "times",
          r["t0"] - c["t0"], r["t1"] - c["t1"])
    if c["rc"] != 0:
        return
    check(bool(r["flags"] & CAPTURED) == bool(c.get("captured")) or "Capture" in c["fn"], where, "captured")
    if "bytes" in c and ("cpy" in c["fn"] or "emset" in c["fn"] or "Alloc" in c["fn"]):
        check(r["w"][0] == c["bytes"], where, "bytes", r["w"][0], c["bytes"])
    if c.get("kernel") and c["fn"].startswith("cuLaunchKernel"):
        check(kernels.get(r["w"][0] & 0xffffffff) == c["kernel"], where, "kernel",
              kernels.get(r["w"][0] & 0xffffffff), c["kernel"])


def failed():
    if failures:
        print(failures, "failures")
    return failures != 0
