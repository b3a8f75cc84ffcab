#!/usr/bin/env python3
"""`export --to parquet` is a table with types that pyarrow and DuckDB read alike: steps with their parts, calls and ops count and add up to what the
report says, and names of all kinds are as they were, without a spreadsheet's apostrophe. Row groups are bounded. Without pyarrow, without Python and
where Python fails, one line says so, with exit code 3 and no file; no temporary file stays behind."""
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

runs.within(__file__, "tables")
import duckdb  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

os.mkdir(runs.TMP + "/temporary")
runs.ENV.update(TMPDIR=runs.TMP + "/temporary", PYTHONPATH=runs.SRC + "/lib/python", PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])


def ask(path, sql):
    return duckdb.sql(sql.replace("RUN", "'%s'" % path)).fetchall()


run = runs.record()
out = runs.export("parquet", run, runs.TMP + "/run.parquet")
steps = runs.steps(run)
kinds = {f.name: str(f.type) for f in pq.read_schema(out)}
assert kinds["start_ns"] == "int64" and kinds["name"] == "string" and kinds["compute_s"] == "double" and kinds["pid"] == "uint32", kinds
table = pq.read_table(out).to_pylist()
mine = [r for r in table if r["what"] == "step"]
assert len(mine) == len(steps)
for r, s in zip(mine, steps):
    assert r["step"] == s["index"] and abs((r["end_ns"] - r["start_ns"]) / 1e9 - s["dur_s"]) < 5e-9 and (r["class"], r["cause"]) == (s["class"], s["cause"])
    assert all(math.isclose(r[part + "_s"], seconds, abs_tol=1e-8) for part, seconds in s["breakdown"].items()), (r, s)
calls = {r["call"]: r for r in table if r["what"] == "call"}
kernels = [r for r in table if r["what"] == "op" and r["name"] == "spin"]
assert len(kernels) == 300 and all(calls[r["call"]]["name"].startswith("cuLaunchKernel") for r in kernels)
report = {b["name"]: b["s_per_step"] for b in runs.report(run)["breakdown"]}
(count, busy), = ask(out, "SELECT count(*), sum(end_ns - start_ns) / 1e9 FROM RUN WHERE what = 'op' AND name = 'spin'")
assert count == 300 and abs(busy / len(steps) / report["compute"] - 1) < 0.02, (busy, report)
assert ask(out, "SELECT sum(bytes) FROM RUN WHERE name LIKE 'Memcpy HtoD%'") == [(60 * 1000000,)]
(mean,), = ask(out, "SELECT avg(compute_s) FROM RUN WHERE what = 'step' AND segment = 'train'")
assert abs(mean / report["compute"] - 1) < 1e-6, (mean, report)
assert ask(runs.export("parquet", run, runs.TMP + "/part.parquet", "--steps", "20-29"), "SELECT min(step), max(step) FROM RUN") == [(20, 29)]
whole = runs.tfhook("export", "--to", "parquet", "-o", "-", run).stdout
with open(out, "rb") as f:
    assert f.read() == whole

path = runs.trace("hostile.json", names=runs.HOSTILE)
out = runs.export("parquet", path, runs.TMP + "/hostile.parquet")
names = {r["name"] for r in pq.read_table(out).to_pylist()}
assert {name.replace("\0", "\ufffd") for name in runs.HOSTILE} <= names, set(runs.HOSTILE) - names
assert {name for name, in ask(out, "SELECT DISTINCT name FROM RUN")} == names

# More than one row group.
many = runs.export("parquet", runs.trace("many.json", n=8000), runs.TMP + "/many.parquet")
meta = pq.ParquetFile(many).metadata
assert meta.num_row_groups > 1 and all(meta.row_group(i).num_rows <= 1 << 17 for i in range(meta.num_row_groups))
assert ask(many, "SELECT count(*) FROM RUN WHERE what = 'op'") == [(48000,)]
assert not os.listdir(runs.TMP + "/temporary")

# The package is that beside the command, wherever Python looks for others.
full = dict(runs.ENV)
runs.ENV.update(PYTHONPATH="/nonexistent")
runs.tfhook("export", "--to", "parquet", "-o", runs.TMP + "/y.parquet", path)
runs.ENV.update(full)

# Where it cannot be written.
os.mkdir(runs.TMP + "/broken")
with open(runs.TMP + "/broken/pyarrow.py", "w") as f:
    f.write("raise ImportError('broken')\n")
for more, word in ((dict(PATH="/nonexistent"), "pip install"),
                   (dict(PYTHONPATH=runs.TMP + "/broken:" + full["PYTHONPATH"]), "pip install"), (dict(TMPDIR="/nonexistent"), "cannot start")):
    runs.ENV.clear()
    runs.ENV.update(full, **more)
    said = runs.tfhook("export", "--to", "parquet", "-o", runs.TMP + "/x.parquet", path, status=3).stderr.decode()
    assert word in said and said.count("\n") == 1, (more, said)
    assert not [name for name in os.listdir(runs.TMP) if name.startswith("x.parquet")]
print("ok")
