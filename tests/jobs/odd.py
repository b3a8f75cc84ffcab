#!/usr/bin/env python3
"""Odd jobs (odd_jobs.py) end under `tfhook run` as they end alone, and their reports are in order: steps around a
pause are found, a crash is reported, and no report has a line over 80 columns or a number that is none."""
# serial
# timeout: 300
import json
import os
import re
import subprocess
import sys

BUILD, TMP, HERE = os.environ["TFH_BUILD"], os.environ["TFH_TMP"], os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(BUILD, "bin", "tfhook")
STATUS = {"serve": 0, "gan": 0, "accumulate": 0, "pause": 0, "tiny": 0, "crash": -11, "oom": 1, "cpuonly": 0}
failed = []


def run(*command, **more):
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"), PAUSE="1", **more)
    return subprocess.run(command, env=env, cwd=TMP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)


def check(what, right):
    if not right:
        failed.append(what)
        print("FAILED: " + what)


def look(name):
    folder = os.path.join(TMP, name)
    done = run(TOOL, "run", "-o", folder, "--", sys.executable, os.path.join(HERE, "odd_jobs.py"), name, "--steps", "40")
    check("%s: status %d: %s" % (name, done.returncode, done.stderr[-500:]), done.returncode == STATUS[name])
    if name == "cpuonly":
        # Where the machine is crowded it takes long enough to be judged by samples, which then are all that is there.
        check("cpuonly: leaves a directory", os.path.exists(folder) == ("see; by samples of its main thread" in done.stderr))
        return
    text, told = run(TOOL, "report", folder), run(TOOL, "report", "--json", folder)
    for line in (text.stdout + done.stderr).splitlines():
        check("%s: %s" % (name, line), len(line) <= 80 and not re.search(r"\b(nan|inf)\b|(?<!\+)-\d+(\.\d+)? (ms|us|s|%)", line))
    report = json.loads(told.stdout)
    steps = report["steps"]["count"] + report["steps"]["warmup"] + sum(
        s["count"] for s in report["segments"] if s["kind"] not in ("startup", "warmup", "train", "eval"))
    done = {"pause": 40, "serve": 40, "tiny": 3}.get(name)
    if done:
        check("%s: %d steps, %d done" % (name, steps, done), abs(steps - done) <= done // 20)
    if name == "crash":
        check("crash: " + text.stdout[:300], "ENDED BY SIGNAL 11" in text.stdout)
    if name == "oom":
        check("oom: " + text.stdout[:600], "for device memory failed" in " ".join(text.stdout.split()))


if os.environ.get("TFH_SAN") or not os.path.exists(os.path.join(BUILD, "sim", "libcuda.so.1")):
    print("needs the recorder and the simulated GPU, without sanitizers")
    sys.exit(77)
for job in STATUS:
    look(job)
sys.exit(bool(failed))
