#!/usr/bin/env python3
"""Real GPU traces that others recorded: the figures that other tools gave for them come out of the import within 1 %, and from the
slow run of a before/after pair alone the report says what held it back, how much, and what the fixed run then took."""
import json
import os
import statistics
import subprocess
import sys

BUILD, TRACES = os.environ["TFH_BUILD"], os.environ.get("TFH_TRACES", "")
if not os.path.isdir(TRACES or "/nowhere"):
    print("SKIP: no folder of real traces (TFHOOK_TRACES)")
    sys.exit(77)


def dump(name, *flags):
    return json.loads(subprocess.check_output([BUILD + "/tests/import/dump", *flags, os.path.join(TRACES, name)]))


def near(got, want, share, what):
    print("%-40s %10.3f, other tool %10.3f" % (what, got, want))
    assert abs(got - want) <= share * abs(want), "%s: %g, not within %g of %g" % (what, got, share, want)


# HolisticTraceAnalysis 0.6.1, temporal breakdown: percent idle, computing, neither. Its rule: from the first op's start to the
# last one's end, ops of the last ProfilerStep (by the time of their launch) left out.
for name, idle, compute, other in (("resnet50_workers0", 39.43, 59.35, 1.22), ("resnet50_workers4", 24.32, 73.23, 2.45),
                                   ("ddp8_rank3", 16.20, 61.23, 22.57)):
    p = dump(name + ".pt.trace.json.gz", "-s")["processes"][0]
    span, busy, computing = p["span_ns"], p["busy_ns"], p["compute_ns"]
    near(100 * (span - busy) / span, idle, 0.01, name + " idle %")
    near(100 * computing / span, compute, 0.01, name + " compute %")
    near(100 * (busy - computing) / span, other, 0.01, name + " non-compute %")
    assert p["unissued"] == 0 and p["dependencies"], p

# Per ProfilerStep, by a short script over the raw file: duration, kernels running, device idle, idle while in the DataLoader (ms).
PAIR = {"resnet50_workers0": [(176.1, 87.4, 86.7, 68.7), (174.0, 97.4, 74.5, 57.7), (176.9, 95.8, 79.1, 61.2), (181.3, 105.2, 74.0, 56.5),
                              (176.5, 92.9, 81.6, 62.6), (164.3, 96.9, 65.5, 48.8)],
        "resnet50_workers4": [(181.6, 99.1, 78.7, 4.3), (123.9, 97.4, 23.5, 0.0), (126.8, 98.8, 25.0, 0.0), (126.3, 101.7, 21.5, 0.0),
                              (163.5, 98.8, 61.0, 1.4), (116.1, 91.5, 21.6, 1.4)]}


def covered(intervals, t0, t1):
    total, until = 0, t0
    for a, b in sorted(intervals):
        a, b = max(a, until), min(b, t1)
        if b > a:
            total += b - a
            until = b
    return total


for name, steps in PAIR.items():
    p = dump(name + ".pt.trace.json.gz")["processes"][0]
    marks = [e for e in p["events"] if e["kind"] == 5]
    loads = [(e["t0"], e["t1"]) for e in p["events"] if e["family"] == 32]
    kernels = [(o["t0"], o["t1"]) for o in p["ops"] if o["kind"] == 1]
    ops = [(o["t0"], o["t1"]) for o in p["ops"]]
    assert len(marks) == len(steps) == len(loads)
    for i, (mark, (dur, running, idle, waiting)) in enumerate(zip(marks, steps)):
        t0, t1 = mark["t0"], mark["t1"]
        near((t1 - t0) / 1e6, dur, 0.01, "%s step %d" % (name, i))
        near(covered(kernels, t0, t1) / 1e6, running, 0.01, "  kernels")
        near((t1 - t0 - covered(ops, t0, t1)) / 1e6, idle, 0.01, "  idle")
        inside = [(max(a, t0), min(b, t1)) for a, b in loads if b > t0 and a < t1]
        wait = sum(b - a - covered(ops, a, b) for a, b in inside) / 1e6
        assert abs(wait - waiting) <= max(0.01 * waiting, 0.06), (name, i, wait, waiting)

# The longest step marker of a device, which is XProf's step time for this file.
p = dump("tf_gpu_worker.xplane.pb")["processes"][0]
marks = [e for e in p["events"] if e["kind"] == 5]
assert len(marks) == 1 and p["unissued"] == 0
near((marks[0]["t1"] - marks[0]["t0"]) / 1e6, 21.31, 0.01, "tf_gpu_worker step")

# The acid test: what the slow run alone says about the fixed one.
out = subprocess.check_output([BUILD + "/bin/tfhook", "report", "--json", TRACES + "/resnet50_workers0.pt.trace.json.gz"])
r = json.loads(out)
assert (r["verdict"]["class"], r["verdict"]["cause"]) == ("input-bound", "input.dataloader"), r["verdict"]
blocking = next(b for b in r["breakdown"] if b["name"] == "input")["s_per_step"] * 1e3
near(blocking, statistics.mean(w for *_, w in PAIR["resnet50_workers0"][1:]), 0.10, "blocked by the loader, ms per step")
fixed = statistics.median(d for d, *_ in PAIR["resnet50_workers4"][1:])
gain = next(w for w in r["whatif"] if w["remove"] == "input")
near(gain["step_s"] * 1e3, fixed, 0.10, "step without it, ms")
print("interval %.1f..%.1f ms" % (gain["low_s"] * 1e3, gain["high_s"] * 1e3))
assert gain["low_s"] * 1e3 <= fixed <= gain["high_s"] * 1e3
r = json.loads(subprocess.check_output([BUILD + "/bin/tfhook", "report", "--json", TRACES + "/resnet50_workers4.pt.trace.json.gz"]))
assert r["verdict"]["class"] != "input-bound", r["verdict"]
