#!/usr/bin/env python3
"""Exporting a trace with a stream for every op, and one with very many threads, takes no more memory for that: perfetto's and xplane's tracks are
bounded in number or size. 40,000 streams and 20,000 threads stay below 400 MB, of which the trace itself takes most."""
import json
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

events = []
for i in range(40000):
    t = runs.BASE + i * 100
    if i % 2000 == 0:
        events.append(dict(ph="X", cat="user_annotation", name="ProfilerStep#%d" % (i // 2000), pid=1, tid=1, ts=t, dur=200000))
    events.append(dict(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=1, tid=1 + i % 20000, ts=t, dur=5, args={"correlation": i + 1}))
    events.append(dict(ph="X", cat="kernel", name="k", pid=0, tid=i, ts=t + 10, dur=50, args={"correlation": i + 1, "stream": i + 1, "device": 0}))
with open(runs.TMP + "/many.json", "w") as f:
    json.dump({"traceEvents": events}, f)
for form in ("perfetto", "xplane", "kineto", "pprof", "otlp"):
    done = subprocess.run([runs.BUILD + "/bin/tfhook", "export", "--to", form, "-o", runs.TMP + "/out." + form, runs.TMP + "/many.json"],
                          stderr=subprocess.PIPE)
    assert done.returncode == 0, (form, done.stderr)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
assert os.environ.get("TFH_SAN") or most < 400, most
print("ok", most)
