#!/usr/bin/env python3
"""A profiler inside the job, under each TFHOOK_CUPTI_SHARE: what it gets, what tfhook gets, and that what neither can know is
no idle time. Graphs: above a rate of nodes device times are taken in windows, and that is said."""
import json
import os
import subprocess
import sys
import time

from devicetimes import build, check, failed, read, read_truth, record, start, tmp

PROFILER = f"{build}/tests/sim/cupti"
OPS = ("kernel", "copy", "peer", "memset")


def profiled(name, *args, **env):
    """The records and results that the profiler prints; ours and the log's, when we are there."""
    run, truth = f"{tmp}/{name}", f"{tmp}/{name}.truth"
    full = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "SIM_TRUTH": truth, "SIM_DEVICES": "2", **env}
    if "TFHOOK_CUPTI_SHARE" in env:
        full.update(LD_PRELOAD=f"{build}/lib/libtfhook.so", TFHOOK_RUN=run, TFHOOK_CUPTI="on")
    done = subprocess.run([PROFILER, "-k", "10,1,2,22", *args], env=full, stdout=subprocess.PIPE, text=True, timeout=60)
    check(done.returncode == 0, name, "ended with", done.returncode)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    results = {r["result"]: r["code"] for r in lines if "result" in r}
    ours = read(run) if "TFHOOK_CUPTI_SHARE" in env else None
    return [r for r in lines if r.get("record") in OPS], results, ours, read_truth(truth)


def in_spans(info, t0, t1):
    return any(a <= t0 and t1 <= b for a, b, _ in info["spans"])


def policies():
    alone = len(profiled("alone")[0])
    for faults in ({}, {"SIM_CUPTI_LAST_WINS": "0"}, {"SIM_CUPTI_WORKER": "1"}, {"SIM_CUPTI_VERSION": "28"}):
        label = "".join(faults)
        records, _, (ops, info), (truth, calls) = profiled("tee" + label, TFHOOK_CUPTI_SHARE="tee", **faults)
        check(len(records) == alone and len(ops) == len(truth), "tee", faults, len(records), len(ops), len(truth))
        check(len({(r["n"], r["node"], r["start"]) for r in records}) == alone, "tee", faults, "a record twice")
    records, results, (ops, info), (truth, calls) = profiled("off", TFHOOK_CUPTI_SHARE="off")
    check(len(records) == alone and not ops, "off", len(records), len(ops))
    # Not beside us: its kinds are refused, unless it came first.
    records, results, (ops, info), (truth, calls) = profiled("own", TFHOOK_CUPTI_SHARE="own")
    check(len(ops) == len(truth), "own", len(ops), len(truth))


def finalized():
    """The job takes CUPTI down: what runs until it is up again is in no span."""
    for share in ("tee", "off"):
        records, _, (ops, info), (truth, calls) = profiled(f"finalize-{share}", "-m", "finalize", TFHOOK_CUPTI_SHARE=share)
        check(len(records) == 161, "finalize", share, len(records))
        have = {op["correlation"] for op in ops}
        shift = None
        for op in ops:
            if op["call"] >= 0:
                shift = op["issue0"] - calls[op["correlation"]]["t0"]
        if shift is not None:
            hidden = [t for t in truth if t["n"] not in have and in_spans(info, t["start"] + shift, t["end"] + shift)]
            check(not hidden, "finalize", share, "in a span, and missing", hidden, info)


def clocked():
    """The job gives CUPTI a clock of its own, 1,000 s ahead and 1 % fast."""
    records, _, (ops, info), (truth, calls) = profiled("clock", "-c", TFHOOK_CUPTI_SHARE="tee", SIM_CUPTI_ZERO_TIMES="0")
    check(len(records) == len(ops) == len(truth), "clock", len(records), len(ops), len(truth))
    known = [op for op in ops if op["call"] >= 0 and in_spans(info, op["t0"], op["t1"])]
    for op in known:
        check(op["issue0"] - 1000000 < op["t0"] < op["issue0"] + 10e9, "clock", op)


def told(run):
    return subprocess.run([f"{build}/bin/tfhook", "info", run], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout


def graphs():
    program = f"{build}/tests/hook/graphloop"
    ops, info, truth, calls = record("few", program, "1.5")
    check({op["kind"] for op in ops} == {1, 2} and all(nodes for _, _, nodes in info["spans"]), "few nodes", info)
    ops, info, truth, calls = record("whole", program, "1.5", TFHOOK_GRAPH_NODES="0")
    check({op["kind"] for op in ops} == {5} and not any(nodes for _, _, nodes in info["spans"]), "whole launches", info)
    check(ops and all(op["call"] >= 0 for op in ops), "calls of whole launches")
    run, _, job = start("many", program, "60", TFHOOK_GRAPH_NODES="10")
    windows = False
    while not windows and job.poll() is None:
        time.sleep(0.7)
        windows = "taken in windows" in told(run)
    time.sleep(8)  # the first window without steps ends 5 s after the start, and ops under way have 3 s
    job.terminate()
    check(job.wait() == 0, "many ended with", job.returncode)
    ops, info = read(run)
    check(ops and 5 not in {op["kind"] for op in ops}, "many nodes", {op["kind"] for op in ops})
    check(info["spans"][-1][1] - info["spans"][0][0] < 7e9, "many nodes: still recorded outside a window", info)
    check("of its own work" in told(run), "info", told(run))


for what in (policies, finalized, clocked, graphs):
    what()
sys.exit(failed())
