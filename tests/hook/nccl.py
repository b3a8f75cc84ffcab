#!/usr/bin/env python3
"""NCCL's calls are recorded in every rank, bound by name or looked up: bytes, a communicator that has one key in all its
ranks, and numbers by which the ranks' calls are matched. A late rank is late by the calls alone, too."""
import collections
import glob
import json
import os
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
program, tfhook = f"{build}/tests/hook/nccl", f"{build}/bin/tfhook"
if os.environ.get("TFH_SAN") or not os.path.exists(f"{build}/sim/libnccl.so.2"):
    sys.exit(77)
NONE = 0xFFFFFFFF


def run(name, ranks, how, late=None):
    """Calls of NCCL in each rank, in order."""
    directory, meeting = f"{tmp}/{name}", f"{tmp}/{name}.id"
    script = "".join(
        f"RANK={rank} WORLD_SIZE={ranks} {program} {meeting} {ranks} {rank} {how} {late if rank == 1 and late else 0} & "
        for rank in range(ranks)) + "wait"
    done = subprocess.run([tfhook, "run", "-q", "-o", directory, "--", "bash", "-c", script],
                          env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim"}, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(done.returncode == 0 and not done.stdout, name, done)
    calls = []
    for rank in range(ranks):
        files = glob.glob(f"{directory}/r{rank}.*.tft")
        check(len(files) == 1, name, rank, os.listdir(directory))
        shown = subprocess.run([f"{build}/tests/hook/show", *files], stdout=subprocess.PIPE, text=True, check=True)
        records = [json.loads(line) for line in shown.stdout.splitlines()]
        calls.append([r for r in records if r["fn"].startswith("nccl")])
    return directory, calls


def same(name, calls):
    ranks = len(calls)
    made = [[c for c in rank if c["fn"] == "ncclCommInitRank"] for rank in calls]
    check(all(len(m) == 1 for m in made), name, made)
    key = made[0][0]["w"][1]
    check(key and all(m[0]["w"][1] == key for m in made), name, "one key", made)
    want = [("ncclAllReduce", 4000, i + 1, NONE) for i in range(5)] + [
        ("ncclBroadcast", 40, 6, 1), ("ncclAllGather", 80, 7, NONE), ("ncclReduceScatter", 120, 8, NONE)]
    halves = collections.defaultdict(set)
    for rank, mine in enumerate(calls):
        have = [(c["fn"], c["w"][0], c["w"][2] & NONE, c["w"][2] >> 32) for c in mine if c["w"][1] == key]
        check([h for h in have if h[0] in {w[0] for w in want}] == want, name, rank, have)
        check(("ncclSend", 160, 1, (rank + 1) % ranks) in have, name, have)
        check(("ncclRecv", 160, 2, (rank - 1) % ranks) in have, name, have)
        split = [c for c in mine if c["fn"] == "ncclCommSplit"]
        check(len(split) == 1 and split[0]["w"][2] == key, name, split)
        last = [c for c in mine if c["fn"] == "ncclAllReduce"][-1]
        check(last["w"][0] == 200 and last["w"][2] & NONE == 1 and last["w"][1] == split[0]["w"][1], name, last)
        halves[rank % 2].add(last["w"][1])
        check([c["fn"] for c in mine].count("ncclGroupEnd") == 1, name, rank)
        check(not any(c["flags"] & 32 for c in mine), name, "failed calls", mine)
    check(len(halves) == min(2, ranks) and all(len(keys) == 1 for keys in halves.values()) and
          len(set.union(*halves.values())) == len(halves), name, halves)


for name, ranks, how in (("bound", 2, "bound"), ("dlsym", 3, "dlsym")):
    directory, calls = run(name, ranks, how)
    same(name, calls)
directory, calls = run("late", 2, "bound", 60)
same("late", calls)
third = [[c for c in rank if c["fn"] == "ncclAllReduce"][2] for rank in calls]
check(third[1]["t0"] - third[0]["t0"] > 30e6, "late", third)
sys.exit(failed())
