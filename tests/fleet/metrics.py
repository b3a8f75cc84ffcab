#!/usr/bin/env python3
"""docs/metrics: a real Prometheus loads the rules, scrapes a running job's `tfhook top --listen`, and then has a value of every
recording rule and of every query of the dashboard; no alert fires, and each does in the case it is for. Every field of the dashboard
is one of Grafana's own types. Rules and dashboard name no metric that `tfhook top` lacks."""
# timeout: 300
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.environ["TFH_SRC"], "tests/jobs"))
sys.path.insert(0, os.path.join(os.environ["TFH_SRC"], "tests/cli"))
from looped import SRC, TOOL, begin, end, eventually, is_seen, loop, with_packages  # noqa: E402
from top_sent import free_port  # noqa: E402

RULES, BOARD = SRC + "/docs/metrics/tfhook.rules.yml", SRC + "/docs/metrics/grafana.json"


def checked():
    if shutil.which("promtool"):
        shutil.copy(RULES, ".")
        shutil.copy(SRC + "/tests/fleet/alerts.yml", ".")
        for command in ("check", "tfhook.rules.yml"), ("test", "alerts.yml"):
            done = subprocess.run(["promtool", command[0], "rules", command[1]], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr


def typed(board):
    """What is lost when Grafana's types read and write it is no field of theirs."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import dashboard

    def lost(a, b, path):
        if isinstance(a, dict):
            assert isinstance(b, dict), path
            for key in a:
                assert key in b, "%s/%s is no field" % (path, key)
                lost(a[key], b[key], path + "/" + key)
        elif isinstance(a, list):
            assert isinstance(b, list) and len(a) == len(b), path
            for i, pair in enumerate(zip(a, b)):
                lost(*pair, "%s/%d" % (path, i))
        else:
            assert a == b, (path, a, b)
    lost(board, json.loads(JSONEncoder(sort_keys=True).encode(dashboard.Dashboard.from_json(board))), "")
    places = [panel["gridPos"] for panel in board["panels"]]
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(cells) == len(set(cells)) and all(x < 24 for x, _ in cells), "panels overlap"


def asked(port, query):
    url = "http://127.0.0.1:%d/api/v1/query?%s" % (port, urllib.parse.urlencode({"query": query}))
    try:
        with urllib.request.urlopen(url, timeout=20) as f:
            return json.load(f)["data"]["result"]
    except urllib.error.HTTPError as error:
        if error.code == 503:  # it listens before it answers
            return []
        sys.exit("FAILED: %s: %s" % (query, error.read()))
    except OSError:
        return []


def queries(board):
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$instance", ".*").replace("$__rate_interval", "10s")


def scraped(board):
    port, own = free_port(), free_port()
    view = subprocess.Popen([TOOL, "top", "--interval", "0.5", "--listen", str(port), "--token", "token", "rec"], stdout=subprocess.DEVNULL)
    with open("prometheus.yml", "w") as f:
        f.write("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s]\nscrape_configs:\n- job_name: tfhook\n"
                "  static_configs:\n  - targets: ['127.0.0.1:%d']\n  authorization:\n    credentials_file: token\n" % (RULES, port))
    eventually(lambda: os.path.exists("token") and os.path.getsize("token") > 32)
    server = subprocess.Popen(["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:%d" % own],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with open(RULES) as f:
            recorded = re.findall(r"record: (\S+)", f.read())
        assert len(recorded) >= 6, recorded
        for query in (*recorded, *queries(board)):
            eventually(lambda: asked(own, query), 90)
        assert not asked(own, 'ALERTS{alertstate="firing"}'), "an alert fires"
        assert asked(own, "tfhook:jobs_running:count")[0]["value"][1] == "1"
        waiting = sum(float(row["value"][1]) for row in asked(own, "part:tfhook_gpus_waiting:count"))
        assert 0 < waiting < 1.01, waiting  # one job on one GPU
    finally:
        for process in (server, view):
            process.terminate()
            process.wait()


def main():
    begin()
    with open(BOARD) as f:
        board = json.load(f)
    typed(board)
    with open(RULES) as f:
        text = f.read() + json.dumps(board)
    with open(SRC + "/lib/top/gauges.c") as f:
        known = f.read()
    names = set(re.findall(r"(?<!:)\b(tfhook_[a-z0-9_]+)\b(?!:)", re.sub(r"\b\w+:\w+:\w+\b", "", text)))
    assert len(names) >= 7 and not [name for name in names if '"%s"' % name not in known], names
    checked()
    if not shutil.which("prometheus"):
        if not os.environ.get("TFH_FLEET_FULL") or subprocess.run([SRC + "/scripts/bootstrap", "prometheus"]).returncode:
            print("no prometheus, which make check-fleet installs")
            return 77
        checked()
    job = loop("rec", 1000000)
    try:
        eventually(lambda: is_seen("rec"))
        scraped(board)
    finally:
        end(job)
    return 0


if __name__ == "__main__":
    with_packages("grafana", main)
