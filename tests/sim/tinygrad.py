#!/usr/bin/env python3
"""tinygrad trains on the simulated GPU, unmodified: with the interpreter the losses are those of its CPU device to four
decimals and fall; without it the same calls are made and kernels only take time."""
import json
import os
import re
import subprocess
import sys

py = os.environ.get("TFH_PY")
if not py or os.environ.get("TFH_SAN") or subprocess.run([py, "-c", "import tinygrad"], stderr=subprocess.DEVNULL).returncode:
    sys.exit(77)
build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
STEPS = 12
TRAIN = """
import sys
import numpy as np
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context
Tensor.manual_seed(7)
l1, l2 = nn.Linear(64, 128), nn.Linear(128, 10)
opt = nn.optim.SGD([*nn.state.get_parameters(l1), *nn.state.get_parameters(l2)], lr=0.05, momentum=0.9)
rng = np.random.default_rng(0)
W = rng.standard_normal((64, 10)).astype(np.float32)
@TinyJit
def step(x, y):
    opt.zero_grad()
    loss = l2(l1(x).relu()).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*opt.schedule_step())
with Context(TRAINING=1):
    for i in range(int(sys.argv[1])):
        x = rng.standard_normal((32, 64)).astype(np.float32)
        y = (x @ W).argmax(1).astype(np.int32)
        print("loss %.4f" % step(Tensor(x).realize(), Tensor(y).realize()).item(), flush=True)
"""


def start(device, steps, **settings):
    name = device.replace(":", "_") + str(len(settings))
    env = dict(os.environ, DEV=device, CACHEDB=os.path.join(tmp, name + ".db"), PYTHONWARNINGS="ignore",
               LD_LIBRARY_PATH=os.path.join(build, "sim"), **settings)
    return subprocess.Popen([py, "-c", TRAIN, str(steps)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def losses(child):
    out, err = child.communicate(timeout=120)
    return (re.findall(r"loss (\S+)", out), err) if child.returncode == 0 else (None, err)


log = os.path.join(tmp, "truth")
gpu, cpu = start("CUDA:PTX", STEPS, SIM_INTERP="1", SIM_TRUTH=log), start("CPU", STEPS, NOOPT="1")
idle = start("CUDA:PTX", 4, NOOPT="1")
got, err = losses(gpu)
want, cpu_err = losses(cpu)
if not got:
    sys.exit("FAILED: tinygrad on the simulated GPU\n" + err[-2000:])
if want is None:
    print("tinygrad's CPU device does not work here, losses are only seen to fall:", cpu_err.strip().splitlines()[-1:])
elif got != want:
    sys.exit(f"FAILED: losses differ: {got} on the simulated GPU, {want} on the CPU")
if len(got) != STEPS or sum(map(float, got[-4:])) >= sum(map(float, got[:4])):
    sys.exit(f"FAILED: the loss does not fall: {got}")

events = [json.loads(line) for line in open(log)]
refused = [e["text"] for e in events if e["ev"] == "note"]
if refused:
    sys.exit(f"FAILED: notes in the truth log: {refused}")
launches = [e for e in events if e["ev"] == "call" and e["fn"] == "cuGraphLaunch"]
ends = [e for e in events if e["ev"] == "call" and e["fn"] == "cuMemcpyDtoH_v2"]
if len(launches) < STEPS - 3 or len(ends) < STEPS:
    sys.exit(f"FAILED: {len(launches)} graph launches, {len(ends)} copies back in {STEPS} steps")
copies = [e for e in events if e["ev"] == "op" and e["kind"] == "copy" and e["dir"] == "H2D" and e["bytes"] == 32 * 64 * 4]
if len(copies) != STEPS:
    sys.exit(f"FAILED: {len(copies)} batches copied")

got, err = losses(idle)
if not got or len(got) != 4 or set(got) != {"0.0000"}:
    sys.exit(f"FAILED: without the interpreter: {got} {err[-2000:]}")
