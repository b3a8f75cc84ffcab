#!/usr/bin/env python3
"""Instructions of a recorded call, counted by valgrind: a figure that a busy or another machine does not change (another compiler does). The
loop around the call is subtracted; reading the clock twice is six of them.

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

if not shutil.which("valgrind"):
    sys.exit("valgrind is not installed: left out")
with tempfile.TemporaryDirectory() as tmp:
    subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={tmp}/out", *(f"--toggle-collect={f}" for f in [*CASES, "nothing"]),
                    f"{build}/bench/hook_cost"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    text = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", f"{tmp}/out"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
counts = {name: int(n.replace(",", "")) for n, name in re.findall(r"^\s*([\d,]+) .*hook_cost\.c:(\w+)", text, re.M)}
print(f"{'':24} instructions a call")
for function, label in CASES.items():
    print(f"{label:24} {(counts[function] - counts['nothing']) / CALLS:12.1f}")
