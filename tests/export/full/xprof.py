#!/usr/bin/env python3
"""XProf opens an exported run: its step times are those of the steps, and what it takes for computing, collectives and copies in a step is what
ran then. Run by `make check-export`, in a Python environment of its own.
timeout: 600"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402

PY = os.environ.get("TFH_PY", "")
if not PY:
    print("SKIP: needs the environment `traces`")
    sys.exit(77)
XPROF = """
import json, sys
from xprof.convert import raw_to_tool_data
data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], 'overview_page', {})
graph = next(t for t in json.loads(data) if any(c['id'] == 'stepnum' for c in t.get('cols', ())))
names = [c['id'] for c in graph['cols']]
print(json.dumps([dict(zip(names, (c['v'] for c in row['c']))) for row in graph['rows']]))
"""


def xprof(name, path):
    os.mkdir(runs.TMP + "/" + name)
    out = runs.export("xplane", path, runs.TMP + "/" + name + "/host.xplane.pb")
    done = subprocess.run([PY, "-c", XPROF, out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=runs.TMP)
    assert done.returncode == 0, done.stderr[-800:]
    rows = json.loads(done.stdout.splitlines()[-1])
    assert len(rows) >= len(runs.steps(path)) - 2  # it leaves out the first and the last one
    return rows


# 10 ms: kernels 3.6 to 5.7 ms and a memset of 10 us, a collective of 1 ms, copies of 100 and 50 us.
want = dict(deviceComputeTimeMs=2.11, deviceCollectivesTimeMs=1, infeedTimeMs=0.1, outfeedTimeMs=0.05)
for row in xprof("trace", runs.trace("trace.json", overlap=False)):
    for key, value in want.items():
        assert abs(row[key] - value) < 1e-6, (key, row)
    assert abs(sum(row[k] for k in row if k.endswith("TimeMs") and k != "stepTimeMs") - 10) < 1e-3, row
run = runs.record()
steps = {s["index"]: s["dur_s"] * 1e3 for s in runs.steps(run)}
for row in xprof("recorded", run):
    assert abs(row["deviceComputeTimeMs"] - 3.5) < 0.1, row
    times = [row[k] for k in row if k.endswith("TimeMs") and k != "stepTimeMs"]
    assert abs(sum(times) - steps[int(row["stepnum"])]) < 1e-3, (row, steps[int(row["stepnum"])])
print("ok")
