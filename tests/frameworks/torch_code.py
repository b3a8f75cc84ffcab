#!/usr/bin/env python3
"""What must hold: where libtorch keeps settings is known for each version whose code is known: what is set by calls of the library's own
functions is in the recording. Without Python's part of torch, so that libraries of other versions need no environment: TFH_TORCH_LIBS
names their folders, separated by colons. Without it, the library of the environment `torch`.

timeout: 300
"""
import glob
import json
import os
import subprocess
import sys

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL = os.path.join(BUILD, "bin", "tfhook")
HERE = glob.glob(os.path.join(os.environ.get("TFH_VENVS") or os.path.join(SRC, "build", "venv"), "torch/lib/python3*/site-packages/torch/lib"))
JOB = """import ctypes, sys, time
sys.path.insert(0, sys.argv[1])
from device import Device
torch = ctypes.CDLL(sys.argv[2] + "/libtorch_cpu.so", ctypes.RTLD_GLOBAL)
torch._ZN2at13globalContextEv.restype = ctypes.c_void_p
context = ctypes.c_void_p(torch._ZN2at13globalContextEv())
torch._ZN2at7Context26setDeterministicAlgorithmsEbb(context, True, False)
torch._ZN2at7Context17setBenchmarkCuDNNEb(context, True)
torch._ZN2at7Context18setAllowTF32CuBLASEb(context, True)
getattr(torch, "PyInit_torch", None)  # as Python looks for a module's function
device, until = Device(), time.time() + 1.5
while time.time() < until:
    device.up(), device.train(1), device.down()
"""
EXPECTED = {"torch.use_deterministic_algorithms": "True", "torch.backends.cudnn.deterministic": "False", "torch.backends.cudnn.benchmark": "True",
            "torch.float32_matmul_precision": "high"}

folders = [f for f in os.environ.get("TFH_TORCH_LIBS", "").split(":") if f] or HERE
if os.environ.get("TFH_SAN") or not folders:
    print("no environment `torch`: make check-frameworks makes it")
    sys.exit(77)
for n, folder in enumerate(folders):
    out, path = os.path.join(TMP, f"{n}"), os.path.join(BUILD, "sim") + ":" + folder
    subprocess.run([TOOL, "run", "-q", "-o", out, "--", sys.executable, "-c", JOB, os.path.join(SRC, "tests", "jobs"), folder],
                   env={**os.environ, "LD_LIBRARY_PATH": path}, check=True)
    report = json.loads(subprocess.run([TOOL, "report", "--json", out], stdout=subprocess.PIPE, text=True, check=True).stdout)
    told = {s["name"]: s["value"] for s in report["program_settings"]}
    print(folder, told)
    told.pop("torch.backends.cudnn.allow_tf32", None)  # until 2.8
    assert told == EXPECTED, (folder, told)
