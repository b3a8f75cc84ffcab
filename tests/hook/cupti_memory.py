#!/usr/bin/env python3
"""Where records of graph nodes make device memory grow beyond TFHOOK_GRAPH_MEMORY, device times are taken in windows from then
on, and the report says so. Memory that the job itself takes is not CUPTI's growth. The driver is asked once a second at most, never
while something captures."""
import json
import subprocess
import sys
import time

from devicetimes import build, check, failed, read, start

LOOP = f"{build}/tests/hook/graphloop"


def asked(truth):
    """When the driver was asked, and the seconds from the first call to the last."""
    with open(truth) as f:
        calls = [json.loads(line) for line in f if line.endswith("}\n")]
    calls = [c for c in calls if c["ev"] == "call"]
    times = [c["t0"] for c in calls]
    return [c["t0"] for c in calls if c["fn"].startswith("cuMemGetInfo")], (max(times) - min(times)) / 1e9


def graphs(run):
    out = subprocess.run([f"{build}/bin/tfhook", "report", "--json", run], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(out.stdout)["quality"].get("graphs") if out.returncode == 0 else "no report"


def growing():
    run, _, job = start("growing", LOOP, "60", SIM_CUPTI_NODE_BYTES="50000", TFHOOK_GRAPH_MEMORY="16M")
    said = None
    while not said and job.poll() is None:
        time.sleep(0.7)
        said = graphs(run) != "no report" and graphs(run)
    job.terminate()
    check(job.wait() == 0, "growing ended with", job.returncode)
    ops, info = read(run)
    check(all(nodes for _, _, nodes in info["spans"]), "growing: spans", info)
    check(ops and 5 not in {op["kind"] for op in ops}, "growing: ops", {op["kind"] for op in ops})
    check("of device memory went" in (graphs(run) or ""), "growing: quality", graphs(run))


def kept(name, run, truth, job):
    """Nodes are recorded to the end. Returns when the driver was asked."""
    check(job.wait() == 0, name, "ended with", job.returncode)
    _, info = read(run)
    times, seconds = asked(truth)
    check(all(nodes for _, _, nodes in info["spans"]) and graphs(run) is None, name, info, graphs(run))
    # A thread that decided to ask may get no processor before it does: then the next time comes sooner, but none more.
    check(len(times) - 1 <= seconds / 0.9, name, "asked too often", times, seconds)
    return times


own = start("own", LOOP, "6", "4096", "take", TFHOOK_GRAPH_MEMORY="16M")
within = start("within", LOOP, "6", SIM_CUPTI_NODE_BYTES="50000", TFHOOK_GRAPH_MEMORY="100G")
capturing = start("capturing", LOOP, "6", "4096", "capture", SIM_CUPTI_NODE_BYTES="50000", TFHOOK_GRAPH_MEMORY="16M")
growing()
check(kept("own", *own), "own: never asked")
kept("within", *within)
check(not kept("capturing", *capturing), "capturing: the driver was asked")
sys.exit(failed())
