#!/usr/bin/env python3
"""Device times from CUPTI are those of the simulated driver's log: every kernel, copy, memset and graph node is there
with its times, bytes and name, and with the call that issued it; whatever release CUPTI is of, and whichever of its
known faults it has; then what is missing is said. Without CUPTI the run goes on, and the reason is in the file."""
import json
import os
import signal
import subprocess
import sys
import time

from devicetimes import GRAPHS, LOOP, build, check, compare, failed, read, read_truth, record, shift_of, start, tmp


def whole():
    for lib in ("libcupti.so.12", "libcupti.so.13"):
        compare(lib, *record(lib, *LOOP, lib=lib))
    record("slashes", *LOOP, lib="/libcupti.so.13")  # as of a search path that ends with a slash
    told = subprocess.run([f"{build}/bin/tfhook", "info", f"{tmp}/slashes"], stdout=subprocess.PIPE, text=True).stdout
    check(f"library: {build}/sim/libcupti.so.13\n" in told, "the library's path:", told)
    compare("surface", *record("surface", f"{build}/tests/hook/surface", "getproc"))
    compare("graphs", *record("graphs", *GRAPHS))
    for program in ("threads", "driver"):
        compare(program, *record(program, f"{build}/tests/sim/{program}"))
    for version in (13, 14, 17, 19, 26):
        name = f"version-{version}"
        compare(name, *record(name, *LOOP, lib="libcupti.so.12", SIM_CUPTI_VERSION=str(version)))


def faults():
    for name, env in (("shuffle", {"SIM_CUPTI_SHUFFLE": "50"}), ("worker", {"SIM_CUPTI_WORKER": "1"}),
                      ("empty", {"SIM_CUPTI_EMPTY_BUFFERS": "1"}), ("small", {"SIM_CUPTI_BUFFER_BYTES": "4096"}),
                      ("offset", {"SIM_CUPTI_CLOCK_OFFSET_US": "5000000", "SIM_CUPTI_CLOCK_DRIFT_PPM": "300"})):
        compare(name, *record(name, *LOOP, **env))


def refused():
    for code, words in ((35, "administrators"), (39, "another profiler"), (999, "999")):
        name = f"refused-{code}"
        ops, info, truth, calls = record(name, *LOOP, SIM_FAIL=f"cuptiActivityEnable:*:{code}")
        check(not ops and words in info["why"], name, info)
    ops, info, truth, calls = record("absent", *LOOP, lib=None)
    check(not ops and "TFHOOK_CUPTI_LIB" in info["why"], "absent", info)
    # What the loader would wait on for ever, or die of.
    os.mkfifo(f"{tmp}/pipe.so")
    with open(f"{build}/sim/libcupti.so.13", "rb") as whole, open(f"{tmp}/cut.so", "wb") as cut:
        cut.write(whole.read(3000))
    for name in ("pipe", "cut"):
        ops, info, truth, calls = record(name, *LOOP, TFHOOK_CUPTI_LIB=f"{tmp}/{name}.so")
        check(not ops and "TFHOOK_CUPTI_LIB" in info["why"], name, info)
    ops, info, truth, calls = record("off", *LOOP, TFHOOK_CUPTI="off")
    check(not ops and "TFHOOK_CUPTI=off" in info["why"], "off", info)
    # What the devices hold is known all the same.
    report = json.loads(subprocess.run([f"{build}/bin/tfhook", "report", "--json", f"{tmp}/off"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL).stdout)
    check(report["memory"]["capacity_bytes"] == 16 << 30, "off: capacity", report["memory"])


def drops():
    ops, info, truth, calls = record("drops", *LOOP, SIM_CUPTI_DROP_AFTER="100")
    check(info["dropped"] > 0 and len(ops) + info["dropped"] >= len(truth), "drops", info, len(ops), len(truth))
    compare("drops", ops, info, truth, calls, lost=len(truth) - len(ops))


def killed():
    run, truth, process = start("killed", f"{build}/tests/jobs/client_loop", "--steps", "100000", "--launches", "3",
                                "--spin", "2000", "--sync", "ctx")
    # Until device times of more than a second are in the file, however long that takes here.
    for _ in range(200):
        time.sleep(0.2)
        if any(b - a > 1e9 for a, b, _ in read(run, begun=False)[1]["spans"]):
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    ops, info = read(run)
    known, calls = read_truth(truth)
    check(len(info["spans"]) == 1 and len(ops) > 100, "killed", info)
    # The host's records are in another file than the device's: on one clock they meet. Only of the last op the call
    # may have been under way.
    lone = [op for op in ops if op["call"] < 0 and info["spans"] and op["t1"] <= info["spans"][-1][1]]
    check(not lone, "killed:", len(lone), "of", len(ops), "ops have no call", lone[:2], info)
    if lone or not info["spans"]:
        return
    # The log's last lines may not have been written.
    shift, (a, b, _) = shift_of([op for op in ops if op["correlation"] in calls], calls), info["spans"][0]
    have = {op["correlation"] for op in ops}
    hidden = [t for t in known if a <= t["start"] + shift and t["end"] + shift <= b and t["n"] not in have]
    check(not hidden, "killed: in the span, and missing", hidden[:3], info)
    check(b - a > 1e9, "killed: the span is short", info)


for what in (whole, faults, refused, drops, killed):
    what()
sys.exit(failed())
