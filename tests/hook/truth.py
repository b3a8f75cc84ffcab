#!/usr/bin/env python3
"""A trace holds what the simulated driver saw, call by call, byte by byte, whichever door the program came through:
names, results, bytes, streams, kernel names, launch shapes, captured calls, graph totals; times enclose the real ones.
No answered name is left unhooked."""
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
    check(done.stderr == "", name, "said", done.stderr)
    files = sorted(glob.glob(f"{place}/tfhook-*/*.tft"))
    shown = subprocess.run([f"{build}/tests/hook/show", *files], capture_output=True, text=True, check=True)
    records = [json.loads(line) for line in shown.stdout.splitlines()]
    truth = [json.loads(line) for line in open(f"{place}/truth")]
    return records, [t for t in truth if t["ev"] == "call"], place


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
    for file in glob.glob(f"{place}/tfhook-*/run.json"):
        check("unhooked" not in json.load(open(file)) or not json.load(open(file))["unhooked"], name, "unhooked names")


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


def surface(name, records):
    """What is known of tests/hook/surface.c beyond the truth log."""
    per_thread = name == "per-thread"
    launches = [r for r in calls_of(records) if r["fn"].startswith("cuLaunchKernel")]
    first = launches[0]["w"]
    check((first[1] & 0xffffffff, first[1] >> 32 & 0xffff, first[1] >> 48) == (1, 2, 3), name, "grid")
    check((first[2] & 0x7ff, first[2] >> 11 & 0x7ff, first[2] >> 22 & 0x7f, first[2] >> 32) == (32, 4, 1, 128), name,
          "block")
    check(launches[1]["w"][1] & 0xffffffff == 70000, name, "wide grid")
    check(launches[0]["stream"] and not launches[1]["stream"], name, "streams")
    check(all(bool(r["flags"] & PTDS) == per_thread for r in launches if not r["stream"]), name, "default streams")
    check(len({r["ctx"] for r in launches}) == 1 and launches[0]["ctx"], name, "context")
    rows = [r for r in calls_of(records) if r["fn"].startswith("cuMemcpy2DAsync")]
    form, src, dst, _, _, _, depth, low, high, height, src_pitch, dst_pitch = struct.unpack(
        "<BBBBIIIIIIII", bytes.fromhex(rows[0]["ext"]))
    check((form, src, dst, depth, low, high, height, src_pitch, dst_pitch) == (1, 1, 2, 1, 100, 0, 7, 256, 512), name,
          "2D details")
    captured = [r for r in calls_of(records) if r["flags"] & CAPTURED]
    check([r["fn"].split("_")[0] for r in captured] == ["cuLaunchKernel", "cuMemcpyHtoDAsync", "cuMemsetD8Async"], name,
          "captured calls", [r["fn"] for r in captured])
    graphs = [r for r in records if r["kind"] == GRAPH]
    check(len(graphs) == 1 and graphs[0]["w"] == [4321, 0, 0], name, "graph bytes", [g["w"] for g in graphs])
    if graphs:
        counts = struct.unpack("<9I", bytes.fromhex(graphs[0]["ext"]))
        check(counts == (1, 1, 1, 0, 0, 0, 0, 0, 0), name, "graph nodes", counts)
    runs = [r for r in calls_of(records) if r["fn"].startswith("cuGraphLaunch")]
    check(len(runs) == 3 and all(r["w"][1:] == [1, 1] for r in runs), name, "graph launches", [r["w"] for r in runs])
    streams = {r["w"][0]: r["w"][1] for r in records if r["kind"] == NAME and r["number"] == STREAM}
    check(len(streams) == 1, name, "streams named", streams)


def linked():
    program = os.path.join(tmp, "surface-linked")
    done = subprocess.run([os.environ.get("CC", "cc"), "-o", program, f"{src}/tests/hook/linked/surface.c", "-pthread",
                           f"-L{build}/sim", "-l:libcuda.so.1"])
    return program if done.returncode == 0 else None


for how in ("dlsym", "getproc", "per-thread"):
    records, truth, place = run(how, f"{build}/tests/hook/surface", how)
    compare(how, records, truth, place)
    surface(how, records)
program = linked()
if program:
    records, truth, place = run("linked", program)
    compare("linked", records, truth, place)
    surface("linked", records)
for name in ("driver", "graphs"):
    if os.path.exists(f"{build}/tests/sim/{name}"):
        compare(name, *run(name, f"{build}/tests/sim/{name}"))
loop = f"{build}/tests/jobs/client_loop"
if os.path.exists(loop):
    compare("loop", *run("loop", loop, "--steps", "20", "--h2d", "500000", "--d2h", "1000", "--launches", "30",
                         "--spin", "20", "--stream", "own", "--sync", "stream"))
if failures:
    print(failures, "failures")
sys.exit(failures != 0)
