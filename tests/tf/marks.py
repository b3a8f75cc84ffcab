#!/usr/bin/env python3
"""Marks set through the header and through the Python module are in the trace; without the preload they do nothing."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tfrun import HERE, MARK, NAME_STRING, Outcome, RANGE, SRC, check  # noqa: E402

PROGRAM = r"""
import sys, time
sys.path.insert(0, sys.argv[1])
import tfhook

@tfhook.range_scope("decorated")
def work():
    time.sleep(0.002)

for i in range(6):
    with tfhook.step_scope("train"):
        work()
try:
    with tfhook.step_scope():
        with tfhook.range_scope("fails"):
            raise ValueError
except ValueError:
    pass
for i in range(4):
    tfhook.step()
tfhook.range_push("plain")
tfhook.range_pop()
tfhook.pause()
tfhook.resume()
print(tfhook.flush())
"""


def named(run, kind, word):
    return [run.name(r, NAME_STRING, r["w"][word]) for r in run.records if r["kind"] == kind]


command = [os.path.join(HERE, "marks")]
plain, run = Outcome(command, preload=False), Outcome(command)
check((plain.status, plain.out, plain.err) == (0, "0\n", "") == (run.status, run.out, run.err), "output: " + run.err)
steps = [r for r in run.records if r["kind"] == MARK]
check(named(run, MARK, 1) == ["train", "eval"] * 5 + [""] * 4, "steps: %s" % named(run, MARK, 1))
check([r["w"][0] for r in steps] == list(range(14)), "step numbers")
check(all(r["end"] - r["begin"] > 990000 for r in steps[:10]), "step times")
ranges = named(run, RANGE, 0)
check(ranges == ["inner", "outer"] * 10 + ["deep"] * 64, "ranges: %s" % ranges)
check([r["depth"] for r in run.records if r["kind"] == RANGE][:2] == [1, 0], "nesting of ranges")

run = Outcome(command + ["fork"])
check(run.status == 0 and len(run.files) == 2, "fork: %s %s" % (run.status, run.files))
pids = {r["pid"] for r in run.records}
steps = {pid: len([r for r in run.records if r["pid"] == pid and r["kind"] == MARK]) for pid in pids}
check(sorted(steps.values()) == [3, 15], "steps of parent and child: %s" % steps)

command = [sys.executable, "-c", PROGRAM, os.path.join(SRC, "lib", "python")]
plain, run = Outcome(command, preload=False), Outcome(command)
check((plain.status, plain.out, plain.err) == (0, "0\n", "") == (run.status, run.out, run.err), "output: " + run.err)
check(named(run, MARK, 1) == ["train"] * 6 + [""] * 4, "steps: %s" % named(run, MARK, 1))
check(named(run, RANGE, 0) == ["decorated"] * 6 + ["fails", "plain"], "ranges: %s" % named(run, RANGE, 0))
