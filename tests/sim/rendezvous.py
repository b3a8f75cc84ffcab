#!/usr/bin/env python3
"""Kernels that wait for one another begin their common time when the last has started, in one process and across
processes, on both clocks; a rank that does not come leaves the others waiting, but they can be killed, and a time limit
ends the wait with an error."""
import json
import os
import signal
import subprocess
import sys
import time
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
program = os.path.join(build, "tests/sim/rendezvous")


def start(name, *args, **settings):
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), SIM_LAUNCH_COST="0ns",
               SIM_TRUTH=os.path.join(tmp, name), **settings)
    return subprocess.Popen([program, *map(str, args)], env=env, stdout=subprocess.PIPE, text=True)


def ends(name):
    """(start, end) of the kernels of both kinds in a log."""
    ops = [json.loads(line) for line in open(os.path.join(tmp, name))]
    ops = [o for o in ops if o["ev"] == "op"]
    pick = lambda kernel: sorted((o["start"], o["end"]) for o in ops if o["name"] == kernel)
    return pick("spin"), pick("rendezvous_all")


def processes(clock):
    ranks, rounds = 3, 4
    meet = os.path.join(tmp, "meet-" + clock)
    children = [start(f"{clock}-{r}", r, ranks, rounds, SIM_RENDEZVOUS=meet, SIM_TIME=clock) for r in range(ranks)]
    for child in children:
        out, _ = child.communicate(timeout=30)
        check(child.returncode == 0 and out == "result 0\n", f"{clock}: a rank ends: {out}")
    kernels = [ends(f"{clock}-{r}")[1] for r in range(ranks)]
    check(all(len(k) == rounds for k in kernels), clock + ": every round ran")
    for i in range(rounds):
        last = max(k[i][0] for k in kernels)
        check(all(k[i][1] == last + 2_000_000 for k in kernels), f"{clock}: round {i} ends 2 ms after the last start")
    if clock == "virtual":
        # All clocks begin alike; the slowest rank sets the pace: 3 ms of its own and 2 ms in common.
        first = kernels[2][0][0]
        check([k[0] - first for k in kernels[2]] == [i * 5_000_000 for i in range(rounds)], "the pace of virtual time")


def devices():
    child = start("devices", 0, 2, 3, 2, SIM_DEVICES="2", SIM_TIME="virtual")
    out, _ = child.communicate(timeout=30)
    spins, common = ends("devices")
    check(child.returncode == 0 and len(common) == 6, "two devices of one process: " + out)
    check(len({end for _, end in common}) == 3, "their kernels end together")


def alone():
    meet = os.path.join(tmp, "meet-alone")
    for clock in ("real", "virtual"):
        child = start("alone-" + clock, 0, 2, 1, SIM_RENDEZVOUS=meet + clock, SIM_TIME=clock)
        time.sleep(0.5)
        check(child.poll() is None, clock + ": without the other rank there is no end")
        child.send_signal(signal.SIGTERM)
        check(child.wait(timeout=5) == -signal.SIGTERM, clock + ": it can be killed")
        child = start("limit-" + clock, 0, 2, 1, SIM_RENDEZVOUS=meet + clock + "2", SIM_TIME=clock,
                      SIM_RENDEZVOUS_TIMEOUT="100ms")
        out, _ = child.communicate(timeout=30)
        check(out == "result 702\n", clock + ": the limit ends it with CUDA_ERROR_LAUNCH_TIMEOUT: " + out)


processes("real")
processes("virtual")
devices()
alone()
sys.exit(failed())
