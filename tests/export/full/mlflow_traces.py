#!/usr/bin/env python3
"""An MLflow server takes the lines of `export --to otlp` as they are, and gives back, in one trace, as many steps, calls and ops as the table of `--to csv`
has, with the durations of the report's steps to the nanosecond, their class and their parts. Run by `make check-export`.
timeout: 600"""
import collections
import csv
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402

runs.within(__file__, "mlflow")
PORT = 20000 + os.getpid() % 20000
URL = "http://127.0.0.1:%d" % PORT
os.environ.update(MLFLOW_TRACKING_URI=URL, MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true", HOME=runs.TMP)
import mlflow  # noqa: E402


def post(line):
    """The server's status; 0: it does not answer yet."""
    order = urllib.request.Request(URL + "/v1/traces", line, {"Content-Type": "application/json", "x-mlflow-experiment-id": "0"})
    try:
        return urllib.request.urlopen(order, timeout=60).status
    except urllib.error.HTTPError as e:
        return e.code
    except OSError:
        return 0


run = runs.record()
out = runs.export("otlp", run, runs.TMP + "/run.jsonl")
with open(runs.export("csv", run, runs.TMP + "/run.csv"), newline="", encoding="utf-8") as f:
    rows = list(csv.DictReader(f, strict=True))
steps = runs.steps(run)
server = subprocess.Popen([os.path.dirname(sys.executable) + "/mlflow", "server", "--host", "127.0.0.1", "--port", str(PORT), "--workers", "1",
                           "--backend-store-uri", "sqlite:///%s/store.db" % runs.TMP, "--artifacts-destination", runs.TMP + "/artifacts"],
                          cwd=runs.TMP, stdout=open(runs.TMP + "/server.log", "w"), stderr=subprocess.STDOUT, start_new_session=True)
try:
    until = time.monotonic() + 300
    while not post(b"{}"):
        assert server.poll() is None and time.monotonic() < until, open(runs.TMP + "/server.log").read()[-2000:]
        time.sleep(0.5)
    with open(out, "rb") as f:
        for line in f:
            assert post(line) == 200, open(runs.TMP + "/server.log").read()[-2000:]
    trace, = mlflow.search_traces(locations=["0"], return_type="list")
    spans = [(s, {k[len("tfhook."):]: v for k, v in s.attributes.items() if k.startswith("tfhook.")}) for s in trace.data.spans]
finally:
    os.killpg(server.pid, 15)
    server.wait()

got = collections.Counter("op" if said["kind"] in ("kernel", "copy", "memset", "sync", "graph") else said["kind"] for _, said in spans)
assert got.pop("run") == 1 and got == collections.Counter(r["what"] for r in rows), (got, collections.Counter(r["what"] for r in rows))
assert {s.name for s, said in spans if said["kind"] == "kernel"} == {"spin"}
mine = sorted(((said["step"], s.end_time_ns - s.start_time_ns, said.get("class"), said["compute_ms"]) for s, said in spans if said["kind"] == "step"))
assert len(mine) == len(steps)
for (number, ns, cls, compute), want in zip(mine, steps):
    assert number == want["index"] and abs(ns / 1e9 - want["dur_s"]) < 5e-9 and cls == want["class"], (number, ns, cls, want)
    assert abs(compute / 1e3 - want["breakdown"]["compute"]) < 1e-8, (compute, want)
verdict = runs.report(run)["verdict"]
root, = [said for s, said in spans if s.parent_id is None]
assert (root["class"], root["cause"]) == (verdict["class"], verdict["cause"]), (root, verdict)
ours = sum(int(r["end_ns"]) - int(r["start_ns"]) for r in rows if r["what"] == "op")
assert sum(s.end_time_ns - s.start_time_ns for s, said in spans if said["kind"] in ("kernel", "copy", "memset", "sync")) == ours
print("ok: MLflow %s, %d spans, device %.3f ms" % (mlflow.__version__, len(spans), ours / 1e6))
