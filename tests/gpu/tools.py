#!/usr/bin/env python3
"""Question 11: NVIDIA's own tools go on with tfhook preloaded. A client under Nsight Compute, compute-sanitizer and cuda-gdb ends
as without tfhook, and what we recorded can be read; where a tool has CUPTI for itself, the recording says why it has no times."""
import re
import shutil
import subprocess
import sys

import gpu
from gpu import HOOK, build, check, failed, need_gpu, part, records, report, run

need_gpu("that a client under ncu, compute-sanitizer and cuda-gdb is the same with tfhook (question 11)")
LOOP = [f"{build}/tests/jobs/client_loop", "--steps", "10", "--h2d", "100000", "--launches", "5", "--spin", "20"]
TOOLS = {"ncu": ["ncu", "--clock-control", "none", "--launch-count", "3", "--metrics", "gpu__time_duration.sum"],
         "compute-sanitizer": ["compute-sanitizer", "--error-exitcode", "9"],
         "cuda-gdb": ["cuda-gdb", "-batch", "-return-child-result", "-ex", "run", "--args"]}


def why(runs):
    out = [subprocess.run([f"{build}/bin/tfhook", "info", place], capture_output=True, text=True).stdout for place in runs]
    return re.findall(r"no device times[^\n]*|known for[^\n]*", "".join(out))


def under(name, command):
    plain, _, _ = run(name + "-plain", [*command, *LOOP], timeout=90)
    if plain[0]:
        print(f"{name}: does not run here without tfhook: {plain[1][-200:]} {plain[2][-200:]}")
        return
    ours, runs, _ = run(name, [*command, *LOOP], HOOK, timeout=90, TFHOOK_CUPTI="on")
    check(ours[0] == 0, name, "ended with", ours[0], ours[1][-300:], ours[2][-300:])
    calls = sum(r["kind"] == 1 for r in records(runs)) if runs else 0
    check(calls > 50, name, "recorded", calls)
    report(question=11, tool=name, status=ours[0], recorded=calls, told=why(runs), output_lines=[plain[1].count("\n"),
                                                                                                ours[1].count("\n")])


for name, command in TOOLS.items():
    if not gpu.DRIVER and shutil.which(name):
        part(name, under, name, command)
    else:
        print("no", name)
sys.exit(failed() or 77 if gpu.DRIVER else failed())
