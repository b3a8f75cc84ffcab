#!/usr/bin/env python3
"""A recording tells the versions of the libraries that the job had loaded: by the name of the file that a link leads to,
else by the package that lies beside it, else by what the name has; those loaded late, too. Of the settings that are
known to cost time it tells those that apply, also where the job set them itself before its first call to the device, and
the report has a sentence for each that concerns its class and its frameworks, and for no other."""
import json
import os
import shutil
import subprocess
import sys

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL = os.path.join(BUILD, "bin", "tfhook")
SITE = os.path.join(TMP, "lib", "site-packages")
NAMES = {"nccl": "libnccl.so.2.21.5", "cudnn": "lib/site-packages/nvidia/cudnn/lib/libcudnn.so.9", "cublas": "libcublas.so.12",
         "torch": "lib/site-packages/torch/lib/libtorch_cpu.so", "numpy": "lib/site-packages/numpy/_core/_multiarray_umath.cpython-311.so"}
JOB = """import sys; sys.path.insert(0, sys.argv[1]); import ctypes, device, os, time
os.environ["OMP_NUM_THREADS"] = "1"
for path in sys.argv[3:]: ctypes.CDLL(path)
d = device.Device(); until = time.time() + float(os.environ["SECONDS_OF_JOB"]); late = time.time() + 0.4
while time.time() < until:
    d.up(); d.run(%s); d.down(); %s
    if time.time() > late: ctypes.CDLL(sys.argv[2]); late = until
"""
EXPECTED = {"NCCL": "2.21.5", "cuDNN": "9.1.0.70", "cuBLAS": "12", "PyTorch": "2.4.0+cu121", "NumPy": "2.1.0", "driver": "1"}



def report(folder, *flags):
    return subprocess.run([TOOL, *flags, folder], capture_output=True, text=True, check=True).stdout


if os.environ.get("TFH_SAN") or not os.path.exists(os.path.join(BUILD, "sim", "libcuda.so.1")):
    sys.exit(77)
for name in NAMES.values():
    os.makedirs(os.path.dirname(os.path.join(TMP, name)), exist_ok=True)
    shutil.copy(os.path.join(BUILD, "tests", "record", "libstuck.so"), os.path.join(TMP, name))
for package in ("nvidia_cudnn_cu12-9.1.0.70", "torch-2.4.0+cu121", "torch_geometric-2.5.3", "numpy-2.1.0", "numpy_quaternion-2023.0.2"):
    os.makedirs(os.path.join(SITE, package + ".dist-info"))
os.symlink("libnccl.so.2.21.5", os.path.join(TMP, "libnccl.so.2"))
paths = {key: os.path.join(TMP, name) for key, name in NAMES.items()}
paths["nccl"] = os.path.join(TMP, "libnccl.so.2")
settings = {"CUDA_LAUNCH_BLOCKING": "1", "NVIDIA_TF32_OVERRIDE": "0", "NCCL_P2P_DISABLE": "1", "PYTHONMALLOC": "default",
            "TF_ENABLE_ONEDNN_OPTS": "0", "XLA_FLAGS": "--xla_dump_to=/secret --xla_gpu_deterministic_ops=true"}
compute, host = os.path.join(TMP, "compute"), os.path.join(TMP, "host")


def record(seconds):
    """What the two jobs' recordings hold of software: libraries are looked for once a second, later on a busy machine."""
    jobs = []
    for folder, work in {compute: (20, ""), host: (0.01, "time.sleep(0.02)")}.items():
        shutil.rmtree(folder, ignore_errors=True)
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"), SECONDS_OF_JOB=str(seconds), **settings)
        job = [sys.executable, "-c", JOB % work, os.path.join(SRC, "tests", "jobs"), paths["numpy"], *(paths[k] for k in ("nccl", "cudnn", "cublas", "torch"))]
        jobs.append(subprocess.Popen([TOOL, "run", "-q", "-o", folder, "--", *job], stdin=subprocess.DEVNULL, env=env))
    assert all(job.wait() == 0 for job in jobs)
    return json.loads(report(compute, "report", "--json"))


for seconds in (4.2, 12, 36):
    found = record(seconds)
    versions = {s["name"]: s["version"] for s in found["software"]}
    if "NumPy" in versions:
        break
assert {name: versions.get(name) for name in EXPECTED} == EXPECTED, versions
assert {s["path"] for s in found["software"]} >= set(paths.values()), found["software"]
applies = {(s["variable"], s["value"]) for s in found["settings"] if s["variable"] != "cpu.governor"}
assert applies == {("CUDA_LAUNCH_BLOCKING", "1"), ("NVIDIA_TF32_OVERRIDE", "0"), ("NCCL_P2P_DISABLE", "1"), ("OMP_NUM_THREADS", "1"),
                   ("TF_ENABLE_ONEDNN_OPTS", "0"), ("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")}, applies
info = report(compute, "info")
assert "cuDNN          9.1.0.70" in info and "CUDA_LAUNCH_BLOCKING=1   <- every launch waits" in info, info
text = report(compute, "report", "--all")
assert "CUDA_LAUNCH_BLOCKING=1: " in text and "NVIDIA_TF32_OVERRIDE=0: " in text and "XLA_FLAGS with --xla_gpu_det" in text, text
assert "OMP_NUM_THREADS" not in text and "NCCL_P2P" not in text, text
assert "ONEDNN" not in text, text  # the job had no TensorFlow
text = report(host, "report", "--all")
assert "CUDA_LAUNCH_BLOCKING=1: " in text and "TF32" not in text, text
assert "OMP_NUM_THREADS" not in text, text  # a program that sleeps needs no threads
