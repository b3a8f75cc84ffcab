#!/usr/bin/env python3
"""Question 8: named in CUDA_INJECTION64_PATH, without a preload, the library disturbs no program; whether the driver then
loads it, and what it then records, is reported."""
import os
import sys

from gpu import HOOK, build, check, compile, failed, need_gpu, records, report, run, src

need_gpu("what the driver does with our library in CUDA_INJECTION64_PATH, with a preload and without (question 8)")
loop = f"{build}/tests/jobs/client_loop"
if not os.path.exists(loop):
    loop = compile("client_loop", f"-I{src}/include", source=f"{src}/tests/jobs/client_loop.c")
command = [loop, "--steps", "5", "--h2d", "100000"]
found = {}
for name, preload, path in (("plain", "", ""), ("injected", "", HOOK), ("both", HOOK, HOOK), ("preload", HOOK, "")):
    done, runs, place = run(name, command, preload, **({"CUDA_INJECTION64_PATH": path} if path else {}))
    first = done if name == "plain" else first
    check(done[0] == 0 and done[2] == first[2], name, "client", done)
    calls = sum(r["kind"] == 1 for r in records(runs)) if runs else 0
    found[name] = dict(recorded=calls, runs=len(runs))
    check(not preload or calls > 10, name, "recorded", calls)
check(found["both"] == found["preload"], "an injection beside the preload changes something", found)
report(question=8, found=found)
sys.exit(failed())
