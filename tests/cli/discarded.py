#!/usr/bin/env python3
"""For an interval whose records were deleted for TFHOOK_MAX_SIZE or TFHOOK_RUN_SIZE, a report has what is left: its length, steps, calls. It is
a gap: no step reaches into it, and what is kept and what was deleted add up to the job. Copies and waits do so exactly: what the sketches of
both hold (read here by FORMAT.md 2.2) is what a recording of the same job without deleted records has."""
import glob
import json
import os
import re
import struct
import subprocess
import sys

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TFHOOK, JOB = os.path.join(BUILD, "bin/tfhook"), os.path.join(BUILD, "tests/jobs/client_loop")
STEPS, LAUNCHES = 3000, 300
if os.environ.get("TFH_SAN") in ("address", "thread"):
    sys.exit(77)  # the recorder with that sanitizer cannot be preloaded into ordinary programs


def a_run(size):
    """The setting for all of a run, where journals, which count, lie elsewhere: outside containers and with room in /dev/shm."""
    fs = os.statvfs("/dev/shm")
    inside = "container" in os.environ or os.path.exists("/.dockerenv") or fs.f_bavail * fs.f_frsize < 4 << 30
    return {"TFHOOK_MAX_SIZE" if inside else "TFHOOK_RUN_SIZE": size}


def record(name, marks, limit):
    out = os.path.join(TMP, name)
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"), TFHOOK_CUPTI="off", **limit,
               SIM_LAUNCH_COST="4us", SIM_KERNEL_DEFAULT="100ns")
    done = subprocess.run([TFHOOK, "run", "-q", "-o", out, "--", JOB, "--steps", str(STEPS), "--launches", str(LAUNCHES), "--spin", "0",
                           "--h2d", "4096", "--mark", str(marks)], env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert "paused" not in done.stderr, done.stderr  # older segments make room instead
    report = json.loads(subprocess.check_output([TFHOOK, "report", "--json", out]))
    lines = subprocess.check_output([TFHOOK, "report", "--steps", "--json", out], text=True).splitlines()
    return report, [json.loads(line) for line in lines]


def numbers(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def anchors(sketch):
    n = numbers(sketch)
    for _ in range(3):
        next(n)
    for width in (3, 4, 7, 6):
        for _ in range(next(n) * width):
            next(n)
    return [tuple(next(n) for _ in range(6)) for _ in range(next(n))]


def sketched(folder, kinds):
    """Number and bytes of the copies in each direction, and of the waits (7), that the chunks of these kinds have."""
    sums = {}
    for path in glob.glob(os.path.join(folder, "*.tft")):
        with open(path, "rb") as f:
            data = f.read()
        at = 0
        while at + 96 <= len(data) and data[at + 8:at + 12] == b"TFTC":
            length, (kind,), fixed = struct.unpack_from("<I", data, at + 4)[0] + 8, struct.unpack_from("<4s", data, at + 20), struct.unpack_from("<I", data, at + 28)[0]
            packed, runs, size = struct.unpack_from("<Q", data, at + 32)[0], *struct.unpack_from("<II", data, at + 84)
            if kind.decode() in kinds and size:
                begin = at + fixed + 32 * runs
                for what, count, _, moved, _, _ in anchors(data[begin:begin + size]):
                    sums[what] = tuple(a + b for a, b in zip(sums.get(what, (0, 0)), (count, moved)))
            at += length + packed
    return sums


def check_exact(limited, report, whole):
    """Of a recording that gave records up, against one of the same job that did not."""
    full, kept = sketched(whole, ("EVNT",)), sketched(limited, ("EVNT",))
    gone, directions = report["discarded"][0], {"h2d": 1, "d2h": 2, "d2d": 3, "h2h": 4, "p2p": 5, None: 6}
    told = {directions[c["direction"]]: (c["count"], c["bytes"]) for c in gone["copies"]}
    told[7] = gone["waits"]["count"], 0
    print("copies and waits: whole", full, "kept", kept, "deleted", told)
    assert told == sketched(limited, ("DGST",)), told
    assert full[1] == (STEPS, STEPS * 4096) and full[7][0] >= STEPS, full
    assert told[1][0] > STEPS // 10 and told[7][0] > STEPS // 10, told
    assert 0 < gone["copies"][0]["total_s"] < gone["end_s"] - gone["start_s"]
    assert 0 < gone["waits"]["total_s"] < gone["end_s"] - gone["start_s"]
    both = {k: tuple(a + b for a, b in zip(kept.get(k, (0, 0)), told.get(k, (0, 0)))) for k in full}
    lost = report["quality"]["dropped"]
    if not lost:
        assert both == full, (both, full)
    assert all(full[k][0] - lost <= both[k][0] <= full[k][0] for k in full), (both, full, lost)


def check(marks, limit):
    report, steps = record(f"run{marks}", marks, limit)
    assert report["steps"]["clock"] == ("mark" if marks else "period"), report["steps"]["clock"]
    assert len(report["discarded"]) == 1, report["discarded"]
    gone = report["discarded"][0]
    assert gone["estimated"] == (not marks)
    length = gone["end_s"] - gone["start_s"]
    total = report["steps"]["total"] + gone["steps"]
    print(f"{report['steps']['total']} steps kept, {gone['steps']} deleted in {length:.2f} s, of {STEPS}")
    # The chunks at its edges share a step each with those that are kept; a crowded machine loses records.
    lost = report["quality"]["dropped"]
    assert STEPS - lost / LAUNCHES * 1.1 - 0.02 * STEPS <= total <= 1.02 * STEPS, (total, lost)
    assert abs(gone["mean_s"] * gone["steps"] - length) < 0.05 * length, (gone["mean_s"], length)
    assert gone["median_s"] > 0
    calls = {c["fn"]: c["count"] for c in gone["calls"]}
    assert abs(calls["cuLaunchKernel"] - gone["launches"]) <= 1
    assert gone["events"] + report["quality"]["events"] + lost >= STEPS * LAUNCHES
    for s in steps:
        end = s["start_s"] + s["dur_s"]
        assert end <= gone["start_s"] + 1e-6 or s["start_s"] >= gone["start_s"], s
    judged = sum(s["total_s"] for s in report["segments"])
    assert judged < report["run"]["wall_s"] - 0.9 * length, (judged, length)
    assert any("were deleted" in text for text in report["remarks"]), report["remarks"]
    # Segments are many, and of one clock: nothing was there before the start.
    # So does a digest, in one row.
    path = os.path.join(TMP, "run%d.digest.tft" % marks)
    subprocess.run([TFHOOK, "digest", os.path.join(TMP, "run%d" % marks), "-o", path], check=True, stdout=subprocess.DEVNULL)
    told = re.findall(r"^deleted +([\d,]+) steps in (\S+ \w+) of rank 0$", subprocess.check_output([TFHOOK, "info", path], text=True), re.M)
    assert len(told) == 1 and int(told[0][0].replace(",", "")) == gone["steps"], (told, gone)
    moments = [report["startup"][k] for k in ("driver_s", "context_s", "module_s", "step_s")]
    assert all(m is None or m >= 0 for m in moments), moments
    return report


limited = check(1, {"TFHOOK_MAX_SIZE": "1M"})
# A crowded machine loses records: tried again.
for name in ("whole1", "whole2", "whole3", "whole4"):
    whole = record(name, 1, {})[0]
    assert not whole["discarded"], whole["discarded"]
    if not whole["quality"]["dropped"]:
        break
assert not whole["quality"]["dropped"], whole["quality"]
check_exact(os.path.join(TMP, "run1"), limited, os.path.join(TMP, name))
check(0, a_run("1M"))
