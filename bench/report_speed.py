#!/usr/bin/env python3
"""Speed and memory of a full `tfhook report` on launch-heavy recordings, with host calls alone and with device times, beside
decoding the same chunks on one core (bars: 1.5 and 6 times as long, 256 MB), and of each kind of report on a small run (bar: 50 ms).
Both are measured in turns, at real-time priority where that is permitted, so that other work on the machine matters less."""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

STEPS, LAUNCHES, RUNS = 2000, 2000, 9
FEW = 2  # steps of the small run, which decoding says nothing about


def may_hurry():
    """Whether a process of ours may have real-time priority."""
    try:
        subprocess.run(["true"], preexec_fn=hurry, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def hurry():
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def run(argv, before):
    """Wall seconds, processor seconds and KiB of one run."""
    begin = time.monotonic()
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, preexec_fn=before)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{argv[0]} ended with {status}")
    return time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss


def measure(build, where, env, before, cupti, steps):
    tool, job, decode = (os.path.join(build, p) for p in ("bin/tfhook", "tests/jobs/client_loop", "bench/decode"))
    out = os.path.join(where, f"{cupti}.{steps}")
    subprocess.run([tool, "run", "-q", "-o", out, "--", job, "--launches", str(LAUNCHES), "--steps", str(steps), "--spin", "0"],
                   env=dict(env, TFHOOK_CUPTI=cupti), check=True, stdout=subprocess.DEVNULL)
    info = subprocess.run([tool, "report", "--json", out], capture_output=True, text=True, check=True).stdout
    events = int(info.split('"events":')[1].split(",")[0])
    files = [os.path.join(out, f) for f in os.listdir(out) if f.endswith(".tft")]
    size = sum(os.path.getsize(f) for f in files)
    times, cpu, memory, alone = [], [], 0, []
    for _ in range(RUNS):
        counted = subprocess.run([decode, *files], capture_output=True, text=True, check=True, preexec_fn=before).stdout.split()
        alone.append(float(counted[2]))
        took, used, most = run([tool, "report", "--json", out], before)
        times.append(took)
        cpu.append(used)
        memory = max(memory, most)
    # Where a full ring drops calls, device ops and CUPTI's records of these calls are still written.
    records = events + int(counted[1])
    dropped = int(info.split('"dropped":')[1].split(",")[0])
    print(f"device times {cupti}: {events} calls, {size / events:.2f} bytes each on disk; {dropped / (events + dropped):.1%} of the calls "
          f"were dropped; {size / records:.2f} bytes for each call, device op and record of CUPTI's")
    print(f"report: {statistics.median(times) * 1e3:.0f} ms ({min(times) * 1e3:.0f} to {max(times) * 1e3:.0f}), median of {RUNS}; "
          f"{events / statistics.median(times) / 1e6:.1f} M calls/s, "
          f"{statistics.median(cpu) / events * 1e9:.0f} ns of processor time each, at most {memory / 1024:.0f} MiB")
    if steps == FEW:
        kinds_of_report(tool, out, before, where)
        return
    ratio = [t / a for t, a in zip(times, alone)]
    print(f"decoding alone: {statistics.median(alone) * 1e3:.0f} ms; the report takes {statistics.median(ratio):.2f} times as long "
          f"({min(ratio):.2f} to {max(ratio):.2f})")


def kinds_of_report(tool, run_dir, before, where):
    page = os.path.join(where, "page.html")
    for name, flags in (("first screen", []), ("--all", ["--all"]), ("--json", ["--json"]), ("--html", ["--html", page])):
        times = []
        for _ in range(RUNS):
            times.append(run([tool, "report", *flags, run_dir], before)[0])
            if os.path.exists(page):
                os.remove(page)
        print(f"    {name:12} {statistics.median(times) * 1e3:5.1f} ms ({min(times) * 1e3:.1f} to {max(times) * 1e3:.1f})")


def main():
    build = os.environ["TFH_BUILD"]
    if not os.path.exists(os.path.join(build, "tests", "jobs", "client_loop")):
        sys.exit("no tests/jobs/client_loop: make tests")
    where = tempfile.mkdtemp(prefix="tfhook-bench-")
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), SIM_LAUNCH_COST="0ns", SIM_KERNEL_DEFAULT="100ns")
    before = hurry if may_hurry() else None
    print("at real-time priority" if before else "at usual priority: real-time priority is not permitted")
    try:
        for cupti, steps in (("off", 600), ("off", STEPS), ("off", 10000), ("on", STEPS), ("off", FEW), ("on", FEW)):
            measure(build, where, env, before, cupti, steps)
    finally:
        shutil.rmtree(where)


if __name__ == "__main__":
    main()
