#!/usr/bin/env python3
"""Instructions of a recorded call, counted by valgrind: a figure that a busy or another machine does not change (another compiler does). First
in the recorder alone, where the loop around the call is subtracted and reading the clock twice is six of them; then whole hooks, with
what the calls at the ends of pauses do, in front of a driver that does nothing.

usage: instructions.py
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

build = os.environ["TFH_BUILD"]
CASES = {"recorded": "recorded call", "named": "recorded, function id", "texts": "recorded, text id", "aggregated": "aggregated stage call",
         "off": "switched off"}
CALLS = 301 * (4096 + 64)  # rounds and bursts of hook_cost.c
HOOKS = {"cuLaunchKernel": "launch, whole hook", "cuLaunchKernelEx": "launch, extended", "cuMemcpyHtoDAsync_v2": "copy, whole hook"}
HOOK_CALLS = 2 * 400 * 256  # of each of hook_families.c; its first three families are these

if not shutil.which("valgrind"):
    sys.exit("valgrind is not installed: left out")


def count(functions, command, **env):
    """Instructions in and below each of the functions."""
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={tmp}/out", *(f"--toggle-collect={f}" for f in functions),
                        *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env={**os.environ, "TFHOOK_DIR": f"{tmp}/run", **env})
        text = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", f"{tmp}/out"], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout
    found = {}
    for n, name in re.findall(r"^\s*([\d,]+) .*:(\w+)(?: \[|$)", text, re.M):
        found[name] = max(found.get(name, 0), int(n.replace(",", "")))
    return {f: found[f] for f in functions}


counts = count([*CASES, "nothing"], [f"{build}/bench/hook_cost"])
print(f"{'':24} instructions a call")
for function, label in CASES.items():
    print(f"{label:24} {(counts[function] - counts['nothing']) / CALLS:12.1f}")
noop = f"{build}/bench/libnoopcuda.so"
counts = count(["record_" + f for f in HOOKS], [f"{build}/bench/hook_families", "--column", noop, str(len(HOOKS))],
               TFHOOK_CUDA_LIB=noop, LD_PRELOAD=f"{build}/lib/libtfhook.so")
for function, label in HOOKS.items():
    print(f"{label:24} {counts['record_' + function] / HOOK_CALLS:12.1f}")
