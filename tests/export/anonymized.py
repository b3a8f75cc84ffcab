#!/usr/bin/env python3
"""With --anonymize no format holds a name that the program, its threads or its machine gave, though without it each does: equal names have equal
pseudonyms, different ones different, and all else in the table is the same. Computing, exchanges and steps are still found in what other tools
read. Names that libraries give stay. Folded stacks, which consist of names, are refused (exit code 2)."""
import csv
import gzip
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

runs.within(__file__, "tables")
import pyarrow.parquet as pq  # noqa: E402

runs.ENV.update(PYTHONPATH=runs.SRC + "/lib/python", PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])

FORMATS = ("perfetto", "kineto", "sqlite", "csv", "parquet", "pprof", "otlp", "xplane")


def content(path):
    """The bytes of a file; of Parquet, whose texts are compressed, those of its texts; of pprof's, which is compressed, what it contains."""
    if path.endswith(".parquet"):
        return json.dumps(pq.read_table(path).to_pydict()).encode()
    with gzip.open(path) if path.endswith(".pprof") else open(path, "rb") as f:
        return f.read()


def rows(path, *flags):
    with open(runs.export("csv", path, runs.TMP + "/rows", "--force", *flags), newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f, strict=True))


# A trace whose process, thread, ranges and kernels have such names.
path = runs.trace("trace.json", names=["SECRET_sgemm_128", "void SECRET::op<float>(int)"])
with open(path) as f:
    trace = json.load(f)
for what in ("process_name", "thread_name"):
    trace["traceEvents"].append(dict(ph="M", name=what, pid=100, tid=100, args={"name": "SECRET " + what}))
for e in trace["traceEvents"]:
    e["name"] = e["name"].replace("overlaps", "Optimizer.step#SECRETAdam.step").replace("_MultiProcessing", "SECRET")
with open(path, "w") as f:
    json.dump(trace, f)

# A recorded job whose program and arguments do.
program = runs.TMP + "/SECRET_program"
shutil.copy(runs.BUILD + "/tests/jobs/client_loop", program)
runs.tfhook("run", "-q", "-o", runs.TMP + "/run", "env", "SECRET=1", program, "--steps", "60", "--spin", "700")

for name, source in (("trace", path), ("run", runs.TMP + "/run")):
    for form in FORMATS:
        out = runs.export(form, source, f"{runs.TMP}/{name}.hidden.{form}", "--anonymize")
        assert b"SECRET" not in content(out), (name, form)
        shown = runs.export(form, source, f"{runs.TMP}/{name}.{form}")
        assert name == "run" or b"SECRET" in content(shown), (name, form)

before, after = rows(path), rows(path, "--anonymize")
assert [{**r, "name": ""} for r in before] == [{**r, "name": ""} for r in after]
pairs = {(b["what"], b["name"], a["name"]) for b, a in zip(before, after)}
assert len(pairs) == len({p[:2] for p in pairs}) == len({(p[0], p[2]) for p in pairs}), pairs
names = {b: a for _, b, a in pairs}
assert all(names[same] == same for same in ("aten::outer", "cudaLaunchKernel", "Memset (Device)", "ProfilerStep")), names
assert names["SECRET_sgemm_128"].startswith("kernel_") and "matmul" in names["SECRET_sgemm_128"], names
assert names["Optimizer.step#SECRETAdam.step"].startswith("Optimizer.step#range "), names

# What is read back from either is the same.
for form, suffix in (("kineto", ".json"), ("sqlite", ""), ("xplane", ".xplane.pb")):
    hidden, shown = (runs.report(shutil.copy(f"{runs.TMP}/trace{kind}.{form}", f"{runs.TMP}/{kind}{form}{suffix}")) for kind in (".hidden", ""))
    for what in ("steps", "breakdown"):
        assert hidden[what] == shown[what], (form, hidden[what], shown[what])
    assert (hidden["verdict"]["class"], hidden["verdict"]["cause"]) == (shown["verdict"]["class"], shown["verdict"]["cause"]), (form, hidden["verdict"])

with open(runs.TMP + "/run.hidden.otlp") as f:
    said = {a["key"]: a["value"] for a in json.loads(f.readline())["resourceSpans"][0]["resource"]["attributes"]}
assert said["host.name"] == {"stringValue": "host 1"} and "process.command_args" not in said and "process.executable.path" not in said, said

os.chdir(runs.TMP)
os.mkdir("SECRET")
shutil.copytree("run", "SECRET/run-of-SECRET")
assert b"tfhook.csv" in runs.tfhook("export", "--to", "csv", "--anonymize", "SECRET/run-of-SECRET").stderr and os.path.exists("tfhook.csv")
assert b"--anonymize" in runs.tfhook("export", "--to", "folded", "--anonymize", "run", status=2).stderr
print("ok")
