#!/usr/bin/env python3
"""`export --to otlp` is what opentelemetry-proto reads: each line an ExportTraceServiceRequest below 1 MiB, whatever names are in it. All spans are of one
trace, with ids of their own; parents and linked calls are in the file. Steps, calls and ops are as many as in the table of `--to csv`, at the same times;
steps have the class, cause and parts of the report. The resource says who ran, without what run.json leaves out. A second export is the same."""
import base64
import csv
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

runs.within(__file__, "metrics")
from google.protobuf import json_format  # noqa: E402
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: E402
from opentelemetry.proto.trace.v1.trace_pb2 import Status  # noqa: E402


def plain(value):
    kind = value.WhichOneof("value")
    return [plain(v) for v in value.array_value.values] if kind == "array_value" else getattr(value, kind)


def fields(attributes):
    got = {a.key: plain(a.value) for a in attributes}
    assert len(got) == len(attributes), attributes
    return got


def hexadecimal(data, digits):
    """OTLP has ids in hexadecimal where protobuf's JSON has base64, which the parser took them for."""
    text = base64.b64encode(data).decode()
    assert re.fullmatch("[0-9a-f]{%d}" % digits, text) and int(text, 16), text
    return text


def read(path):
    """The spans, each with its resource, after the checks that hold for every file."""
    spans, traces = {}, set()
    with open(path, "rb") as f:
        for line in f:
            assert len(line) < 1 << 20
            for of in json_format.Parse(line.decode("utf-8"), ExportTraceServiceRequest()).resource_spans:
                resource = fields(of.resource.attributes)
                for span in of.scope_spans[0].spans:
                    traces.add(hexadecimal(span.trace_id, 32))
                    at = hexadecimal(span.span_id, 16)
                    assert at not in spans and span.end_time_unix_nano >= span.start_time_unix_nano and span.name
                    spans[at] = dict(name=span.name, t0=span.start_time_unix_nano, t1=span.end_time_unix_nano, resource=resource, status=span.status.code,
                                     parent=hexadecimal(span.parent_span_id, 16) if span.parent_span_id else None,
                                     links=[hexadecimal(link.span_id, 16) for link in span.links], **fields(span.attributes))
    assert len(traces) == 1, traces
    for s in spans.values():
        if s["tfhook.kind"] == "run":
            assert s["parent"] is None
            continue
        parent = spans[s["parent"]]
        assert parent["tfhook.kind"] in ("run", "step")
        assert parent["tfhook.kind"] == "run" or parent["t0"] <= s["t0"] < parent["t1"]
        for link in s["links"]:
            assert spans[link]["tfhook.kind"] == "call" and spans[link]["t0"] <= s["t0"]
    assert len([s for s in spans.values() if s["parent"] is None]) == 1
    return spans


def rows(path, flags=()):
    with open(runs.export("csv", path, runs.TMP + "/rows.csv", "--force", *flags), newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f, strict=True))


def same_as_table(path, spans, *flags):
    """Number and total time of each kind."""
    sums = {}
    for s in spans.values():
        kind = s["tfhook.kind"]
        sums.setdefault("op" if kind in ("kernel", "copy", "memset", "sync", "graph") else kind, []).append(s["t1"] - s["t0"])
    assert len(sums.pop("run")) == 1
    want = {}
    for r in rows(path, flags):
        want.setdefault(r["what"], []).append(int(r["end_ns"]) - int(r["start_ns"]))
    assert {k: (len(v), sum(v)) for k, v in sums.items()} == {k: (len(v), sum(v)) for k, v in want.items()}


run = runs.record()
out = runs.export("otlp", run, runs.TMP + "/run.jsonl")
spans, steps, report = read(out), runs.steps(run), runs.report(run)
same_as_table(run, spans)
top, = [s for s in spans.values() if s["tfhook.kind"] == "run"]
assert (top["name"], top["tfhook.class"], top["tfhook.cause"]) == ("client_loop", report["verdict"]["class"], report["verdict"]["cause"]), top
assert top["tfhook.steps"] == report["steps"]["count"] and abs((top["t1"] - top["t0"]) / 1e9 - report["run"]["wall_s"]) < 0.1, (top, report["run"])
mine = sorted((s for s in spans.values() if s["tfhook.kind"] == "step"), key=lambda s: s["tfhook.step"])
assert len(mine) == len(steps)
for got, s in zip(mine, steps):
    assert got["tfhook.step"] == s["index"] and abs((got["t1"] - got["t0"]) / 1e9 - s["dur_s"]) < 5e-9
    assert (got.get("tfhook.class"), got.get("tfhook.cause")) == (s["class"], s["cause"])
    assert all(abs(got["tfhook.%s_ms" % part] - seconds * 1e3) < 1e-5 for part, seconds in s["breakdown"].items()), (got, s)
