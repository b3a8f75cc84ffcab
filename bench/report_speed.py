#!/usr/bin/env python3
"""Speed and memory of a full `tfhook report` (bar: 30 M events/s on 2 cores, 256 MB) on a launch-heavy recording."""
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

STEPS, LAUNCHES, RUNS = 2000, 2000, 5


def main():
    build = os.environ["TFH_BUILD"]
    tool, job = os.path.join(build, "bin", "tfhook"), os.path.join(build, "tests", "jobs", "client_loop")
    if not os.path.exists(job):
        sys.exit(f"no {job}: make tests")
    where = tempfile.mkdtemp(prefix="tfhook-bench-")
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), SIM_LAUNCH_COST="0ns", SIM_KERNEL_DEFAULT="100ns")
    try:
        out = os.path.join(where, "run")
        subprocess.run([tool, "run", "-q", "-o", out, "--", job, "--launches", str(LAUNCHES), "--steps", str(STEPS),
                        "--spin", "0"], env=env, check=True, stdout=subprocess.DEVNULL)
        info = subprocess.run([tool, "report", "--json", out], capture_output=True, text=True, check=True).stdout
        events = int(info.split('"events":')[1].split(",")[0])
        size = sum(os.path.getsize(os.path.join(out, f)) for f in os.listdir(out) if f.endswith(".tft"))
        times = []
        for _ in range(RUNS):
            begin = time.monotonic()
            subprocess.run([tool, "report", "--json", out], check=True, stdout=subprocess.DEVNULL)
            times.append(time.monotonic() - begin)
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"{events} events, {size / events:.2f} bytes each on disk")
        print(f"report: {events / statistics.median(times) / 1e6:.1f} M events/s (median of {RUNS}, "
              f"{events / max(times) / 1e6:.1f} to {events / min(times) / 1e6:.1f}), "
              f"largest child process {memory / 1024:.0f} MiB")
    finally:
        shutil.rmtree(where)


if __name__ == "__main__":
    main()
