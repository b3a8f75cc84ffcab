#!/usr/bin/env python3
"""The programs objects*.c find memory and objects as documented, by the real clock and by the virtual one, and say
nothing; the truth log has the bytes of each of their copies, and no operation of a call that failed."""
import json
import os
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]


def run(program, clock):
    logs = os.path.join(tmp, program + clock)
    os.mkdir(logs)
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), SIM_TRUTH=logs + "/%p", SIM_DEVICES="2", SIM_TIME=clock,
               ASAN_OPTIONS="detect_leaks=0")  # the programs leave what they do not test to the end of the process
    done = subprocess.run([os.path.join(build, "tests/sim", program)], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    check(done.returncode == 0 and not done.stdout, f"{program}, {clock} time: {done.returncode} {done.stdout}")
    return [[json.loads(line) for line in open(os.path.join(logs, f))] for f in os.listdir(logs)]


def agree(events, program):
    calls = {e["n"]: e for e in events if e["ev"] == "call"}
    moved = {}
    for op in events:
        if op["ev"] == "op" and op["kind"] in ("copy", "memset"):
            moved.setdefault(op["n"], []).append(op)
    for n, ops in moved.items():
        check(n in calls and calls[n]["rc"] == 0, f"{program}: only calls that succeed move bytes ({ops[0]})")
    for n, call in calls.items():
        if call["rc"] or "dir" not in call:
            continue
        ops, fn = moved.get(n, []), call["fn"]
        total = sum(op["bytes"] for op in ops)
        if "Prefetch" in fn:
            check(total <= call["bytes"], f"{program}: {fn} moves at most what it names")
        else:
            check(total == call["bytes"], f"{program}: {fn} {call['bytes']} bytes, moved {total}")
            check(call["dir"] == "SET" or {op["dir"] for op in ops} <= {call["dir"]}, f"{program}: direction of {fn}")
    return calls.values(), moved


for clock in "real", "virtual":
    for program in "objects", "objects_memory", "objects_share", "objects_misc":
        if program == "objects_share" and clock == "virtual":
            continue  # the virtual clock of a process stands still while that one waits for the other
        seen, prefetched, batch = set(), 0, []
        for events in run(program, clock):
            calls, moved = agree(events, program)
            seen |= {(c["fn"], c.get("dir")) for c in calls if not c["rc"]}
            prefetched += sum(op["bytes"] for c in calls if c["fn"] == "cuMemPrefetchAsync" for op in moved.get(c["n"], []))
            batch += [(c["bytes"], len(moved.get(c["n"], []))) for c in calls if c["fn"] == "cuMemcpyBatchAsync" and not c["rc"]]
        if program == "objects":
            check({("cuMemcpyAtoH_v2", "D2H"), ("cuMemcpyHtoA_v2", "H2D"), ("cuMemcpyAtoA_v2", "D2D"), ("cuMemcpyDtoD", "D2D"),
                   ("cuMemcpy3D_v2", "H2D"), ("cuMemcpy3D_v2", "D2H")} <= seen, "directions of array copies")
        if program == "objects_memory":
            check(prefetched == 1 << 20, "a prefetch takes the time of its bytes")
            check(batch == [(256, 3)], "a batch is one call and one operation a copy")
        if program == "objects_misc":
            check(("cuMemcpy3DPeer", "P2P") in seen, "copies between devices")
sys.exit(failed())
