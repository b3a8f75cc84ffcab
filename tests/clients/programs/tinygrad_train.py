"""A small network trains on one or two devices; the loss falls, if kernels are interpreted."""
import os
import sys

import numpy as np
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context

devices = tuple(f"CUDA:{i}" for i in range(int(sys.argv[1])))
Tensor.manual_seed(7)
l1, l2 = nn.Linear(16, 24), nn.Linear(24, 4)
parameters = [*nn.state.get_parameters(l1), *nn.state.get_parameters(l2)]
if len(devices) > 1:
    for p in parameters:
        p.shard_(devices)
opt = nn.optim.SGD(parameters, lr=0.1)
rng = np.random.default_rng(0)
truth = rng.standard_normal((16, 4)).astype(np.float32)


def put(a):
    return (Tensor(a).shard(devices, axis=0) if len(devices) > 1 else Tensor(a)).realize()


@TinyJit
def step(x, y):
    opt.zero_grad()
    loss = l2(l1(x).relu()).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*opt.schedule_step())


losses = []
with Context(TRAINING=1):
    for _ in range(8):
        x = rng.standard_normal((32, 16)).astype(np.float32)
        losses.append(step(put(x), put((x @ truth).argmax(1).astype(np.int32))).item())
        print("loss %.4f" % losses[-1])
assert losses[-1] < losses[0] or "SIM_INTERP" not in os.environ, losses
x = Tensor(np.arange(1 << 16, dtype=np.float32)).realize()
assert (x.numpy() == np.arange(1 << 16, dtype=np.float32)).all()
