#!/usr/bin/env python3
"""A real PyTorch job under torchrun that goes on with fewer ranks: of two hosts with three ranks each, that of rank 0 is lost, and the other
one starts its ranks again under new numbers. The report, from the recording and from the hosts' digests, tells the two starts apart, says
which rank died first, of what, when, and at which line, and judges the later start: its late rank leads with its cause and line.

Where the environment `torch` exists already.
timeout: 1800
"""
import os
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of, tool  # noqa: E402

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL, HERE, EACH, STEPS, DIES_AT = f"{BUILD}/bin/tfhook", f"{SRC}/tests/ranks", 3, 60, 20
PYTHON = os.path.join(os.environ.get("TFH_VENVS") or f"{SRC}/build/venv", "torch/bin/python")
if os.environ.get("TFH_SAN") or not os.path.exists(PYTHON):
    print("no environment `torch`: make check-frameworks makes it")
    sys.exit(77)
if subprocess.run(["unshare", "-u", "true"], stderr=subprocess.DEVNULL).returncode:
    print("no right to name hosts: skipped")
    sys.exit(77)


def line_of(mark):
    with open(f"{HERE}/elastic_job.py") as f:
        return next(n for n, text in enumerate(f, 1) if mark in text)


def check_starts(what, starts, code):
    check([(g["ranks"], g["seen"], g["judged"]) for g in starts] == [(2 * EACH, 2 * EACH, False), (EACH, EACH, True)], what, starts)
    first = starts[0]["failed"]
    check(starts[-1]["failed"] is None and first and (first["rank"], first["end"], first[code]) == (0, "signal", 9), what, starts)
    check(first["file"].endswith("elastic_job.py") and first["line"] == line_of("# dies here"), what, first)
    check(starts[0]["begin_s"] < first["at_s"] <= starts[0]["end_s"] < starts[1]["begin_s"] < starts[1]["end_s"], what, starts)
    return first["host"]


subprocess.run([TOOL, "run", "-q", "-o", f"{TMP}/run", "--", PYTHON, f"{HERE}/elastic_launch.py", str(EACH), f"{HERE}/elastic_job.py", str(STEPS),
                str(2 * EACH), str(DIES_AT), "300"], check=True, stderr=subprocess.DEVNULL)
said = report_of(f"{TMP}/run")
lost = check_starts("report", said["generations"], "end_code")
stays = {"node0": "node1", "node1": "node0"}[lost]
check(said["world"] == {"ranks": EACH, "seen": EACH, "hosts": 1}, "world", said["world"])
check([(r["rank"], r["host"], r["straggler"]) for r in said["ranks"]] == [(n, stays, n == 1) for n in range(EACH)], "ranks", said["ranks"])
check(all(STEPS - 10 < r["all_steps"] <= STEPS for r in said["ranks"]), "steps", said["ranks"])
place = said["verdict"]["place"] or {}
check((said["verdict"]["cause"], place.get("line")) == ("host.sleep", line_of("# late here")), "verdict", said["verdict"])
text = " ".join(tool("report", f"{TMP}/run").split())
check(f"start 2 of 2; rank 0 of {2 * EACH} ({lost}) died of signal 9 in start 1" in text, "text", text)
text = " ".join(tool("report", "--all", f"{TMP}/run").split())
check(f"1: {2 * EACH} of {2 * EACH} ranks" in text and f"2: {EACH} of {EACH} ranks" in text, "text", text)

# The lake's GPU seconds: six until the second start, then three. With digests, of both hosts.
sys.path.insert(0, f"{SRC}/lib/python")
os.environ["PATH"] = f"{BUILD}/bin:" + os.environ["PATH"]
from tfhook.collect import gpu_seconds, of_hosts  # noqa: E402

held, wall, again = gpu_seconds(said, EACH), said["run"]["wall_s"], said["generations"][1]["begin_s"]
check(abs(held - (2 * EACH * again + EACH * (wall - again))) < 1e-6 and EACH * wall < held < 2 * EACH * wall, "GPU seconds", held, wall, again)
tool("digest", f"{TMP}/run")
check(abs(gpu_seconds(of_hosts(f"{TMP}/run"), EACH) / held - 1) < 0.05, "GPU seconds by digests", held)
check(sorted(n for n in os.listdir(f"{TMP}/run") if n.endswith("digest.tft")) == ["node0.digest.tft", "node1.digest.tft"], "digests")
said = report_of(f"{TMP}/run", "--ranks")
check(check_starts("digests", said["generations"], "code") == lost, "digests", said["generations"])
check(abs(said["generations"][0]["steps"] - DIES_AT) < 5, "steps", said["generations"])
check((said["world"], said["missing"], said["hangs"], said["digests_of_others"]) == (EACH, [], [], 0), "digests", said)
check([(r["rank"], r["host"]) for r in said["ranks"]] == [(n, stays) for n in range(EACH)], "ranks", said["ranks"])
slow = [(f["what"], f["rank"], f["cause"]) for f in said["findings"] if f["what"] == "slow-rank" and f["cause"] != "host.cpu-contention"]
check(slow == [("slow-rank", 1, "host.sleep")], "late", said["findings"])
text = " ".join(tool("report", f"{TMP}/run").split())
check(f"start 1 of 2, {2 * EACH} ranks" in text and f"first rank 0 ({lost}) died of signal 9" in text and "lose_host" in text, "text", text)
sys.exit(failed())
