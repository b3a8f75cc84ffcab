#!/usr/bin/env python3
"""A full `tfhook report` on real traces of PyTorch's and TensorFlow's profilers, beside HolisticTraceAnalysis (its temporal breakdown
alone) and XProf (its overview) on the same files, in turns. Each process is timed as a whole, and its start-up apart. Needs the traces
(TFHOOK_TRACES) and the Python environment that `make check-import` makes. babeltrace2 reads neither format."""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 3
TRACES = os.environ.get("TFHOOK_TRACES", "")
PYTHON = os.path.join(os.environ.get("TFH_VENVS") or os.path.join(os.environ.get("TFH_SRC", "."), "build", "venv"), "traces", "bin", "python")
HTA = ("import sys; from hta.trace_analysis import TraceAnalysis; "
       "TraceAnalysis(trace_files={0: sys.argv[1]}).get_temporal_breakdown(visualize=False)")


def run(argv, where):
    """Wall seconds and KiB of one run."""
    begin = time.monotonic()
    with open(os.devnull, "w", encoding="ascii") as null:
        child = subprocess.Popen(argv, stdout=null, stderr=null, cwd=where)
        _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{argv[0]} ended with {status}")
    return time.monotonic() - begin, used.ru_maxrss


def line(what, runs):
    took = [t for t, _ in runs]
    print(f"  {what}: {statistics.median(took):.3f} s ({min(took):.3f} to {max(took):.3f}), {max(m for _, m in runs) / 1024:.0f} MiB")


def beside(name, ours, theirs, start):
    """Times both in turns; theirs is (its name, its command)."""
    where = tempfile.mkdtemp(prefix="tfhook-bench-")
    try:
        runs = [(run(ours, where), run(theirs[1], where), run(start, where)) for _ in range(RUNS)]
    finally:
        shutil.rmtree(where)
    print(name)
    line("tfhook report", [r[0] for r in runs])
    line(theirs[0], [r[1] for r in runs])
    line("  of which start-up", [r[2] for r in runs])


def main():
    tool = os.path.join(os.environ["TFH_BUILD"], "bin", "tfhook")
    if not os.path.isdir(TRACES or "/nowhere") or not os.path.exists(PYTHON):
        print("left out: needs TFHOOK_TRACES, and the environment that `make check-import` makes")
        return
    for name in ("resnet50_workers0", "resnet50_workers4", "ddp8_rank3"):
        path = os.path.join(TRACES, name + ".pt.trace.json.gz")
        beside(name, [tool, "report", "--json", path], ("HolisticTraceAnalysis", [PYTHON, "-c", HTA, path]),
               [PYTHON, "-c", "from hta.trace_analysis import TraceAnalysis"])
    log = tempfile.mkdtemp(prefix="tfhook-bench-")  # XProf writes its caches beside the trace
    try:
        path = shutil.copy(os.path.join(TRACES, "tf_gpu_worker.xplane.pb"), log)
        xprof = os.path.join(os.path.dirname(PYTHON), "xprof")
        beside("tf_gpu_worker", [tool, "report", "--json", path], ("XProf", [xprof, "get_overview", log]), [xprof, "--help"])
    finally:
        shutil.rmtree(log)


if __name__ == "__main__":
    main()
