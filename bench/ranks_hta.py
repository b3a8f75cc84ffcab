#!/usr/bin/env python3
"""Traces of many ranks, read by HolisticTraceAnalysis and by `tfhook report`. Eight ranks on the simulated GPU and NCCL, one of them late,
are recorded and written as PyTorch's traces; copies of these, each with a rank of its own, stand for more ranks. HTA loads all traces
of a folder and splits the device's time of each rank; tfhook reads the same files, finds the steps, judges them and names the late ranks.
Memory is that of all processes of a reader together (PSS), sampled every 50 ms. HTA is not started with more ranks than fit, by what it
took for the number before.

usage: ranks_hta.py [STEPS [RANKS...]]    200 steps; 8, 64, 256, 1024 ranks (minutes)
"""
import os
import subprocess
import sys
import tempfile
import time

BUILD, SRC = os.environ["TFH_BUILD"], os.environ["TFH_SRC"]
TOOL = BUILD + "/bin/tfhook"
STEPS, *RANKS = [int(a) for a in sys.argv[1:]] or [200]
RANKS = RANKS or [8, 64, 256, 1024]
FIRST = 8
HTA = ("import sys; from hta.trace_analysis import TraceAnalysis; "
       "TraceAnalysis(trace_files={r: f'{sys.argv[1]}/{r}.json' for r in range(int(sys.argv[2]))}).get_temporal_breakdown(visualize=False)")


def traces(tmp):
    """The text of each of the first ranks' traces."""
    env = dict(os.environ, LD_LIBRARY_PATH=f"{BUILD}/sim", TFHOOK_CUPTI_LIB=f"{BUILD}/sim/libcupti.so.13")
    subprocess.run([TOOL, "run", "-q", "-o", f"{tmp}/run", "--", sys.executable, f"{SRC}/tests/ranks/launch.py", "torchrun", "1", str(FIRST), "600",
                    str(STEPS), "late=5:0:20"], env=env, cwd=tmp, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([TOOL, "export", "--to", "kineto", "-o", f"{tmp}/first", f"{tmp}/run"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    texts = {}
    for name in os.listdir(f"{tmp}/first"):
        with open(f"{tmp}/first/{name}", encoding="utf-8") as f:
            text = f.read()
        rank = next(r for r in range(FIRST) if place(r, FIRST) in text)
        texts[rank] = text
    assert len(texts) == FIRST, sorted(texts)
    return texts


def place(rank, ranks):
    return '"distributedInfo": {"rank": %d, "world_size": %d}' % (rank, ranks)


def copies(texts, ranks, folder):
    os.mkdir(folder)
    for rank in range(ranks):
        with open(f"{folder}/{rank}.json", "w", encoding="utf-8") as f:
            f.write(texts[rank % FIRST].replace(place(rank % FIRST, FIRST), place(rank, ranks)))


def session_memory(session):
    """PSS in MiB of the processes of a session."""
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(pid)) == session:
                with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
                    total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except OSError:
            pass  # it has ended
    return total / 1024


def read(what, argv, ranks):
    """Prints a row; returns MiB."""
    begin, before, most = time.monotonic(), os.times(), 0
    with tempfile.TemporaryFile("w+") as log:
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True) as child:
            while child.poll() is None:
                most = max(most, session_memory(child.pid))
                time.sleep(0.05)
        log.seek(0)
        error = log.read()
    took, after = time.monotonic() - begin, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    failed = f"   failed: {error.strip().splitlines()[-1][:60]}" if child.returncode else ""
    print(f"{what:40} {ranks:6} {took:9.2f} {used:12.2f} {most:8.0f}{failed}", flush=True)
    return most


def free_mib():
    with open("/proc/meminfo", encoding="ascii") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("MemAvailable"))


python = subprocess.run([f"{SRC}/scripts/python-env", "traces"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
with tempfile.TemporaryDirectory() as tmp:
    first, last, theirs = traces(tmp), 0, 0.0
    print(f"{STEPS} steps, traces of {sum(map(len, first.values())) / FIRST / 1e6:.2f} MB a rank\n"
          f"{'':40} {'ranks':>6} {'seconds':>9} {'processor s':>12} {'MiB':>8}")
    for count in RANKS:
        copies(first, count, f"{tmp}/{count}")
        read("tfhook report, all of the judgement", [TOOL, "report", "--json", f"{tmp}/{count}"], count)
        if last and theirs * count / last > free_mib():
            print(f"HolisticTraceAnalysis: {count} ranks would need {theirs * count / last / 1024:.0f} GiB, by those of {last}")
            break
        theirs, last = read("HolisticTraceAnalysis, temporal breakdown", [python, "-c", HTA, f"{tmp}/{count}", str(count)], count), count