kernels = [s for s in spans.values() if s["tfhook.kind"] == "kernel"]
assert len(kernels) == 300
for s in kernels:
    call = spans[s["links"][0]]
    assert call["name"].startswith("cuLaunchKernel") and call["tfhook.kernel"] == s["name"] == "spin"
copies = [s for s in spans.values() if s["name"].startswith("Memcpy HtoD")]
assert sum(s["tfhook.bytes"] for s in copies) == sum(spans[s["links"][0]]["tfhook.bytes"] for s in copies) == 60 * 1000000
with open(out, "rb") as f, open(runs.export("otlp", run, runs.TMP + "/again.jsonl"), "rb") as again:
    assert f.read() == again.read()
part = read(runs.export("otlp", run, runs.TMP + "/part.jsonl", "--steps", "20-29"))
same_as_table(run, part, "--steps", "20-29")
assert sorted(s["tfhook.step"] for s in part.values() if s["tfhook.kind"] == "step") == list(range(20, 30)) and not set(part) - set(spans)

# Who ran.
who = top["resource"]
assert who["service.name"] == "client_loop" and who["host.name"] == report["run"]["host"] and who["process.command_args"] == report["run"]["command"], who
assert who["process.pid"] > 0 and "tfhook.rank" not in who
job = ["env", "API_KEY=key-of-the-job", "RANK=3", "WORLD_SIZE=8", runs.BUILD + "/tests/jobs/client_loop", "--steps", "20"]
runs.ENV["HF_TOKEN"] = "token-of-the-user"
runs.tfhook("run", "-q", "-o", runs.TMP + "/secret", *job)
out = runs.export("otlp", runs.TMP + "/secret", runs.TMP + "/secret.jsonl")
who = next(iter(read(out).values()))["resource"]
assert (who["tfhook.rank"], who["tfhook.world"], who["process.command_args"][1]) == (3, 8, "API_KEY=<redacted>"), who
with open(out, "rb") as f:
    assert b"of-the-" not in f.read()

# A call that fails.
code = """import ctypes
cuda, ctx, p = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0) and not cuda.cuCtxSetCurrent(ctx)
assert not cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(4096)) and not cuda.cuMemcpyHtoD_v2(p, bytes(4096), ctypes.c_size_t(4096))
assert cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(64), bytes(4096), ctypes.c_size_t(4096))"""
runs.tfhook("run", "-q", "-o", runs.TMP + "/failing", sys.executable, "-c", code)
failed = [s for s in read(runs.export("otlp", runs.TMP + "/failing", runs.TMP + "/failing.jsonl")).values() if s["status"] == Status.STATUS_CODE_ERROR]
assert [s["name"] for s in failed] == ["cuMemcpyHtoD_v2"] and failed[0]["tfhook.error"] > 0, failed

# Traces: names of all kinds, many lines, ranks.
path = runs.trace("hostile.json", names=runs.HOSTILE, n=600)
out = runs.export("otlp", path, runs.TMP + "/hostile.jsonl")
spans = read(out)
same_as_table(path, spans)
names = {s["name"] for s in spans.values()}
assert {name.replace("\0", "\ufffd") for name in runs.HOSTILE} <= names, set(runs.HOSTILE) - names
with open(out, "rb") as f:
    assert len(f.readlines()) > 3
os.mkdir(runs.TMP + "/two")
for rank in range(2):
    runs.trace("two/%d.json" % rank, rank=rank, world=2, pid=1)
spans = read(runs.export("otlp", runs.TMP + "/two", runs.TMP + "/two.jsonl"))
same_as_table(runs.TMP + "/two", spans)
assert {s["resource"]["tfhook.rank"] for s in spans.values() if s["tfhook.kind"] == "step"} == {0, 1}
print("ok")
