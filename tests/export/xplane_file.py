#!/usr/bin/env python3
"""`export --to xplane` and back: the report on the export has the steps, kernels, copies and computing of the run, whatever names are in it; several
ranks are files of a directory. (XProf reads it in `make check-export`.)"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402


def close(a, b, part=0.02):
    return abs(a - b) <= part * abs(b) + 1e-9


def compare(want, got):
    assert got["steps"]["total"] == want["steps"]["total"], (got["steps"], want["steps"])
    assert close(got["steps"]["median_s"], want["steps"]["median_s"])
    of = [{b["name"]: b["s_per_step"] for b in r["breakdown"]}["compute"] for r in (want, got)]
    assert close(of[1], of[0]), of
    kernels = [{k["name"]: round(k["calls_per_step"], 1) for k in r["kernels"]} for r in (want, got)]
    assert kernels[0] == kernels[1], kernels
    assert [t["bytes_per_step"] for t in want["transfers"]] == [t["bytes_per_step"] for t in got["transfers"]]


run = runs.record()
compare(runs.report(run), runs.report(runs.export("xplane", run, runs.TMP + "/run.xplane.pb")))
part = runs.steps(runs.export("xplane", run, runs.TMP + "/part.xplane.pb", "--steps", "20-29"))
assert len(part) == 10, len(part)
path = runs.trace("hostile.json", names=runs.HOSTILE)
want, got = runs.report(path), runs.report(runs.export("xplane", path, runs.TMP + "/hostile.xplane.pb"))
assert got["steps"]["total"] == 30 and close(got["steps"]["median_s"], 0.01), got["steps"]
names = {k["name"] for k in want["kernels"]}
assert {k["name"][:2000] for k in got["kernels"]} == {name[:2000] for name in names}
os.mkdir(runs.TMP + "/two")
for rank in range(2):
    runs.trace("two/%d.json" % rank, rank=rank, world=2, pid=1)
runs.export("xplane", runs.TMP + "/two", runs.TMP + "/ranks")
assert sorted(os.listdir(runs.TMP + "/ranks")) == ["r0.xplane.pb", "r1.xplane.pb"]
print("ok")
