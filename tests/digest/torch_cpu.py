#!/usr/bin/env python3
"""What must hold: of a PyTorch job on the CPU, part of whose computing only samples see (`compute.cpu`), a digest has the parts of the
steps that the recording has, and `diff` has no time that is less than nothing. Where the build of PyTorch uses no GPU, both say so.

timeout: 1200
"""
import json
import os
import shutil
import subprocess
import sys

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL = os.path.join(BUILD, "bin", "tfhook")
PYTHON = os.path.join(os.environ.get("TFH_VENVS") or os.path.join(SRC, "build", "venv"), "torch", "bin", "python")
JOB = """import torch
model = torch.nn.Linear(700, 700)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(80):
    optimizer.zero_grad()
    model(torch.ones(700, 700)).sum().backward()
    optimizer.step()
"""

if os.environ.get("TFH_SAN") or not os.path.exists(PYTHON):
    print("no environment `torch`: make check-frameworks makes it")
    sys.exit(77)


def tfhook(*args):
    return subprocess.run([TOOL, *args], capture_output=True, text=True, check=True).stdout


run, kept = os.path.join(TMP, "run"), os.path.join(TMP, "kept")
tfhook("run", "-q", "-o", run, "--", PYTHON, "-c", JOB)
recorded = [json.loads(line) for line in tfhook("report", "--steps", "--json", run).splitlines()]
causes = {c["cause"]: c["s_per_step"] for c in json.loads(tfhook("report", "--json", run))["causes"]}
tfhook("digest", run)
os.mkdir(kept)
for name in ("digest.tft", "run.json", "end.json"):
    shutil.copy(os.path.join(run, name), kept)
restored = [json.loads(line) for line in tfhook("report", "--steps", "--json", kept).splitlines()]
print(len(recorded), "steps,", causes)
assert causes.get("compute.cpu", 0) > 0, "samples saw no computing"
assert len(recorded) == len(restored)
for a, b in zip(recorded, restored):
    for part, s in a["breakdown"].items():
        assert abs(s - b["breakdown"][part]) < 0.002 * a["dur_s"] + 1e-6, (a, b)
for folder in (run, kept):
    report = json.loads(tfhook("report", "--json", folder))
    version = next(s["version"] for s in report["software"] if s["name"] == "PyTorch")
    says = any("(+cpu) uses no GPU" in a["do"] for a in report["advice"])
    assert says == (version.endswith("+cpu") and report["verdict"]["cause"] == "compute.cpu"), (version, report["advice"])
for part in json.loads(tfhook("diff", "--json", run, run))["parts"]:
    assert part["a_s"] > -1e-6, part
