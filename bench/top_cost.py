#!/usr/bin/env python3
"""What `tfhook top` takes of a processor in a minute, beside jobs that make few and many calls.

usage: top_cost.py [SECONDS]    60 for each job; it begins when the job has run for 20 s
"""
import os
import resource
import subprocess
import sys
import tempfile
import time

build = os.environ["TFH_BUILD"]
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 60
TOOL, LOOP = build + "/bin/tfhook", build + "/tests/jobs/client_loop"
JOBS = {"a thousand calls a second": ["--launches", "4", "--spin", "2000", "--sleep", "4"],
        "as many as there can be": ["--launches", "300", "--spin", "0", "--sleep", "2"]}


def used():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def watch(out):
    """(part of a processor, refreshes)"""
    before, since = used(), time.monotonic()
    with tempfile.TemporaryFile("w+") as said:  # a pipe that nobody reads would stop it
        top = subprocess.Popen([TOOL, "top", "--json", out], stdout=said)
        time.sleep(SECONDS)
        top.terminate()
        top.wait()
        said.seek(0)
        lines = len(said.readlines())
    return (used() - before) / (time.monotonic() - since), lines


def main():
    if not os.path.exists(LOOP):
        sys.exit("%s is not built: make tests" % LOOP)
    env = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", SIM_LAUNCH_COST="0ns")
    for name, args in JOBS.items():
        with tempfile.TemporaryDirectory() as tmp:
            out = tmp + "/rec"
            job = subprocess.Popen([TOOL, "run", "-q", "-o", out, "--", LOOP, "--steps", "100000000", *args], env=env,
                                   stdout=subprocess.DEVNULL)
            time.sleep(20)
            share, lines = watch(out)
            print("%-28s %5.2f %% of a processor over %.0f s, %d refreshes" % (name, 100 * share, SECONDS, lines))
            with open("/proc/%d/task/%d/children" % (job.pid, job.pid)) as f:
                for pid in f.read().split():
                    os.kill(int(pid), 9)
            job.wait()


main()
