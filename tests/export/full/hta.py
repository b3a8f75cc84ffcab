#!/usr/bin/env python3
"""HolisticTraceAnalysis reads an exported recording: its idle, computing and other time are, within 1 %, those of the run. On the export of a real
trace it says what it says on the trace, within a millionth. Of eight ranks, its search for stragglers names the pair whose one rank is late, as
tfhook does, once the kernels have the names that it knows; without, it fails (its issue 360). Run by `make check-export`, in a Python environment of its own.
timeout: 600"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402

PY, TRACES = os.environ.get("TFH_PY", ""), os.environ.get("TFH_TRACES", "")
if not PY:
    print("SKIP: needs the environment `traces`")
    sys.exit(77)
HTA = """
import json, sys
from hta.trace_analysis import TraceAnalysis
t = TraceAnalysis(trace_files={0: sys.argv[1]}).get_temporal_breakdown(visualize=False)
print(json.dumps({k: float(t[k][0]) for k in ("idle_time(us)", "compute_time(us)", "non_compute_time(us)", "kernel_time(us)")}))
"""
# The lines of docs/ranks.md.
STRAGGLERS = """
import json, sys
from hta.trace_analysis import TraceAnalysis
t = TraceAnalysis(trace_dir=sys.argv[1])
try:
    t.get_potential_stragglers()
    failed = ""
except ValueError as e:
    failed = str(e)
names = t.t.symbol_table
names.sym_table[:] = [name.replace("ncclDevKernel", "ncclKernel") for name in names.sym_table]
names.sym_index = {name: i for i, name in enumerate(names.sym_table)}
print(json.dumps({"failed": failed, "two": t.get_potential_stragglers(num_candidates=2)}))
"""


def hta(path, script=HTA):
    done = subprocess.run([PY, "-c", script, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=runs.TMP)
    assert done.returncode == 0, done.stderr[-800:]
    return json.loads(done.stdout.splitlines()[-1])


def near(got, want, part, what):
    print("%-30s %12.1f, theirs %12.1f" % (what, want, got))
    assert abs(got - want) <= part * want, what


run = runs.record("run", "--steps", "100")
out = runs.export("kineto", run, runs.TMP + "/run.json")
ours = json.loads(subprocess.check_output([runs.BUILD + "/tests/import/dump", "-s", out]))["processes"][0]
theirs = hta(out)
near(theirs["kernel_time(us)"], ours["span_ns"] / 1e3, 0.01, "span us")
near(theirs["compute_time(us)"], ours["compute_ns"] / 1e3, 0.01, "compute us")
near(theirs["idle_time(us)"], (ours["span_ns"] - ours["busy_ns"]) / 1e3, 0.01, "idle us")
near(theirs["compute_time(us)"], runs.report(run)["steps"]["count"] * 5 * 700, 0.05, "5 kernels of 700 us a step")
for name in os.listdir(TRACES) if os.path.isdir(TRACES or "/nowhere") else ():
    if name.endswith(".json.gz"):
        path = os.path.join(TRACES, name)
        before, after = hta(path), hta(runs.export("kineto", path, runs.TMP + "/" + name + ".json"))
        for key, value in before.items():
            near(after[key], value, 1e-6, name[:16] + " " + key)

# Ranks 4 and 5 exchange with each other, then all do. A link slow enough that no kernel is shorter than HTA looks at.
job = [sys.executable, runs.SRC + "/tests/ranks/launch.py", "torchrun", "1", "8", "120", "80", "late=5:0:20"]
many = runs.TMP + "/many"
subprocess.run([runs.BUILD + "/bin/tfhook", "run", "-q", "-o", many, *job], env={**runs.ENV, "SIM_NCCL_GBPS": "0.01"}, cwd=runs.TMP, check=True,
               stdout=subprocess.DEVNULL)
ours = sorted(runs.report(many)["ranks"], key=lambda r: r["late_s"])
assert ours[-1]["rank"] == 5 and ours[-1]["late_s"] > 0.01, ours
theirs = hta(runs.export("kineto", many, runs.TMP + "/kineto"), STRAGGLERS)
assert "empty sequence" in theirs["failed"] and sorted(theirs["two"]) == [4, 5], theirs
print("ok")
