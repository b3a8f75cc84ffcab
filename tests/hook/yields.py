#!/usr/bin/env python3
"""What a call yields beyond its name: the pairs of a batch, bytes of pitched and peer copies, sizes of arrays and of
mapped memory, where a prefetch goes; and the totals of a graph, after each change of the executable."""
import os
import struct
import subprocess
import sys

from compare import ALLOC, CALL, GRAPH, build, check, compare, failed, records_of, run

records, truth, place = run("yields", f"{build}/tests/hook/yields")
compare("yields", records, truth, place)
# The same once more, to see what the program says.
env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", LD_PRELOAD=f"{build}/lib/libtfhook.so", TFHOOK_DIR=f"{place}/2")
os.mkdir(f"{place}/2")
said = subprocess.run([f"{build}/tests/hook/yields"], env=env, capture_output=True, text=True, timeout=60).stdout
records = records_of(f"{place}/2")
calls = {}
for r in records:
    if r["kind"] in (CALL, ALLOC) and r["result"] == 0:
        calls.setdefault(r["fn"], []).append(r)
totals = [r for r in records if r["kind"] == GRAPH]
expected, pairs, missing = [], [], []
for line in said.splitlines():
    word = line.split()
    if word[0] == "-":
        missing.append(word[1])
    elif word[0] == "pair":
        pairs[-1].append(tuple(map(int, word[1:])))
    elif word[0] == "graph":
        expected.append((word[1], *map(int, word[2:])))
    elif calls.get(word[0]):
        r = calls[word[0]].pop(0)
        check(r["w"] == list(map(int, word[1:])), word[0], r["w"], word[1:])
        if "Batch" in word[0]:
            pairs.append([])
            data = bytes.fromhex(r["ext"])
            form, count = data[0], struct.unpack_from("<I", data, 12)[0]
            listed = [struct.unpack_from("<QQQ", data, at) for at in range(36, 36 + 24 * min(count, 63), 24)]
            check(form == 5 and len(data) == 36 + 24 * min(count, 63), word[0], "form", form, count, len(data))
            pairs[-1] = [[(d, s, n & (1 << 56) - 1) for d, s, n in listed]]
    else:
        check(False, "not recorded", line)
for got, *told in pairs:
    check(got == told, "pairs", got[:3], told[:3], len(got), len(told))
check([(g["w"][0], g["w"][1]) for g in totals] == [e[1:3] for e in expected], "graph bytes", [g["w"] for g in totals],
      expected)
for g, e in zip(totals, expected):
    _, copies, sets, _, children, conditions, _, incomplete, _ = struct.unpack("<9I", bytes.fromhex(g["ext"]))
    got = (copies, sets, children, conditions, incomplete)
    check(got == (*e[3:], 0), "graph nodes", e, got)
first = [g for g, e in zip(totals, expected) if e[0] != "conditional"]
check([g["ctx"] for g in first] == list(range(1, len(first) + 1)), "versions", [g["ctx"] for g in first])
# A launch cites the version that held when it was made.
version, cited = 0, []
for r in sorted((r for r in records if r["kind"] == GRAPH or r["fn"].startswith("cuGraphLaunch")),
                key=lambda r: r["t1"]):
    if r["kind"] == GRAPH:
        version = r["ctx"]
    else:
        cited.append((r["w"][1], version))
check(cited and all(a == b for a, b in cited), "versions cited", cited)
if missing:
    print("this driver has no", *sorted(set(missing)))
sys.exit(failed())
