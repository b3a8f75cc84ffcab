#!/usr/bin/env python3
"""A collector (Rotel) takes what `export --to otlp` writes and what `top --otlp` sends, both JSON, and forwards them as protobuf: the same spans with the
same ids, parents, links and times, and the same gauges. Run by `make check-export`.
timeout: 300"""
import gzip
import http.server
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402

runs.within(__file__, "collector")
import rotel  # noqa: E402
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest  # noqa: E402
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: E402

FORMS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
PORTS = 20000 + os.getpid() % 20000


class Behind(http.server.BaseHTTPRequestHandler):
    """What the collector forwards to."""
    taken = {path: [] for path in FORMS}

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = FORMS[self.path]()
        message.ParseFromString(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
        Behind.taken[self.path].append(message)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


def eventually(what):
    until = time.monotonic() + 60
    while not (found := what()):
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.1)
    return found


def answers():
    try:
        return urllib.request.urlopen(urllib.request.Request(url + "/v1/traces", b'{"resourceSpans": []}', {"Content-Type": "application/json"})).status == 200
    except OSError:
        return False


agent = os.path.join(os.path.dirname(rotel.__file__), "rotel-agent")
subprocess.run([runs.SRC + "/scripts/bootstrap", "collector"], check=True)
behind = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Behind)
threading.Thread(target=behind.serve_forever, daemon=True).start()
url = "http://127.0.0.1:%d" % (PORTS + 1)
collector = subprocess.Popen([agent, "start", "--otlp-grpc-endpoint", "127.0.0.1:%d" % PORTS, "--otlp-http-endpoint", url[len("http://"):], "--exporter", "otlp",
                              "--otlp-exporter-protocol", "http", "--otlp-exporter-endpoint", "http://127.0.0.1:%d" % behind.server_port],
                             stdout=subprocess.DEVNULL)
try:
    eventually(answers)

    # A run, with names from the outside.
    path = runs.export("otlp", runs.trace("hostile.json", names=runs.HOSTILE), runs.TMP + "/hostile.jsonl")
    recorded = runs.export("otlp", runs.record("run"), runs.TMP + "/run.jsonl")
    want = set()
    for line in [line for file in (path, recorded) for line in open(file, "rb")]:
        for span in (s for of in json.loads(line)["resourceSpans"] for s in of["scopeSpans"][0]["spans"]):
            want.add((span["traceId"], span["spanId"], span.get("parentSpanId", ""), span["name"], int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]),
                      tuple(link["spanId"] for link in span.get("links", ())), len(span["attributes"])))
        assert urllib.request.urlopen(urllib.request.Request(url + "/v1/traces", line, {"Content-Type": "application/json"})).status == 200

    def forwarded():
        return [s for m in Behind.taken["/v1/traces"] for of in m.resource_spans for scope in of.scope_spans for s in scope.spans]
    eventually(lambda: len(forwarded()) >= len(want))
    got = {(s.trace_id.hex(), s.span_id.hex(), s.parent_span_id.hex(), s.name, s.start_time_unix_nano, s.end_time_unix_nano,
            tuple(link.span_id.hex() for link in s.links), len(s.attributes)) for s in forwarded()}
    assert got == want and len(want) > 1000, (len(got), len(want), list(got ^ want)[:3])

    # Gauges of a job that runs.
    loop = subprocess.Popen([runs.BUILD + "/bin/tfhook", "run", "-q", "-o", runs.TMP + "/live", runs.BUILD + "/tests/jobs/client_loop", "--seconds", "20", "--steps",
                             "1000000"], env=runs.ENV, stdout=subprocess.DEVNULL)
    top = [runs.BUILD + "/bin/tfhook", "top", "--once", "--otlp", url, "--openmetrics", runs.TMP + "/m.prom", runs.TMP + "/live"]


    def told():
        """The names in the file that the last one wrote, once it has steps."""
        subprocess.run(top, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = open(runs.TMP + "/m.prom").read() if os.path.exists(runs.TMP + "/m.prom") else ""
        return "tfhook_step_seconds" in text and {line.split("{")[0].split()[0] for line in text.splitlines() if not line.startswith("#")}

    def sent():
        return {m.name for one in Behind.taken["/v1/metrics"] for of in one.resource_metrics for scope in of.scope_metrics for m in scope.metrics
                if m.gauge.data_points}
    names = eventually(told)
    eventually(lambda: names <= sent())
    loop.wait()
finally:
    collector.kill()
print("ok: %d spans, %d gauges" % (len(want), len(names)))
