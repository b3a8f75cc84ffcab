#!/usr/bin/env python3
"""Question 2: what the driver answers for a name by dlsym and by cuGetProcAddress is one address, for every hooked name,
its per-thread form too; it reports which names share one. With tfhook, both answers are its hooks for every name that the driver has."""
import collections
import sys

from gpu import HOOK, check, compile, failed, need_gpu, report, run

need_gpu("that cuGetProcAddress and dlsym give one address for every hooked name, per-thread ones too, and which names "
         "share one (question 2)")
program = compile("identity")


def lines(output):
    return [line.split() for line in output.splitlines() if not line.startswith("#")]


done, _, _ = run("bare", [program])
rows = lines(done[1])
if not check(done[0] == 0 and rows, "client", done):
    sys.exit(failed())
both = [r for r in rows if r[3] != "-" and r[4] != "-"]
differ = [r[0] for r in both if r[3] != r[4]]
shared = collections.defaultdict(list)
for r in rows:
    if r[3] != "-":
        shared[r[3]].append(r[0])
shared = sorted(names for names in shared.values() if len(names) > 1)
report(question=2, driver=done[1].split()[2], names=len(rows), by_both=len(both), different=differ, sharing=shared,
       only_by_version=[r[0] for r in rows if r[3] == "-" and r[4] != "-"],
       only_by_name=[r[0] for r in rows if r[4] == "-" and r[3] != "-" and r[1] != "0"])
check(len(both) > 200, "hardly a name is known by both", len(both))

done, _, _ = run("hooked", [program], HOOK)
check(done[0] == 0, "with tfhook", done)
for bare, ours in zip(rows, lines(done[1])):
    check(bare[0] == ours[0], "order", bare, ours)
    for i in (3, 4):
        check((bare[i] == "-") == (ours[i] == "-"), "known with and without tfhook", bare, ours)
    if bare[3] != "-" or bare[4] != "-":
        check(ours[5].startswith("libtfhook"), "not ours", bare, ours)
    # Where a name has an address of its own, both answers are one wrapper.
    alone = not any(bare[0] in names for names in shared)
    if alone and bare[3] != "-" and bare[3] == bare[4]:
        check(ours[3] == ours[4], "two wrappers", bare, ours)
sys.exit(failed())
