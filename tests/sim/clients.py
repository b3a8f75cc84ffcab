#!/usr/bin/env python3
"""Other driver-API programs run on the simulated GPU: cuda-bindings (looks names up through cuGetProcAddress, also the
per-thread ones) and drjit (one stream, pools, host functions, memory moved through pinned staging)."""
import json
import os
import subprocess
import sys

py = os.environ.get("TFH_PY_CLIENTS")
if not py or os.environ.get("TFH_SAN"):
    sys.exit(77)
build, src, tmp = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
DRJIT = """
import numpy as np, drjit as dr
from drjit.cuda.ad import Float
assert dr.has_backend(dr.JitBackend.CUDA)
w = Float(0.5)
for i in range(4):
    xn = np.arange(1 << 14, dtype=np.float32)
    x = Float(xn)
    assert (x.numpy() == xn).all()
    dr.enable_grad(w)
    loss = dr.mean(dr.square(w * x - 3 * x))
    dr.backward(loss)
    w = dr.detach(w) - 0.1 * dr.grad(w)
    dr.eval(w)
"""


def run(name, *args, **settings):
    log = os.path.join(tmp, name)
    env = dict(os.environ, HOME=tmp, LD_LIBRARY_PATH=os.path.join(build, "sim"), SIM_TRUTH=log, **settings)
    done = subprocess.run([py, *args], env=env, capture_output=True, text=True, timeout=60)
    if done.returncode:
        sys.exit(f"FAILED: {name}\n{done.stdout}{done.stderr}"[:3000])
    calls = {}
    for line in open(log):
        e = json.loads(line)
        if e["ev"] == "call":
            calls.setdefault(e["fn"], []).append(e)
        if e["ev"] == "note":
            print(name, e["text"])
    return calls


client = os.path.join(src, "tests/jobs/client_cb.py")
options = ["--steps", "5", "--launches", "4", "--spin", "100", "--h2d", "1e6", "--d2h", "1000"]
calls = run("cuda-bindings", client, *options)
if len(calls["cuLaunchKernel"]) != 20 or {c["bytes"] for c in calls["cuMemcpyHtoDAsync_v2"]} != {1000000}:
    sys.exit("FAILED: calls of cuda-bindings")
calls = run("per-thread", client, *options, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1")
if len(calls.get("cuLaunchKernel_ptsz", [])) != 20 or "cuLaunchKernel" in calls:
    sys.exit("FAILED: per-thread calls of cuda-bindings")
calls = run("drjit", "-c", DRJIT)
if len(calls["cuLaunchKernel"]) < 4 or not calls["cuMemAllocAsync"]:
    sys.exit("FAILED: calls of drjit")
