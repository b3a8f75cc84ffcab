#!/usr/bin/env python3
"""A recording that gave up records for TFHOOK_MAX_SIZE or TFHOOK_RUN_SIZE tells of that stretch what is left: its length, steps, calls. It is a
hole: no step reaches into it, and what is kept and what was given up add up to the job."""
import json
import os
import re
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
    subprocess.run([TFHOOK, "run", "-q", "-o", out, "--", JOB, "--steps", str(STEPS), "--launches", str(LAUNCHES), "--spin", "0",
                    "--h2d", "4096", "--mark", str(marks)], env=env, check=True, stdout=subprocess.DEVNULL)
    report = json.loads(subprocess.check_output([TFHOOK, "report", "--json", out]))
    lines = subprocess.check_output([TFHOOK, "report", "--steps", "--json", out], text=True).splitlines()
    return report, [json.loads(line) for line in lines]


def check(marks, limit):
    report, steps = record(f"run{marks}", marks, limit)
    assert report["steps"]["clock"] == ("mark" if marks else "period"), report["steps"]["clock"]
    assert len(report["given_up"]) == 1, report["given_up"]
    gone = report["given_up"][0]
    assert gone["estimated"] == (not marks)
    length = gone["end_s"] - gone["start_s"]
    total = report["steps"]["total"] + gone["steps"]
    print(f"{report['steps']['total']} steps kept, {gone['steps']} given up in {length:.2f} s, of {STEPS}")
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
    told = re.findall(r"^given up +([\d,]+) steps in (\S+ \w+) of rank 0$", subprocess.check_output([TFHOOK, "info", path], text=True), re.M)
    assert len(told) == 1 and int(told[0][0].replace(",", "")) == gone["steps"], (told, gone)
    moments = [report["startup"][k] for k in ("driver_s", "context_s", "module_s", "step_s")]
    assert all(m is None or m >= 0 for m in moments), moments


check(1, {"TFHOOK_MAX_SIZE": "1M"})
check(0, a_run("1M"))
