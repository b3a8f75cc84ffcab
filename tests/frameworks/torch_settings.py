#!/usr/bin/env python3
"""What must hold: a recording tells how real PyTorch was set by calls (deterministic algorithms, cuDNN's benchmark and deterministic
modes, TF32), as it was last, with what each costs; a job that sets nothing has the defaults and no such cost. The job prints the
same with and without. With the torch of the environment `torch`; more can be given by TFH_TORCHES (paths of pythons, separated by colons).

timeout: 900
"""
import json
import os
import subprocess
import sys

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL = os.path.join(BUILD, "bin", "tfhook")
PYTHON = os.path.join(os.environ.get("TFH_VENVS") or os.path.join(SRC, "build", "venv"), "torch", "bin", "python")
SET = """torch.use_deterministic_algorithms(True)
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = True
torch.set_float32_matmul_precision("high")
"""
UNDONE = """train()
torch.backends.cudnn.benchmark = False
"""
JOB = """import time, torch
model, until = torch.nn.Linear(8, 8), time.time() + 2.5
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    for _ in range(200):
        optimizer.zero_grad(); model(torch.ones(4, 8)).sum().backward(); optimizer.step(); time.sleep(0.006)
%strain()
print(torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark, torch.get_float32_matmul_precision())
"""
NAMES = ("torch.use_deterministic_algorithms", "torch.backends.cudnn.deterministic", "torch.backends.cudnn.benchmark",
         "torch.float32_matmul_precision")
DEFAULTS = dict(zip(NAMES, ("False", "False", "False", "highest")))
MENDED = dict(zip(NAMES, ("True", "True", "False", "high")))

if os.environ.get("TFH_SAN") or not os.path.exists(PYTHON):
    print("no environment `torch`: make check-frameworks makes it")
    sys.exit(77)
CASES = {"defaults": ("", DEFAULTS), "set": (SET, dict(MENDED, **{NAMES[2]: "True"})), "undone": (SET + UNDONE, MENDED)}
for n, (python, name) in enumerate((p, name) for p in [PYTHON, *filter(None, os.environ.get("TFH_TORCHES", "").split(":"))] for name in CASES):
    calls, expected = CASES[name]
    out, job = os.path.join(TMP, f"{n}"), [python, "-c", JOB % calls]
    plain = subprocess.run(job, capture_output=True, text=True, check=True).stdout
    done = subprocess.run([TOOL, "run", "-q", "-o", out, "--", *job], capture_output=True, text=True, check=True)
    assert done.stdout == plain, (done.stdout, plain)
    report = json.loads(subprocess.run([TOOL, "report", "--json", out], capture_output=True, text=True).stdout)
    told = {s["name"]: s["value"] for s in report["program_settings"]}
    told.pop("torch.backends.cudnn.allow_tf32", None)  # until 2.8
    priced = {s["variable"]: s["value"] for s in report["settings"] if s["variable"].startswith("torch.")}
    print(name, told, sorted(priced))
    assert told == expected, (name, told)
    assert priced == {k: "True" for k in NAMES[:2] if expected[k] == "True"}, (name, priced)
