#!/usr/bin/env python3
"""The truth log of the simulated driver agrees with what the client did: calls, bytes, directions, streams; every
operation lies on its engine alone, after what it waits for, and takes the set time; a killed process keeps its log."""
import json
import os
import signal
import subprocess
import sys
import time
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
loop = os.path.join(build, "tests/sim/loop")


def run(name, *args, **settings):
    log = os.path.join(tmp, name)
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), SIM_TRUTH=log, **settings)
    subprocess.run([loop, *args], env=env, check=True, stdout=subprocess.DEVNULL, timeout=60)
    return read(log)


def read(log):
    events = [json.loads(line) for line in open(log)]
    check(events[0]["ev"] == "open" and events[0]["version"] == 1, "the log begins with its version")
    return [e for e in events if e["ev"] == "call"], [e for e in events if e["ev"] == "op"]


def named(calls, fn):
    return [c for c in calls if c["fn"] == fn]


def alone(ops, what):
    ops = sorted(ops, key=lambda o: o["start"])
    check(all(a["end"] <= b["start"] for a, b in zip(ops, ops[1:])), what + " overlap on one engine")


def ordinary():
    calls, ops = run("ordinary", "--steps", "10", "--h2d", "500000", "--d2h", "1000", "--launches", "3", "--spin", "200",
                     "--stream", "own", "--sync", "stream", SIM_H2D_GBPS="1", SIM_PAGEABLE_FACTOR="0.5",
                     SIM_COPY_LATENCY="10us")
    h2d, d2h = named(calls, "cuMemcpyHtoDAsync_v2"), named(calls, "cuMemcpyDtoHAsync_v2")
    launches = named(calls, "cuLaunchKernel")
    check((len(h2d), len(d2h), len(launches)) == (10, 10, 30), "number of calls")
    check(all(c["bytes"] == 500000 and c["dir"] == "H2D" and c["host"] == "pageable" for c in h2d), "copies up")
    check(all(c["bytes"] == 1000 and c["dir"] == "D2H" and c["host"] == "pageable" for c in d2h), "copies down")
    check(len({c["stream"] for c in h2d + d2h + launches}) == 1, "one stream")
    check(all(c["rc"] == 0 and c["t0"] <= c["t1"] for c in calls), "calls succeed and end after their start")
    check(len({c["n"] for c in calls}) == len(calls), "call numbers are unique")
    kernels = [o for o in ops if o["kind"] == "kernel"]
    copies = [o for o in ops if o["kind"] == "copy"]
    check(len(kernels) == 30 and len(copies) == 20, "number of operations")
    check({o["n"] for o in kernels} == {c["n"] for c in launches}, "kernels name their calls")
    check(all(o["end"] - o["start"] >= 200000 and o["name"] == "spin" for o in kernels), "kernels take the set time")
    for o in copies:
        want = 10000 + (o["bytes"] / 0.5 if o["dir"] == "H2D" else o["bytes"] / 2)
        check(o["pageable"] and o["end"] - o["start"] >= int(want), "copies take the set time")
    alone(kernels, "kernels")
    alone(ops, "operations of one stream")
    by_call = {o["n"]: o for o in ops}
    for c in h2d + d2h:
        check(by_call[c["n"]]["end"] <= c["t1"], "a pageable copy ends before its call")
        check(by_call[c["n"]]["start"] >= c["t0"], "no operation starts before its call")


def pinned():
    calls, ops = run("pinned", "--steps", "5", "--h2d", "4000000", "--mem", "pinned", "--spin", "1000", "--sync", "event",
                     SIM_TIME="virtual")
    by_call = {o["n"]: o for o in ops}
    h2d = named(calls, "cuMemcpyHtoDAsync_v2")
    check(all(c["host"] == "pinned" and c["t1"] < by_call[c["n"]]["end"] for c in h2d), "pinned copies return early")
    check(len(named(calls, "cuEventSynchronize")) == 5, "event waits")


def rules():
    _, ops = run("rules", "--steps", "2", "--spin", "1", SIM_KERNEL="other* 1s; sp?n@1,1 3ms")
    check(all(o["end"] - o["start"] >= 3000000 for o in ops if o["kind"] == "kernel"), "a rule sets the time")
    _, ops = run("default", "--steps", "2", "--launches", "1", "--h2d", "0", SIM_KERNEL="*@2 9s", SIM_KERNEL_DEFAULT="1s")
    check(all(o["end"] - o["start"] < 900000000 for o in ops), "a rule for another grid does not")


def killed():
    log = os.path.join(tmp, "killed")
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), SIM_TRUTH=log)
    child = subprocess.Popen([loop, "--steps", "100000"], env=env)
    for _ in range(200):
        time.sleep(0.1)
        if os.path.exists(log) and open(log).read().count('"cuLaunchKernel"') > 10:
            break
    child.send_signal(signal.SIGKILL)
    child.wait()
    calls, _ = read(log)
    check(len(named(calls, "cuLaunchKernel")) > 5, "a killed process leaves its log")


ordinary()
pinned()
rules()
killed()
sys.exit(failed())
