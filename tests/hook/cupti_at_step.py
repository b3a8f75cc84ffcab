#!/usr/bin/env python3
"""`tfhook ctl gpu on|off --at-step N` on four ranks at different speeds: all of them have device times of exactly the same steps,
by the report. Where the step has passed, they begin at once and the command says so; a process that does not answer is
named, and loses the order; a later order replaces an earlier one."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from devicetimes import build, check, failed, read, tmp

RANKS = 4


def environment(run, cupti="off", **more):
    return {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_RUN": run, "TFHOOK_CUPTI": cupti,
            "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13", "LD_PRELOAD": f"{build}/lib/libtfhook.so", **more}


def job(name, steps, cupti="off"):
    run = f"{tmp}/{name}"
    return run, [subprocess.Popen(
        [f"{build}/tests/jobs/client_loop", "--steps", str(steps), "--spin", "4000", "--sleep", str(7 + rank), "--sync",
         "ctx", "--mark", "1"], env=environment(run, cupti, RANK=str(rank), WORLD_SIZE=str(RANKS)), stdout=subprocess.DEVNULL) for rank in range(RANKS)]


def ctl(run, *words, status=0, told=f"{RANKS} processes"):
    """Until all ranks have the command: they start one after the other."""
    for _ in range(100):
        done = subprocess.run([f"{build}/bin/tfhook", "ctl", run, "gpu", *words], stderr=subprocess.PIPE, text=True)
        if told in done.stderr:
            break
        time.sleep(0.05)
    check(done.returncode == status, *words, "ended with", done.returncode, done.stderr)
    return done.stderr


def ended(jobs):
    for process in jobs:
        check(process.wait(timeout=120) == 0, "the job ended with", process.returncode)


def files(run):
    return sorted(f"{run}/{f}" for f in os.listdir(run) if f.endswith(".0.tft"))


def report(*words):
    return subprocess.run([f"{build}/bin/tfhook", "report", *words], stdout=subprocess.PIPE, text=True).stdout


def timed(file):
    """How many steps have device times; the first and the last step of each span, from 1."""
    count = re.search(r"device times of ([\d,]+) of all", " ".join(report(file).split()))  # wherever its lines break
    steps = [json.loads(line) for line in report("--steps", "--json", file).splitlines()]
    steps = sorted((s["start_s"], s["index"] + 1) for s in steps if "index" in s)
    _, info = read(file)
    spans = [[max((n for start, n in steps if start * 1e9 <= t), default=0) for t in (span[0] + 1e5, span[1] - 1e5)]
             for span in info["spans"]]
    return int(count[1].replace(",", "")) if count else 0, spans


# In time: the report has steps 250 to 269, and what was known of the two before is not counted.
run, jobs = job("on", 350)
said = ctl(run, "on", "--at-step", "250", "--steps", "20")
check(len(re.findall(r"process \d+ \(rank [0-3]\): device times from step 250 to 269", said)) == RANKS, said)
ended(jobs)
found = [timed(f) for f in files(run)]
check(len(found) == RANKS and all(f == (20, [[248, 269]]) for f in found), "on", found)

# On all the time, and off from step 250 on.
run, jobs = job("off", 300, cupti="on")
said = ctl(run, "off", "--at-step", "250")
check(said.count("no device times from step 250") == RANKS, said)
ended(jobs)
found = [timed(f)[1][-1][1] for f in files(run)]
check(found == [249] * RANKS, "off", found)

# The steps of an iterator are its get-next calls.
run = f"{tmp}/iterator"
process = subprocess.Popen([f"{build}/tests/truth/train", "350", "get:3:2 k:8 sync"], stdout=subprocess.DEVNULL, env=environment(run))
said = ctl(run, "on", "--at-step", "300", "--steps", "10", told="1 process")
check("device times from step 300 to 309" in said, said)
ended([process])
found = timed(files(run)[0])
check(found == (10, [[298, 309]]), "iterator", found)

# Passed; then one process is stopped; then an order is taken back by `gpu off`, and one replaced by a nearer one.
run, jobs = job("late", 1200)
ctl(run, "off")
time.sleep(0.5)
said = ctl(run, "on", "--at-step", "1", "--steps", "5")
check(len(re.findall(r"step 1 has passed or is too near: device times from step \d+ to \d+", said)) == RANKS, said)
time.sleep(0.5)
jobs[1].send_signal(signal.SIGSTOP)
began = time.monotonic()
said = ctl(run, "on", "--at-step", "1", "--steps", "5", status=1)
check(time.monotonic() - began < 20, "the answers took", time.monotonic() - began)
check(len(re.findall("no answer after 4 s", said)) == 1 and f"process {jobs[1].pid} (rank 1): no answer" in said, said)
jobs[1].send_signal(signal.SIGCONT)
ctl(run, "on", "--at-step", "1100", "--steps", "5")
ctl(run, "off")
ctl(run, "on", "--at-step", "1150")
ctl(run, "on", "--at-step", "1140", "--steps", "10")
ended(jobs)
found = [timed(f)[1] for f in files(run)]
check([len(spans) for spans in found] == [3, 2, 3, 3], "late", found)
check(all(spans[-1] == [1138, 1149] for spans in found), "late", found)
sys.exit(failed())
