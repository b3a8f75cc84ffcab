#!/usr/bin/env python3
"""`tfhook ctl gpu on` and `off` a hundred times on a running job, from another process: the job goes on, and whatever part
device times are said to be known for, every op of the driver's log that was handed over and ran in it is there, once, with its own
call. (CUPTI does not record an op whose call came before it was switched on.) A window, a rest and a window again give parts with
the rest between them."""
import subprocess
import sys
import time

from devicetimes import build, check, failed, read, read_truth, shift_of, start

LOOP = [f"{build}/tests/jobs/client_loop", "--spin", "300", "--launches", "2", "--sync", "ctx", "--mark", "1"]


def ctl(run, *words):
    """What it complains of, or nothing."""
    done = subprocess.run([f"{build}/bin/tfhook", "ctl", run, *words], stderr=subprocess.PIPE, text=True)
    return done.stderr if done.returncode else ""


def whole(name, run, truth):
    """No op that was handed over in a part is missing in it, none is there twice; returns the parts."""
    ops, info = read(run)
    known, calls = read_truth(truth)
    numbers = [op["correlation"] for op in ops]
    check(len(set(numbers)) == len(numbers), name, "ops twice", len(numbers) - len(set(numbers)))
    if not check(any(op["call"] >= 0 for op in ops), name, "no op has its call", len(ops), info):
        return info["spans"]
    shift, have = shift_of(ops, calls), set(numbers)
    hidden = [t for t in known if t["n"] not in have and
              any(a <= t["start"] + shift and t["end"] + shift <= b and a <= calls[t["n"]]["t0"] + shift
                  for a, b, _ in info["spans"])]
    check(not hidden, name, len(hidden), "ops are missing in parts", hidden[:2], info)
    wrong = [op for op in ops if op["call"] >= 0 and op["correlation"] in calls and
             not op["issue0"] - 1e6 <= shift + calls[op["correlation"]]["t0"] <= op["issue1"] + 1e6]
    check(not wrong, name, "another's call", wrong[:2])
    ends = [t for a, b, _ in info["spans"] for t in (a, b)]
    check(ends == sorted(ends), name, "parts overlap", info["spans"])
    return info["spans"]


def listens(run):
    for _ in range(300):
        if not ctl(run, "gpu", "on"):
            break
        time.sleep(0.05)


def hammered(lib, **env):
    name = "hammered-" + lib[-2:]
    run, truth, job = start(name, *LOOP, "--steps", "100000", lib=lib, TFHOOK_CUPTI="off", **env)
    listens(run)
    for i in range(100):
        for word in "on", "off":
            complaint = ctl(run, "gpu", word)
            if not check(not complaint, name, "gpu", word, i, complaint, job.poll()):
                return
            if word == "on" and i % 10 == 0:
                time.sleep(0.3)
    check(not ctl(run, "gpu", "on"), name, "gpu on")
    time.sleep(1)
    check(job.poll() is None, name, "the job ended by itself with", job.returncode)
    job.terminate()
    job.wait()
    check(whole(name, run, truth), name, "no part")


def windows():
    run, truth, job = start("windows", *LOOP, "--steps", "2500", TFHOOK_CUPTI="off")
    listens(run)
    check(not ctl(run, "gpu", "off"), "windows: off")
    for _ in range(2):
        time.sleep(0.6)
        check(not ctl(run, "gpu", "on"), "windows: on")
        time.sleep(0.5)
        check(not ctl(run, "gpu", "off"), "windows: off")
    check(job.wait() == 0, "windows ended with", job.returncode)
    spans = whole("windows", run, truth)
    check(1 <= len(spans) <= 3, "windows", spans)


for generation in ("libcupti.so.13", "libcupti.so.12"):
    hammered(generation)
windows()
sys.exit(failed())
