#!/usr/bin/env python3
"""Question 1: nothing escapes. Small training loops of torch, JAX, TensorFlow, Triton and CuPy, each call of the driver counted by
CUPTI's callbacks and by the recording of the same process: for every hooked name the two counts are the same, the program
says the same as without tfhook, and no name is left unhooked.
timeout: 1800"""
import collections
import json
import os
import re
import subprocess
import sys

import gpu
from gpu import PY, build, check, compile, cupti, failed, has, need_gpu, part, records, report, run, src, unhooked, version_of

need_gpu("that the recording of torch, jax, tensorflow, triton and cupy holds every driver call that CUPTI sees (question 1)")

TORCH = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
data = [(torch.randn(64, 256), torch.randint(0, 10, (64,))) for _ in range(20)]
side = torch.cuda.Stream()
for i, (x, y) in enumerate(data):
    x = (x.pin_memory() if i % 2 else x).cuda(non_blocking=True)
    loss = torch.nn.functional.cross_entropy(net(x), y.cuda())
    opt.zero_grad(); loss.backward(); opt.step()
    with torch.cuda.stream(side):
        (x @ x.T).sum()
    if i % 5 == 4:
        loss.item()
torch.cuda.synchronize()
static = torch.randn(64, 256, device="cuda")
warm = torch.cuda.Stream(); warm.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm), torch.no_grad():
    net(static)
torch.cuda.current_stream().wait_stream(warm)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph), torch.no_grad():
    out = net(static)
for i in range(10):
    static.copy_(data[i][0]); graph.replay()
print("%.6f" % out.sum().item())
"""
JAX = """
import jax, jax.numpy as jnp, numpy as np
assert jax.devices()[0].platform == "gpu"
w = jnp.zeros((256, 10))
@jax.jit
def step(w, x, y):
    f = lambda w: jnp.mean((x @ w - y) ** 2)
    return w - 0.01 * jax.grad(f)(w)
rng = np.random.default_rng(0)
for i in range(20):
    w = step(w, rng.standard_normal((64, 256), dtype=np.float32), rng.standard_normal((64, 10), dtype=np.float32))
print("%.6f" % float(w.sum()))
"""
TENSORFLOW = """
import tensorflow as tf
for device in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(device, True)
assert tf.config.list_physical_devices("GPU")
tf.random.set_seed(0)
w = tf.Variable(tf.zeros((256, 10)))
rows, labels = tf.random.uniform((1280, 256)), tf.random.uniform((1280, 10))
@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w - y) ** 2)
    w.assign_sub(0.01 * tape.gradient(loss, w))
    return loss
for x, y in tf.data.Dataset.from_tensor_slices((rows.numpy(), labels.numpy())).batch(64).prefetch(2):
    step(x, y)
print("%.3f" % float(tf.reduce_sum(w)))
"""
CUPY = """
import cupy, numpy as np
x = cupy.asarray(np.arange(1 << 16, dtype=np.float32))
k = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x * 2 + 1", "twice")
s = cupy.cuda.Stream(non_blocking=True)
with s:
    for i in range(20):
        x = k(x) % 1000
        if i % 5 == 4:
            float(x.sum())
s.synchronize()
print("%.3f" % float(cupy.asnumpy(x).sum()))
"""
TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)
x = torch.ones(100000, device="cuda"); y = torch.ones_like(x); out = torch.empty_like(x)
for i in range(20):
    add[(triton.cdiv(100000, 1024),)](x, y, out, 100000, BLOCK=1024)
print(out.sum().item())
"""
FRAMEWORKS = {"torch": TORCH, "jax": JAX, "tensorflow": TENSORFLOW, "cupy": CUPY, "triton": TRITON}
# Nobody needs these at both counters: cuInit loads the one by which CUPTI counts.
BEFORE = {"cuInit"}
# CUDA's runtime makes these in its exit handlers, which may run after the recording's end.
AT_END = {"cuLibraryUnload", "cuModuleUnload", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2"}
table = open(f"{src}/lib/base/cuda_api.def").read()
hooked = set(re.findall(r"^CUDA_FN(?:_HOST|_LAUNCH)?\((\w+)", table, re.M)) - BEFORE


def truth(place):
    """Calls by name: from CUPTI, or from the simulated driver's log."""
    if os.path.exists(f"{place}/counts"):
        return {name: int(n) for name, n in (line.split() for line in open(f"{place}/counts"))}
    calls = [json.loads(line) for line in open(f"{place}/truth")] if os.path.exists(f"{place}/truth") else []
    return dict(collections.Counter(c["fn"] for c in calls if c["ev"] == "call"))


def same(name, command, **settings):
    plain, _, _ = run(name + "-plain", command)
    if plain[0]:
        print(f"{name}: does not run here without tfhook: {plain[2][-300:]}")
        return 0
    place = f"{gpu.tmp}/{name}"
    got, runs, _ = run(name, command, gpu.HOOK, COUNTS=f"{place}/counts", **settings)
    # The loop says how long it took.
    said = [re.sub(r"\d+\.\d+", "", text) for text in (got[1], plain[1])] if name == "loop" else (got[1], plain[1])
    if said[0] != said[1] and name != "loop":  # perhaps it never says the same twice
        again, _, _ = run(name + "-again", command)
        said = said if again[1] == plain[1] else (got[1].count("\n"), plain[1].count("\n"))
    check(got[0] == plain[0] and said[0] == said[1], name, "says something else with tfhook", got, plain)
    theirs = {n: c for n, c in truth(place).items() if n in hooked}
    ours = collections.Counter(r["fn"] for r in records(runs) if r["kind"] in (1, 9) and r["fn"] in hooked)
    check(sum(theirs.values()) > 20, name, "hardly any calls counted", theirs)
    late = {n for n in AT_END if ours[n] < theirs.get(n, 0)}
    wrong = {n: (theirs.get(n, 0), ours[n]) for n in {*theirs, *ours} - late if theirs.get(n, 0) != ours[n]}
    check(not wrong, name, "counted by CUPTI and by us", wrong)
    check(not unhooked(runs), name, "unhooked", unhooked(runs))
    module = name if name in FRAMEWORKS else None
    report(question=1, program=name, version=version_of(module) if module else "", calls=sum(theirs.values()),
           names=len(theirs), different=len(wrong), at_end=sorted(late), unhooked=unhooked(runs))
    return 1


library = cupti()
# Our own use of CUPTI stays out of the count.
settings = dict(CUDA_INJECTION64_PATH=compile("libcounts.so", "-shared", "-fPIC"), COUNTS_CUPTI=library or "",
                TFHOOK_CUPTI="off")
ran = 0
if gpu.DRIVER:
    settings = dict(SIM_TRUTH=f"{gpu.tmp}/loop/truth")
elif not library:
    print("no libcupti to count with")
    sys.exit(77)
loop = f"{build}/tests/jobs/client_loop"
if os.path.exists(loop):
    ran += part("loop", same, "loop", [loop, "--steps", "20", "--h2d", "500000", "--d2h", "1000", "--launches", "30", "--spin", "20",
                         "--stream", "own", "--sync", "stream"], **settings) or 0
ONLY = os.environ.get("TFH_GPU_PARTS", "").split()
for module, program in FRAMEWORKS.items():
    if gpu.DRIVER or (ONLY and module not in ONLY):
        continue
    if has(module):
        with open(f"{gpu.tmp}/{module}_loop.py", "w") as file:  # Triton reads the source of its functions
            file.write(program)
        ran += part(module, same, module, [PY, file.name], **settings) or 0
    else:
        print(f"{PY} has no {module}")
sys.exit(failed() if ran or failed() else 77)
