#!/usr/bin/env python3
"""HolisticTraceAnalysis and XProf read the same real traces in this test: idle, computing and other time, and XProf's step time, are
within 1 % of what the import yields. Run by `make check-import`, in a Python environment of their own."""
import json
import os
import subprocess
import sys

BUILD, TMP, PY, TRACES = (os.environ.get(k, "") for k in ("TFH_BUILD", "TFH_TMP", "TFH_PY", "TFH_TRACES"))
if not os.path.isdir(TRACES or "/nowhere") or not PY:
    print("SKIP: needs the folder of real traces (TFHOOK_TRACES) and the environment `traces`")
    sys.exit(77)

HTA = """
import json, sys
from hta.trace_analysis import TraceAnalysis
t = TraceAnalysis(trace_files={0: sys.argv[1]}).get_temporal_breakdown(visualize=False)
print(json.dumps({k: float(t[k][0]) for k in ("idle_time(us)", "compute_time(us)", "non_compute_time(us)", "kernel_time(us)")}))
"""


def dump(path, *flags):
    return json.loads(subprocess.check_output([BUILD + "/tests/import/dump", *flags, path]))["processes"][0]


def near(got, want, what):
    print("%-40s %12.1f, theirs %12.1f" % (what, got, want))
    assert abs(got - want) <= 0.01 * want, what


for name in ("resnet50_workers0", "resnet50_workers4", "ddp8_rank3"):
    path = os.path.join(TRACES, name + ".pt.trace.json.gz")
    theirs = json.loads(subprocess.run([PY, "-c", HTA, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                                       text=True, cwd=TMP).stdout.splitlines()[-1])
    ours = dump(path, "-s")
    near(ours["span_ns"] / 1e3, theirs["kernel_time(us)"], name + " span us")
    near((ours["span_ns"] - ours["busy_ns"]) / 1e3, theirs["idle_time(us)"], "  idle us")
    near(ours["compute_ns"] / 1e3, theirs["compute_time(us)"], "  compute us")
    near((ours["busy_ns"] - ours["compute_ns"]) / 1e3, theirs["non_compute_time(us)"], "  neither us")

os.mkdir(TMP + "/log")  # XProf writes its caches beside the trace
os.system("cp '%s/tf_gpu_worker.xplane.pb' '%s/log/'" % (TRACES, TMP))
out = subprocess.run([os.path.join(os.path.dirname(PY), "xprof"), "get_overview", TMP + "/log"], stdout=subprocess.PIPE,
                     stderr=subprocess.DEVNULL, check=True, text=True).stdout
step = json.JSONDecoder().raw_decode(out[out.index("{"):])[0]["performance_summary"]["steptime_ms_average"]
marks = [e for e in dump(TMP + "/log/tf_gpu_worker.xplane.pb")["events"] if e["kind"] == 5]
near((marks[0]["t1"] - marks[0]["t0"]) / 1e6, float(step), "XProf's step, ms")
