#!/usr/bin/env python3
"""Real programs, unmodified, leave the trace that the simulated driver's log says they should: cuda-bindings through
cuGetProcAddress with both kinds of default streams, drjit with pools and host functions, tinygrad with graphs."""
import os
import subprocess
import sys

from compare import build, check, compare, failed, run, src, tmp

DRJIT = """
import numpy as np, drjit as dr
from drjit.cuda.ad import Float
w = Float(0.5)
for i in range(4):
    x = Float(np.arange(1 << 14, dtype=np.float32))
    dr.enable_grad(w)
    loss = dr.mean(dr.square(w * x - 3 * x))
    dr.backward(loss)
    w = dr.detach(w) - 0.1 * dr.grad(w)
    dr.eval(w)
"""
TINYGRAD = """
import numpy as np
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context
l1, l2 = nn.Linear(64, 32), nn.Linear(32, 10)
opt = nn.optim.SGD([*nn.state.get_parameters(l1), *nn.state.get_parameters(l2)], lr=0.05)
rng = np.random.default_rng(0)
@TinyJit
def step(x, y):
    opt.zero_grad()
    loss = l2(l1(x).relu()).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*opt.schedule_step())
with Context(TRAINING=1):
    for i in range(5):
        x = rng.standard_normal((32, 64)).astype(np.float32)
        y = rng.integers(0, 10, 32).astype(np.int32)
        step(Tensor(x).realize(), Tensor(y).realize()).item()
"""


def has(py, module):
    return py and not subprocess.run([py, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode


ran = 0
py = os.environ.get("TFH_PY_CLIENTS")
loop = [f"{src}/tests/jobs/client_cb.py", "--steps", "5", "--launches", "4", "--spin", "100", "--h2d", "1e6", "--d2h",
        "1000"]
if has(py, "cuda.bindings"):
    compare("cuda-bindings", *run("cuda-bindings", py, *loop, HOME=tmp))
    compare("per-thread", *run("per-thread", py, *loop, HOME=tmp, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1"))
    ran += 1
if has(py, "drjit"):
    compare("drjit", *run("drjit", py, "-c", DRJIT, HOME=tmp))
    ran += 1
py = os.environ.get("TFH_PY")
if has(py, "tinygrad"):
    records, truth, place = run("tinygrad", py, "-c", TINYGRAD, HOME=tmp, DEV="CUDA:PTX", CACHEDB=f"{tmp}/cache.db",
                                PYTHONWARNINGS="ignore")
    compare("tinygrad", records, truth, place)
    check(any(r["fn"].startswith("cuGraphLaunch") for r in records), "tinygrad launches graphs")
    ran += 1
sys.exit(failed() if ran else 77)
