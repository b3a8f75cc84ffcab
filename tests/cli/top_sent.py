#!/usr/bin/env python3
"""The metrics of `tfhook top` for other tools: what it sends to a collector is OTLP that opentelemetry-proto reads, and says what the file of
metrics says; headers come from the environment; a collector that is gone is named once and harms nothing. What it answers on loopback, a real
Prometheus takes; who has no token, another Host or asks for something else gets nothing.
timeout: 100
"""
import http.client
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.environ["TFH_SRC"], "tests/jobs"))
from looped import SRC, TOOL, begin, end, eventually, is_seen, loop, with_packages  # noqa: E402


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Collector(http.server.BaseHTTPRequestHandler):
    taken = []

    def do_POST(self):
        Collector.taken.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args):
        pass


def sent():
    from google.protobuf import json_format
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d" % server.server_port
    env = dict(os.environ, OTEL_EXPORTER_OTLP_HEADERS="x-key=secret,broken,x-two=a=b")
    done = subprocess.run([TOOL, "top", "--once", "--otlp", url, "--openmetrics", "m.prom", "rec"], env=env, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and not done.stderr, done
    (path, headers, body), = Collector.taken
    assert path == "/v1/metrics" and headers["Content-Type"] == "application/json", (path, headers)
    assert headers["x-key"] == "secret" and headers["x-two"] == "a=b", headers
    request = json_format.Parse(body, ExportMetricsServiceRequest())
    resource, = request.resource_metrics
    assert {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"] == "tfhook"
    told = {(m.name, tuple((a.key, a.value.string_value) for a in p.attributes)): p.as_double
            for scope in resource.scope_metrics for m in scope.metrics for p in m.gauge.data_points}
    with open("m.prom") as f:
        text = {(s.name, tuple(s.labels.items())): s.value for family in parse(f.read()) for s in family.samples}
    moving = {"tfhook_since_step_seconds", "tfhook_call_in_flight_seconds"}
    assert set(told) == set(text) and len(told) > 15, set(told) ^ set(text)
    assert all(told[k] == text[k] or k[0] in moving for k in told), (told, text)
    times = {p.time_unix_nano for scope in resource.scope_metrics for m in scope.metrics for p in m.gauge.data_points}
    assert len(times) == 1 and abs(times.pop() / 1e9 - time.time()) < 60
    subprocess.run([TOOL, "top", "--once", "--otlp", url + "/mine", "rec"], stdout=subprocess.DEVNULL, check=True, timeout=30)
    assert Collector.taken[1][0] == "/mine", Collector.taken[1][0]
    server.shutdown()


def gone():
    """The view goes on; the complaint comes once."""
    view = subprocess.Popen([TOOL, "top", "--interval", "0.2", "--otlp", "http://127.0.0.1:%d" % free_port(), "rec"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    seen = [view.stdout.readline() for _ in range(8)]
    view.terminate()
    _, err = view.communicate(timeout=20)
    assert all(seen) and len(err.splitlines()) == 1 and "127.0.0.1" in err, (seen, err)
    for args, code, word in ((("--otlp", "ftp://x"), 2, "not the address"), (("--otlp", "http://"), 2, "not the address"), (("--listen", "9"), 2, "each other"),
                             (("--listen", "x", "--token", "t"), 2, "a port"), (("--listen", "70000", "--token", "t"), 2, "a port")):
        said = subprocess.run([TOOL, "top", "--once", *args, "rec"], capture_output=True, text=True, timeout=20)
        assert said.returncode == code and word in said.stderr, (args, said)


def ask(port, token, host=None, path="/metrics", method="GET"):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.putrequest(method, path, skip_host=True)
    link.putheader("Host", host or "127.0.0.1:%d" % port)
    if token:
        link.putheader("Authorization", token)
    link.endheaders()
    answer = link.getresponse()
    return answer.status, answer.read().decode()


def answered():
    port = free_port()
    for text, mode, word in (("short\n", 0o600, "no token"), ("a" * 40 + "\n", 0o644, "chmod 600")):
        with open("bad", "w") as f:
            f.write(text)
        os.chmod("bad", mode)
        said = subprocess.run([TOOL, "top", "--once", "--listen", str(port), "--token", "bad", "rec"], capture_output=True, text=True, timeout=20)
        assert said.returncode in (2, 3) and word in said.stderr, said
    view = subprocess.Popen([TOOL, "top", "--interval", "0.3", "--listen", str(port), "--token", "token", "rec"], stdout=subprocess.DEVNULL)
    eventually(lambda: os.path.exists("token") and os.path.getsize("token") > 32)
    assert os.stat("token").st_mode & 0o777 == 0o600
    with open("token") as f:
        token = f.read().strip()
    good = "Bearer " + token
    eventually(lambda: "tfhook_step_seconds" in ask(port, good)[1])
    status, text = ask(port, good)
    assert status == 200 and text.endswith("# EOF\n"), text
    assert ask(port, good, host="localhost:%d" % port)[0] == 200
    for wrong in (None, "Bearer " + token[:-1], "Bearer " + token + "a", "Basic " + token, "Bearer ", token):
        assert ask(port, wrong) == (401, ""), wrong
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:%d.evil.example" % port, "evil.example:%d" % port):
        assert ask(port, good, host=host) == (403, ""), host
    assert ask(port, good, path="/")[0] == 404 and ask(port, good, method="POST")[0] == 405
    for junk in (b"", b"\0" * 100, b"GET " + b"a" * 20000, b"GET /metrics HTTP/1.1\r\n"):  # slow and senseless clients
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(junk)
    assert ask(port, good)[0] == 200
    second = subprocess.run([TOOL, "top", "--once", "--listen", str(port), "--token", "token", "rec"], capture_output=True, text=True, timeout=20)
    assert second.returncode == 3 and "in use" in second.stderr, second
    prometheus(port)
    view.terminate()
    assert view.wait(timeout=20) == 143
    with socket.socket() as s:
        assert s.connect_ex(("127.0.0.1", port)), "it still listens"


def prometheus(port):
    """A real one scrapes it."""
    if not shutil.which("prometheus"):
        print("without prometheus")
        return
    own = free_port()
    with open("prometheus.yml", "w") as f:
        f.write("scrape_configs:\n- job_name: tfhook\n  scrape_interval: 1s\n  static_configs:\n  - targets: ['127.0.0.1:%d']\n"
                "  authorization:\n    credentials_file: token\n" % port)
    server = subprocess.Popen(["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:%d" % own],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def value():
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/query?query=tfhook_job_running" % own, timeout=5) as f:
                found = json.load(f)["data"]["result"]
        except OSError:
            return False
        return found and found[0]["value"][1] == "1"

    try:
        eventually(value)
    finally:
        server.terminate()
        server.wait()


def main():
    if subprocess.run([SRC + "/scripts/bootstrap", "sending"]).returncode:
        sys.exit(77)
    begin()
    job = loop("rec", 1000000)
    try:
        eventually(lambda: is_seen("rec"))
        sent()
        gone()
        answered()
    finally:
        end(job)


if __name__ == "__main__":
    with_packages("metrics", main)
