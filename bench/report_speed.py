#!/usr/bin/env python3
"""Speed and memory of a full `tfhook report` (bar: 30 M events/s on 2 cores, 256 MB) on launch-heavy recordings, with
host calls alone and with device times."""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

STEPS, LAUNCHES, RUNS = 2000, 2000, 5


def measure(tool, job, where, env, cupti, steps):
    out = os.path.join(where, cupti)
    subprocess.run([tool, "run", "-q", "-o", out, "--", job, "--launches", str(LAUNCHES), "--steps", str(steps), "--spin", "0"],
                   env=dict(env, TFHOOK_CUPTI=cupti), check=True, stdout=subprocess.DEVNULL)
    info = subprocess.run([tool, "report", "--json", out], capture_output=True, text=True, check=True).stdout
    events = int(info.split('"events":')[1].split(",")[0])
    size = sum(os.path.getsize(os.path.join(out, f)) for f in os.listdir(out) if f.endswith(".tft"))
    times, cpu, memory = [], [], 0
    for _ in range(RUNS):
        begin = time.monotonic()
        child = subprocess.Popen([tool, "report", "--json", out], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        times.append(time.monotonic() - begin)
        if status:
            sys.exit(f"report ended with {status}")
        cpu.append(used.ru_utime + used.ru_stime)
        memory = max(memory, used.ru_maxrss)
    print(f"device times {cupti}: {events} calls, {size / events:.2f} bytes each on disk")
    print(f"report: {events / statistics.median(times) / 1e6:.1f} M calls/s (median of {RUNS}, {events / max(times) / 1e6:.1f} to "
          f"{events / min(times) / 1e6:.1f}), {statistics.median(cpu) / events * 1e9:.0f} ns of processor time each, "
          f"at most {memory / 1024:.0f} MiB")


def main():
    build = os.environ["TFH_BUILD"]
    tool, job = os.path.join(build, "bin", "tfhook"), os.path.join(build, "tests", "jobs", "client_loop")
    if not os.path.exists(job):
        sys.exit(f"no {job}: make tests")
    where = tempfile.mkdtemp(prefix="tfhook-bench-")
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), SIM_LAUNCH_COST="0ns", SIM_KERNEL_DEFAULT="100ns")
    try:
        measure(tool, job, where, env, "off", STEPS)
        measure(tool, job, where, env, "on", STEPS)
    finally:
        shutil.rmtree(where)


if __name__ == "__main__":
    main()
