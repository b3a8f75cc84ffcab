#!/usr/bin/env python3
"""What must hold: what a job of PyTorch's does between its epochs counts after the last epoch, too, where it runs at the same lines; what
other lines do there does not.

timeout: 300
"""
import json
import os
import subprocess
import sys

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL = os.path.join(BUILD, "bin", "tfhook")
PYTHON = os.path.join(os.environ.get("TFH_VENVS") or os.path.join(SRC, "build", "venv"), "torch", "bin", "python")
EPOCHS, EACH = 4, 1.0
JOB = """import sys, time, torch
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.ones(320, 256), 16)
def score(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(3000))
def export(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        max(range(3000))
def evaluate():
    score(%g)
for epoch in range(%d):
    for x in loader:
        optimizer.zero_grad(); model(x).sum().backward(); optimizer.step(); time.sleep(0.005)
    if sys.argv[1] == "evaluate" or epoch < %d:
        evaluate()
if sys.argv[1] == "export":
    export(%g)
""" % (EACH, EPOCHS, EPOCHS - 1, EACH)

if os.environ.get("TFH_SAN") or not os.path.exists(PYTHON):
    print("no environment `torch`: make check-frameworks makes it")
    sys.exit(77)
with open(f"{TMP}/job.py", "w") as f:
    f.write(JOB)
for end, gaps in (("evaluate", EPOCHS), ("export", EPOCHS - 1)):
    run = f"{TMP}/{end}"
    subprocess.run([TOOL, "run", "-q", "-o", run, PYTHON, f"{TMP}/job.py", end], check=True, stdout=subprocess.DEVNULL)
    told = json.loads(subprocess.run([TOOL, "report", "--json", run], stdout=subprocess.PIPE, text=True, check=True).stdout)
    between = [x for x in told["recurs"] if x["kind"] == "between"]
    after = [x for x in told["tree"]["parts"] if x["kind"] == "after"]
    print(end, [(x["count"], round(x["total_s"], 2)) for x in between], [round(x["wall_s"], 2) for x in after])
    assert between and after, told["tree"]
    assert between[0]["count"] == gaps and abs(between[0]["total_s"] / gaps - EACH) < 0.3 * EACH, between
    assert end == "evaluate" or after[0]["wall_s"] > 0.9 * EACH, after
