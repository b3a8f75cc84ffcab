#!/usr/bin/env python3
"""A job ends as it does without tfhook, with device times and without, in whatever way it leaves: same status, same output. Its
threads that go on launching while one of them exits do not fail more often than they do without tfhook. A handler that
exits in the middle of a call does not wait. A profiler inside the job has all its records, and none of its functions is
called on our thread."""
import os
import subprocess
import sys
import time

from devicetimes import build, check, failed, tmp

LEAVING, INJECT = f"{build}/tests/hook/leaving", f"{build}/tests/hook/inject"
WAYS = ("return", "thread", "atexit", "signal", "dlclose", "fork", "vfork", "spawn", "daemon", "_exit", "quick_exit", "abort",
        "term", "exec")
count = 0


def end(cupti, *command):
    """Status and output; `cupti` None: without tfhook."""
    global count
    env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim"}
    if cupti:
        count += 1
        env.update(LD_PRELOAD=f"{build}/lib/libtfhook.so", TFHOOK_RUN=f"{tmp}/{count}", TFHOOK_CUPTI=cupti,
                   TFHOOK_CUPTI_LIB=f"{build}/sim/libcupti.so.13")
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return done.returncode, done.stdout, done.stderr


def ways():
    for how in WAYS:
        plain = end(None, LEAVING, how)
        for cupti in ("off", "on"):
            for _ in range(2):
                ours = end(cupti, LEAVING, how)
                check(ours == plain, how, cupti, ours, "and not", plain)


def threads():
    """The job itself may fail: its launches between the driver's exit handler and its end do."""
    plain = sum(end(None, LEAVING, "threads")[0] != 8 for _ in range(12))
    for cupti in ("off", "on"):
        ours = sum(end(cupti, LEAVING, "threads")[0] != 8 for _ in range(12))
        check(ours <= plain + 2, "threads", cupti, ours, "of 12 failed, without tfhook", plain)


def handlers():
    slow = 0
    for _ in range(12):
        begin = time.monotonic()
        status, _, _ = end("on", INJECT, "100000000", "signal")
        slow += time.monotonic() - begin > 4
        check(status == 0, "signal", status)
    check(slow <= 1, "exit in a signal handler took long in", slow, "of 12")


def profiler():
    plain = end(None, LEAVING, "profiler")
    check(plain[1].startswith(b"300 of 300 kernels, 0 calls"), "profiler", plain)
    for share in ("tee", "off"):
        os.environ["TFHOOK_CUPTI_SHARE"] = share
        ours = end("on", LEAVING, "profiler")
        check(ours == plain, "profiler", share, ours, "and not", plain)


for what in (ways, threads, handlers, profiler):
    what()
sys.exit(failed())
