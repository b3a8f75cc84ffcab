#!/usr/bin/env python3
"""A call that is left without a return (longjmp, cancellation, the end of a thread, a stack that is switched or never run
again) costs its own record and nothing else: the job goes as without tfhook, every other call is recorded, outermost calls as
such, in the order of their ends, and nothing is in flight that is not."""
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter

build, place = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
if os.environ.get("TFH_SAN"):
    sys.exit(77)
from compare import CALL, records_of  # noqa: E402

OPEN = 4
status = 0
os.mkdir(f"{place}/driver")
shutil.copy(f"{build}/tests/hook/libleft.so", f"{place}/driver/libcuda.so.1")
COPY, SYNC, QUERY, DESTROY = "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cuStreamQuery", "cuStreamDestroy_v2"
# What must be recorded, and the exit status.
ways = {
    "cancel": ({COPY: 2, DESTROY: 1}, 7),
    "cancel_async": ({COPY: 2, DESTROY: 1}, 7),
    "thread_exit": ({COPY: 2, DESTROY: 1}, 7),
    "longjmp": ({COPY: 101}, 7),
    "longjmp_nested": ({COPY: 101}, 7),
    "siglongjmp": ({COPY: 101}, 7),
    "storm": ({QUERY: 700}, 7),
    "killed": ({COPY: 4}, -signal.SIGKILL),
    "coroutine": ({COPY: 9, QUERY: 24, SYNC: 4}, 7),
    "hop": ({COPY: 3, QUERY: 8, SYNC: 1}, 7),
    "hop_ended": ({COPY: 3, QUERY: 8, SYNC: 1}, 7),
    "forgotten": ({COPY: 21, QUERY: 20}, 7),
    "main_exit": ({COPY: 1, QUERY: 5}, 0),
}


def wrong(*words):
    global status
    print(*words)
    status = 1


for way, (expected, code) in ways.items():
    run = f"{place}/{way}/tfhook-run"
    env = dict(os.environ, LD_LIBRARY_PATH=f"{place}/driver", LD_PRELOAD=f"{build}/lib/libtfhook.so", TFHOOK_RUN=run)
    try:
        done = subprocess.run([f"{build}/tests/hook/left", way], env=env, capture_output=True, text=True, timeout=30)
    except subprocess.TimeoutExpired:
        wrong(way, "did not end")
        continue
    if done.returncode != code or done.stdout or done.stderr:
        wrong(way, "status", done.returncode, done.stdout, done.stderr)
    if code < 0:
        subprocess.run([f"{build}/tests/record/tally", "-s", run], check=True, capture_output=True)
    records = records_of(f"{place}/{way}")
    calls = [r for r in records if r["kind"] == CALL]
    got = Counter(r["fn"] for r in calls)
    # How many copies a storm leaves in the middle is chance.
    for fn in (SYNC, QUERY, DESTROY) if way == "storm" else (COPY, SYNC, QUERY, DESTROY):
        if got[fn] != expected.get(fn, 0):
            wrong(way, fn, got[fn], "calls, expected", expected.get(fn, 0))
    deep = [r for r in calls if r["depth"]]
    # Inside a coroutine's call the thread may have been held for being inside, too.
    if way not in ("coroutine", "hop", "hop_ended") and deep:
        wrong(way, len(deep), "calls inside another, first", deep[0])
    for r in calls:
        if r["fn"] == SYNC and r["t1"] - r["t0"] < (20e6 if way == "coroutine" else 0):
            wrong(way, "a call that was suspended for 20 ms took", r["t1"] - r["t0"])
    if way == "killed" and any(r["t1"] - r["t0"] > 240e6 for r in records if r["kind"] == OPEN):
        wrong(way, "in flight at the end")
    last = {}
    for r in records:
        if r["tid"] and r["t1"] < last.get(r["tid"], 0):
            wrong(way, "out of order", r)
        last[r["tid"]] = r["t1"]
sys.exit(status)
