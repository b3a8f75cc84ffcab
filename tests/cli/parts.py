#!/usr/bin/env python3
"""The named parts of `tfhook report` (--kernels, --transfers, --input, --where, --memory, --ranks, --machine) and --step N say in words what
--json says of the same recording, one or several of them; a part of which there is nothing says that, and a step that there is not ends
with the exit code of wrong usage."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TFH_SRC"], "tests/jobs"))
from looped import LOOP, SRC, TOOL, begin, start  # noqa: E402

JOB = r'''
import sys, time
sys.path.insert(0, sys.argv[1])
from device import Device
d = Device()

def think():
    x = 0
    for i in range(60000):
        x += i * i % 7
    return x

for i in range(400):
    think()
    d.up(1000000)
    d.train(3)
    d.down()
'''
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


def told(*args, code=0):
    done = subprocess.run([TOOL, "report", *args], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C", COLUMNS="80"))
    assert done.returncode == code, (args, done.returncode, done.stderr)
    assert "--json" in args or all(len(line) <= 80 for line in done.stdout.splitlines()) and done.stdout.isascii(), done.stdout
    return done.stdout if code == 0 else done.stderr


def near(text, value):
    """Whether "3.01 ms" is that many seconds, as far as its digits go."""
    number, unit = text.split()
    return abs(float(number) * UNITS[unit] - value) <= 0.006 * value + 1e-9


def kernels(text, report):
    rows = re.findall(r"^  (\S+) +([\d.,]+) +([\d.]+ \w+) +([\d.]+ \w+) +(\d+) %$", text, re.M)
    assert len(rows) == len(report["kernels"]) == 3, (rows, report["kernels"])
    for (name, calls, median, step, busy), k in zip(rows, report["kernels"]):
        assert name == k["name"] and near(step, k["s_per_step"]) and near(median, k["median_s"]), (name, step, median, k)
        assert abs(float(calls) - k["calls_per_step"]) < 0.06 and abs(int(busy) - 100 * k["share_of_busy"]) < 1, (calls, busy, k)


def transfers(text, report):
    for t in report["transfers"]:
        assert re.search(r"^  %s +%s +[\d.]+ " % (t["direction"].upper(), re.escape(t["fn"])), text, re.M), (t, text)
    assert len(re.findall(r"^  [HD]2[HD] ", text, re.M)) == len(report["transfers"]) == 2, text


def where(text, report):
    assert "think" in text and "samples)" in text, text
    line = re.search(r"^ +([\d.]+ \w+) +think  ", text, re.M)
    assert line, text
    for part in report["start"]:  # outside of the steps
        title = {"before": "before 1st call", "between": "between loops"}.get(part["part"], "start-up")
        assert not part["lines"] or "LINE WHERE THE MAIN THREAD WAS: " + title in text, (title, text)


def memory(text, report):
    assert "DEVICE MEMORY" in text and "at most" in text and report["memory"]["peak_bytes"] >= 8 << 20, (text, report["memory"])


def machine(text, report):
    assert len(report["machine"]) > 5
    for meter in [m for m in report["machine"][:8] if m["mean"] > 1]:  # those that stay at 0 are left out
        assert meter["name"] in text, (meter["name"], text)


def ranks(text, report):
    rows = re.findall(r"^ +(\d+) ", text, re.M)
    assert [int(r) for r in rows[:2]] == [0, 1] and len(report["ranks"]) == 2, text


def a_step(run):
    steps = [json.loads(line) for line in told("--steps", "--json", run).splitlines()]
    for step in steps[3], steps[len(steps) // 2], steps[-1]:
        text = told("--step", str(step["index"]), run)
        head = re.match(r"step (\d+) +([\d.]+ \w+), .* after the start +(\w+)", text)
        assert head and int(head[1]) == step["index"] and near(head[2], step["dur_s"]) and head[3] == step["segment"], (text, step)
        parts = re.findall(r"^  ([a-z ]+?) +([\d.]+ \w+) +\d+ % +[\d.]+ \w+ +\d+ %$", text, re.M)
        compute = [p[1] for p in parts if p[0] == "compute"]
        assert compute and near(compute[0], step["breakdown"]["compute"]), (text, step)
    assert "the steps are 0 to %d" % steps[-1]["index"] in told("--step", "4711", run, code=2)
    assert "there is no step" in told("--step", "x", run, code=2)


def main():
    begin()
    assert start("rec", sys.executable, "-c", JOB, SRC + "/tests/jobs").wait() == 0
    report = json.loads(told("--json", "rec"))
    for part, check in (("kernels", kernels), ("transfers", transfers), ("memory", memory), ("machine", machine), ("where", where)):
        if part == "where" and not report["places"]:
            print("nobody had time to look")
            continue
        check(told("--" + part, "rec"), report)
    assert told("--kernels", "--memory", "rec") == told("--kernels", "rec") + "\n" + told("--memory", "rec")
    assert told("--memory", "--kernels", "rec") == told("--kernels", "--memory", "rec")
    assert told("--input", "rec") == "no input pipeline was seen\n" and told("--ranks", "rec") == "there is one rank\n"
    a_step("rec")
    script = "for r in 0 1; do RANK=$r WORLD_SIZE=2 \"$0\" --steps 60 --h2d 1000 --spin 1000 & done; wait"
    assert start("two", "bash", "-c", script, LOOP).wait() == 0
    ranks(told("--ranks", "two"), json.loads(told("--json", "two")))


if __name__ == "__main__":
    main()
