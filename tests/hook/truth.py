#!/usr/bin/env python3
"""A trace holds what the simulated driver saw, call by call, byte by byte, whichever door the program came through:
names, results, bytes, streams, kernel names, launch shapes, captured calls, graph totals; times enclose the real ones.
No answered name is left unhooked. Among the ways are the lookups of the runtime library, in its order."""
import os
import struct
import subprocess
import sys

from compare import CAPTURED, GRAPH, NAME, PTDS, STREAM, build, calls_of, check, compare, failed, run, src, tmp

def surface(name, records):
    """What is known of tests/hook/surface.c beyond the truth log."""
    per_thread = name.endswith("per-thread")
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
for how in ("replay", "replay-dlsym"):
    for more in ([], ["per-thread"]):
        name = "-".join([how, *more])
        records, truth, place = run(name, f"{build}/tests/hook/surface", how, f"{src}/tests/hook/cudart13.txt", *more)
        compare(name, records, truth, place)
        surface(name, records)
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
sys.exit(failed())
