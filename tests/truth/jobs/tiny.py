#!/usr/bin/env python3
"""tinygrad trains a small network; plain Python prepares its batches. tiny.py [--steps N] [--slow MS]"""
import argparse
import json
import os
import sys
import time

import numpy as np
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "jobs"))
from gate import wait_at_gate  # noqa: E402

p = argparse.ArgumentParser(usage=__doc__)
p.add_argument("--steps", type=int, default=40)
p.add_argument("--slow", type=float, default=0)
A = p.parse_args()

wait_at_gate()
Tensor.manual_seed(7)
l1, l2 = nn.Linear(16, 24), nn.Linear(24, 4)
opt = nn.optim.SGD([*nn.state.get_parameters(l1), *nn.state.get_parameters(l2)], lr=0.1)
rng = np.random.default_rng(0)


@TinyJit
def step(x, y):
    opt.zero_grad()
    loss = l2(l1(x).relu()).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*opt.schedule_step())


begin, end, defect = [], [], []
with Context(TRAINING=1):
    for i in range(A.steps):
        begin.append(time.monotonic())
        if A.slow:
            time.sleep(A.slow / 1e3)
            defect += [begin[-1], time.monotonic()]
        x = rng.standard_normal((32, 16)).astype(np.float32)
        y = np.arange(32, dtype=np.int32) % 4
        step(Tensor(x).realize(), Tensor(y).realize()).item()
        end.append(time.monotonic())
print(json.dumps({"steps": A.steps, "begin": begin, "end": end, "defect": defect, "done": time.monotonic()}))
