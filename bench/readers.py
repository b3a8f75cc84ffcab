#!/usr/bin/env python3
"""`tfhook report` beside what reads other tools' recordings, on the same work: babeltrace2 on what LTTng-UST recorded of a program,
HolisticTraceAnalysis on the run as `tfhook export --to kineto` writes it, XProf on the run as `tfhook export --to xplane` writes it.

usage: readers.py [CALLS [RUNS]]    1,000,000 calls for babeltrace2, a fifth of it, with device times, for the others, and 400 steps of
                                   eight ranks; each 5 times

What each does in its time: `tfhook report --json` reads every event, finds the steps, accounts for their time and predicts gains;
babeltrace2 merges the events of all threads in time order and either counts them or prints each as a line of text, no more;
HolisticTraceAnalysis loads the trace and breaks time down into idle, computing and other time of the device; XProf makes its overview
page: times of steps by kind of op. Every process is timed as a whole, start-up included, which is shown by itself; readers take turns.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import lttng
import rivals

build, src = rivals.build, rivals.src
CALLS, RUNS = ([int(a) for a in sys.argv[1:]] + [1_000_000, 5][len(sys.argv) - 1:])[:2]
TOOL = f"{build}/bin/tfhook"
HTA = "from hta.trace_analysis import TraceAnalysis"
BREAKDOWN = HTA + "; import sys; TraceAnalysis(trace_files={0: sys.argv[1]}).get_temporal_breakdown(visualize=False)"
XPROF = "from xprof.convert import raw_to_tool_data"
OVERVIEW = XPROF + "; import sys; assert raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], 'overview_page', {})[0]"


def run(argv, where):
    """Wall seconds, processor seconds and MiB of one run."""
    begin = time.monotonic()
    with open(os.devnull, "w", encoding="ascii") as null:
        child = subprocess.Popen(argv, stdout=null, stderr=null, cwd=where)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = 0
    if status:
        sys.exit(f"{' '.join(argv)[:200]}: wait status {status}")
    return time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def in_turns(title, readers, where):
    """`readers`: (what, command, what it reads)."""
    print(f"\n{title}\n{'':44} {'seconds':>22} {'processor s':>12} {'MiB':>6} {'input MiB':>10}")
    rows = [[] for _ in readers]
    for _ in range(RUNS):
        for row, (_, argv, _) in zip(rows, readers):
            row.append(run(argv, where))
    for row, (what, _, path) in zip(rows, readers):
        wall, cpu, memory = zip(*row)
        size = "%10.1f" % (rivals.size_of(path) / 2**20) if path else ""
        print(f"{what:44} {statistics.median(wall):8.3f} ({min(wall):.3f} .. {max(wall):.3f})".ljust(68)
              + f"{statistics.median(cpu):12.3f} {max(memory):6.0f} {size}", flush=True)


def beside_babeltrace(tmp):
    if not (rivals.compile_all(tmp) and lttng.available() and shutil.which("babeltrace2")):
        print("LTTng-UST or babeltrace2 is not installed: left out")
        return
    seconds, daemon = str(CALLS / 100_000), lttng.Daemon()
    try:
        daemon.begin(f"{tmp}/lttng", "calls:*")
        theirs = rivals.client(tmp, 100_000, {"LD_PRELOAD": f"{tmp}/liblttngcalls.so", "LTTNG_HOME": daemon.home}, seconds=seconds)
        lost = daemon.end()
    finally:
        daemon.close()
    ours = rivals.client(tmp, 100_000, {"LD_PRELOAD": f"{build}/lib/libtfhook.so", "TFHOOK_DIR": f"{tmp}/ours", "TFHOOK_CUPTI": "off"},
                         seconds=seconds)
    in_turns(f"{ours['calls']:,} launches, of LTTng-UST {theirs['calls']:,} with an event at begin and end" + (", some lost" if lost else ""),
             [("tfhook report", [TOOL, "report", "--json", f"{tmp}/ours/{os.listdir(f'{tmp}/ours')[0]}"], f"{tmp}/ours"),
              ("babeltrace2, events counted", ["babeltrace2", f"{tmp}/lttng", "--component=sink.utils.counter"], f"{tmp}/lttng"),
              ("babeltrace2, events as text", ["babeltrace2", f"{tmp}/lttng"], f"{tmp}/lttng")], tmp)


def beside_viewers(tmp):
    python = subprocess.run([f"{src}/scripts/python-env", "traces"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    out, launches = f"{tmp}/run", 200
    env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", SIM_LAUNCH_COST="1us", SIM_KERNEL_DEFAULT="2us")
    subprocess.run([TOOL, "run", "-q", "-o", out, "--", f"{build}/tests/jobs/client_loop", "--launches", str(launches), "--steps",
                    str(CALLS // 5 // launches), "--spin", "2"], env=env, check=True, stdout=subprocess.DEVNULL)
    kineto, xplane = f"{tmp}/kineto/run.json", f"{tmp}/xplane/host.xplane.pb"
    for form, path in (("kineto", kineto), ("xplane", xplane)):
        os.mkdir(os.path.dirname(path))
        subprocess.run([TOOL, "export", "--to", form, "-o", path, out], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    in_turns(f"{CALLS // 5:,} launches with device times",
             [("tfhook report", [TOOL, "report", "--json", out], out),
              ("tfhook report, of the same JSON as HTA", [TOOL, "report", "--json", kineto], os.path.dirname(kineto)),
              ("HolisticTraceAnalysis, temporal breakdown", [python, "-c", BREAKDOWN, kineto], os.path.dirname(kineto)),
              ("  of which start-up", [python, "-c", HTA], ""),
              ("tfhook report, of the same file as XProf", [TOOL, "report", "--json", xplane], os.path.dirname(xplane)),
              ("XProf, overview page", [python, "-c", OVERVIEW, xplane], os.path.dirname(xplane)),
              ("  of which start-up", [python, "-c", XPROF], "")], tmp)


def beside_many_ranks(tmp):
    """Eight ranks on two hosts (namespaces), one of them late, on the simulated GPU and NCCL."""
    python = subprocess.run([f"{src}/scripts/python-env", "traces"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    if subprocess.run(["unshare", "-u", "sh", "-c", "hostname other"], stderr=subprocess.DEVNULL).returncode:
        print("no right to make namespaces: many ranks are left out")
        return
    out, env = f"{tmp}/run", dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", TFHOOK_CUPTI_LIB=f"{build}/sim/libcupti.so.13")
    subprocess.run([TOOL, "run", "-q", "-o", out, "--", sys.executable, f"{src}/tests/ranks/launch.py", "torchrun", "2", "4", "120",
                    str(CALLS // 2500), "late=5:0:20"], env=env, cwd=tmp, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.mkdir(f"{tmp}/kineto")
    for rank in range(8):
        segments = [f"{out}/{name}" for name in os.listdir(out) if name.startswith(f"r{rank}.") and name.endswith(".tft")]
        subprocess.run([TOOL, "export", "--to", "kineto", "-o", f"{tmp}/kineto/{rank}.json", *segments], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    many = HTA + "; TraceAnalysis(trace_files={r: '%s/kineto/%%d.json' %% r for r in range(8)}).get_temporal_breakdown(visualize=False)" % tmp
    in_turns(f"eight ranks, {CALLS // 2500:,} steps",
             [("tfhook digest, of both hosts", ["sh", "-c", 'rm -f "$1"/*digest.tft; exec "$0" digest "$1"', TOOL, out], out),
              ("tfhook report --ranks", [TOOL, "report", "--ranks", "--json", out], ""),
              ("HolisticTraceAnalysis, temporal breakdown", [python, "-c", many], f"{tmp}/kineto")], tmp)


for part in (beside_babeltrace, beside_viewers, beside_many_ranks):
    with tempfile.TemporaryDirectory() as folder:
        part(folder)
