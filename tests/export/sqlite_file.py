#!/usr/bin/env python3
"""`export --to sqlite` is a database in which SQL counts and sums what the report says, by tables of our own and by the names that Nsight Systems'
export gives its tables: kernels with their launches, copies, ranges, in SQLite and in DuckDB. The report on the database is that on the trace that
it was made from, field by field where nothing was lost; of a recording, steps and computing are the same. Names of all kinds come back as they were;
without SQLite the command says which package it needs, with exit code 3; no temporary file stays behind."""
import json
import os
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

os.mkdir(runs.TMP + "/temporary")
runs.ENV["TMPDIR"] = runs.TMP + "/temporary"


def rows(path, sql):
    db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    db.execute("PRAGMA quick_check").fetchone()[0] == "ok" or sys.exit("damaged")
    found = db.execute(sql).fetchall()
    db.close()
    return found


def same(path, lost=()):
    """The report on the database is that on what it was made from."""
    a, b = (runs.report(p) for p in (path, runs.export("sqlite", path, runs.TMP + "/back.sqlite", "--force")))
    for r in (a, b):
        r.pop("run")
        r.get("threads", []).sort(key=lambda t: t["tid"])
    assert [k for k in a if a[k] != b.get(k) and k not in lost] == [], [(k, a[k], b.get(k)) for k in a if a[k] != b.get(k)][:2]


# The queries that people run on nsys' files: time by kernel, launch to start, copies by kind, ranges.
KERNELS = """SELECT s.value, count(*), sum(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON s.id = k.shortName
    GROUP BY s.value ORDER BY 3 DESC"""
LAUNCHES = """SELECT count(*), min(k.start - r.start) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r
    ON k.correlationId = r.correlationId AND k.globalPid = r.globalTid & ~16777215 JOIN StringIds AS s ON s.id = r.nameId
    WHERE s.value LIKE 'cu%LaunchKernel%'"""
COPIES = "SELECT copyKind, srcKind, dstKind, count(*), sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY GROUP BY copyKind, srcKind, dstKind ORDER BY copyKind"
RANGES = "SELECT text, count(*), sum(end - start) FROM NVTX_EVENTS GROUP BY text"

run = runs.record()
out = runs.export("sqlite", run, runs.TMP + "/run.sqlite")
report, steps = runs.report(run), runs.steps(run)
name, count, ns = rows(out, KERNELS)[0]
assert (name, count) == ("spin", 300) and abs(ns / 1e9 / 60 - 5 * 0.0007) < 0.0005, (name, count, ns)
launches, least = rows(out, LAUNCHES)[0]
assert launches == 300 and least > 0, (launches, least)
assert [(kind, n, total) for kind, _, _, n, total in rows(out, COPIES)] == [(1, 60, 60 * 1000000), (2, 60, 60 * 4096)]
got = rows(out, "SELECT step, start, end, class, cause, host_s, compute_s FROM steps ORDER BY step")
assert len(got) == len(steps)
for (index, start, end, cls, cause, host, compute), s in zip(got, steps):
    assert index == s["index"] and abs((end - start) / 1e9 - s["dur_s"]) < 5e-9 and (cls, cause) == (s["class"], s["cause"])
    assert abs(host - s["breakdown"]["host"]) < 1e-9 and abs(compute - s["breakdown"]["compute"]) < 1e-9
(cls, cause, share, median), = rows(out, "SELECT class, cause, share, median_s FROM verdict")
assert (cls, cause, share, median) == (report["verdict"]["class"], report["verdict"]["cause"], report["verdict"]["share"], report["steps"]["median_s"])
back = runs.report(out)
compute = [{b["name"]: b["s_per_step"] for b in r["breakdown"]}["compute"] for r in (report, back)]
assert abs(compute[1] / compute[0] - 1) < 0.02, compute
assert all(abs(a["dur_s"] - b["dur_s"]) < 1e-5 for a, b in zip(steps[3:-1], runs.steps(out)[3:-1])), [s["dur_s"] for s in runs.steps(out)]
assert back["verdict"]["tier"] == "A" and back["steps"]["total"] == report["steps"]["total"], back["steps"]

# DuckDB, in which `end` is a word of the language.
queries = [sql.replace(".end", '."end"') for sql in (KERNELS, LAUNCHES, COPIES)] + ["SELECT class, count(*), sum(compute_s) FROM steps GROUP BY class"]
answers = json.loads(subprocess.run([runs.python("tables"), os.path.dirname(os.path.abspath(__file__)) + "/in_duckdb.py", out] + queries, check=True, stdout=subprocess.PIPE).stdout)
for sql, answer in zip((KERNELS, LAUNCHES, COPIES), answers):
    assert [tuple(row) for row in answer] == rows(out, sql), (sql, answer)
assert sum(n for _, n, _ in answers[3]) == len(steps)
assert abs(sum(s for _, _, s in answers[3]) - sum(s["breakdown"]["compute"] for s in steps)) < 1e-6, answers[3]

part = runs.export("sqlite", run, runs.TMP + "/part.sqlite", "--steps", "20-29")
assert rows(part, "SELECT min(step), max(step), count(*) FROM steps") == [(20, 29, 10)]

same(runs.trace("plain.json"))
traces = os.environ.get("TFH_TRACES", "")
for name, lost in (("resnet50_workers0", ()), ("resnet50_workers4", ()), ("ddp8_rank3", ("whatif", "advice"))):  # lost: which ranges are ops
    if os.path.exists(os.path.join(traces, name + ".pt.trace.json.gz")):
        same(os.path.join(traces, name + ".pt.trace.json.gz"), lost)
path = runs.trace("hostile.json", names=runs.HOSTILE)
out = runs.export("sqlite", path, runs.TMP + "/hostile.sqlite")
texts = {value for value, in rows(out, "SELECT value FROM StringIds")}
assert {name.replace("\0", "\ufffd") + " op" for name in runs.HOSTILE} <= texts
assert {text: (n, ns) for text, n, ns in rows(out, RANGES)}["aten::outer"] == (30, 27000000)
assert rows(out, COPIES) == [(1, 0, 2, 30, 30 * 4096), (2, 2, 1, 30, 30 * 4096)]
assert sum(n for _, n, _ in rows(out, KERNELS)) == 90

# Ranks.
os.mkdir(runs.TMP + "/two")
for rank in range(2):
    runs.trace("two/%d.json" % rank, rank=rank, world=2, pid=1)
out = runs.export("sqlite", runs.TMP + "/two", runs.TMP + "/two.sqlite")
assert rows(out, "SELECT rank, count(*) FROM steps JOIN processes USING (process) GROUP BY rank ORDER BY rank") == [(0, 30), (1, 30)]
assert rows(out, LAUNCHES)[0][0] == 180
assert not os.listdir(runs.TMP + "/temporary")

# A stand-in for a system without it.
with open(runs.TMP + "/libsqlite3.so.0", "w") as f:
    f.write("no library")
runs.ENV["LD_LIBRARY_PATH"] = runs.TMP
said = runs.tfhook("export", "--to", "sqlite", "-o", runs.TMP + "/x.sqlite", path, status=3).stderr.decode()
assert "libsqlite3-0" in said and not os.path.exists(runs.TMP + "/x.sqlite"), said
print("ok")
