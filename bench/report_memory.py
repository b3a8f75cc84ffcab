#!/usr/bin/env python3
"""Memory and speed of `tfhook report` on runs of weeks (bar: 256 MiB at 10^9 events): report_memory.py [STEPS [LAUNCHES [CLOCK]]].
With no arguments 2 * 10^7 and 2 * 10^8 events; `report_memory.py 10000000 97` are 10^9 (2.5 GB of disk for the recording, 3 GB
more for the time of the report), `report_memory.py 100000000 7` are 10^9 events in 10^8 steps (20 GB)."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["TFH_BUILD"]
TOOL, MAKE = os.path.join(BUILD, "bin", "tfhook"), os.path.join(BUILD, "tests", "analyze", "long_run")


def measure(steps, launches, clock):
    where = tempfile.mkdtemp(prefix="tfhook-bench-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    try:
        run = os.path.join(where, "run")
        subprocess.run([MAKE, run, str(steps), str(launches), clock], check=True)
        size = sum(os.path.getsize(os.path.join(run, f)) for f in os.listdir(run))
        begin = time.monotonic()
        child = subprocess.Popen([TOOL, "report", "--json", run], stdout=subprocess.PIPE, text=True)
        events = int(child.stdout.read().split('"events":')[1].split(",")[0])
        _, status, used = os.wait4(child.pid, 0)
        took = time.monotonic() - begin
        if status:
            sys.exit(f"report ended with {status}")
    finally:
        shutil.rmtree(where)
    cpu = used.ru_utime + used.ru_stime
    print(f"{events:.3g} events, {steps:.3g} steps by {clock}, {size / events:.2f} bytes each: {used.ru_maxrss / 1024:.0f} MiB, "
          f"{events / took / 1e6:.1f} M events/s, {cpu / events * 1e9:.0f} ns of processor time each", flush=True)


def main():
    if not os.path.exists(MAKE):
        sys.exit(f"no {MAKE}: make tests")
    args = sys.argv[1:]
    if args:
        measure(int(args[0]), int(args[1]) if len(args) > 1 else 7, args[2] if len(args) > 2 else "iterator")
        return
    for steps in 2000000, 20000000:
        measure(steps, 7, "iterator")


if __name__ == "__main__":
    main()
