#!/usr/bin/env python3
"""`export --to csv` is a table that Python's csv module and DuckDB read alike, whatever names are in it; no field begins a formula; steps, kernels
and copies count and add up to what the report says."""
import csv
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

runs.within(__file__)
import duckdb  # noqa: E402


def lines(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f, strict=True))


run = runs.record()
out = runs.export("csv", run, runs.TMP + "/run.csv")
got, steps = lines(out), runs.steps(run)
mine = [r for r in got if r["what"] == "step"]
assert len(mine) == len(steps)
for r, s in zip(mine, steps):
    assert int(r["step"]) == s["index"] and abs((int(r["end_ns"]) - int(r["start_ns"])) / 1e9 - s["dur_s"]) < 5e-9
    assert r["class"] == (s["class"] or "") and r["cause"] == (s["cause"] or "")
calls = {r["call"]: r for r in got if r["what"] == "call"}
kernels = [r for r in got if r["what"] == "op" and r["name"] == "spin"]
assert len(kernels) == 300 and all(calls[r["call"]]["name"].startswith("cuLaunchKernel") for r in kernels)
assert duckdb.sql("SELECT count(*), sum(end_ns - start_ns) FROM read_csv('%s') WHERE what = 'op' AND name = 'spin'" % out).fetchall()[0] == (
    300, sum(int(r["end_ns"]) - int(r["start_ns"]) for r in kernels))
assert duckdb.sql("SELECT sum(bytes) FROM read_csv('%s') WHERE what = 'op' AND name LIKE 'Memcpy HtoD%%'" % out).fetchall()[0] == (60 * 1000000,)
assert len([r for r in lines(runs.export("csv", run, runs.TMP + "/part.csv", "--steps", "20-29")) if r["what"] == "step"]) == 10

path = runs.trace("hostile.json", names=runs.HOSTILE)
out = runs.export("csv", path, runs.TMP + "/hostile.csv")
names = {r["name"] for r in lines(out)}
for name in runs.HOSTILE:
    want = name.replace("\0", "\ufffd")
    assert ("'" + want if want[0] in "=+-@\t\r" else want) in names, want
assert not [r for r in lines(out) for field in r.values() if field[:1] in tuple("=+-@\t\r")]
theirs = duckdb.sql("SELECT DISTINCT name FROM read_csv('%s', header = true, all_varchar = true)" % out).fetchall()
assert {name or "" for name, in theirs} == names
print("ok")
