#!/usr/bin/env python3
"""Question 5: what recording costs a PyTorch job on a GPU, beside torch.profiler, in turns: 2,000 launches of a tiny kernel,
20 training steps that are bound by launches, 10 large products of matrices. Told, never a failure.
TFH_GPU_SECONDS is when no further run begins (120).
timeout: 900"""
import collections
import concurrent.futures
import json
import os
import statistics
import sys
import time

import gpu
from gpu import HOOK, PY, check, failed, has, need_gpu, report, run, version_of

need_gpu("what recording costs a PyTorch job with and without device times, beside torch.profiler (question 5)")
if gpu.DRIVER or not has("torch"):
    print("no torch here")
    sys.exit(77)
PROGRAM = """
import fcntl, json, os, sys, time, torch
torch.manual_seed(0)
x = torch.zeros(64, device="cuda")
layers = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()) for _ in range(20)]
net = torch.nn.Sequential(*layers, torch.nn.Linear(256, 16)).cuda()
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
data, labels = torch.randn(64, 256, device="cuda"), torch.arange(64, device="cuda") % 16
big = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
def launches():
    for _ in range(2000):
        x.add_(1)
def steps():
    for _ in range(20):
        loss = torch.nn.functional.cross_entropy(net(data), labels)
        opt.zero_grad(); loss.backward(); opt.step()
def products():
    for _ in range(10):
        big @ big
def median(work, n):
    times = []
    for _ in range(n):
        t = time.perf_counter(); work(); torch.cuda.synchronize(); times.append(time.perf_counter() - t)
    return sorted(times[1:])[(n - 1) // 2]
for work in (launches, steps, products):
    median(work, 2)
# One process at a time has the GPU; others load their libraries meanwhile.
with open(os.environ["TURN"], "w") as turn:
    fcntl.flock(turn, fcntl.LOCK_EX)
    measure = lambda: dict(launches=median(launches, 16), steps=median(steps, 8), products=median(products, 8))
    if sys.argv[1:]:
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[getattr(ProfilerActivity, a) for a in sys.argv[1:]]):
            found = measure()
    else:
        found = measure()
print(json.dumps(found))
"""
HOWS = {"without": ((), "", {}), "calls": ((), HOOK, {"TFHOOK_CUPTI": "off"}), "device times": ((), HOOK, {"TFHOOK_CUPTI": "on"}),
        "as tfhook run": ((), HOOK, {"TFHOOK_CUPTI": "on", "TFHOOK_STACKS": "slow:1ms"}),
        "torch.profiler, CUDA": (("CUDA",), "", {}), "torch.profiler, CPU and CUDA": (("CPU", "CUDA"), "", {})}
ROUNDS = 5
END = time.time() + float(os.environ.get("TFH_GPU_SECONDS", "120"))
found = collections.defaultdict(lambda: collections.defaultdict(list))


def one(how, turn):
    words, preload, settings = HOWS[how]
    if time.time() > END:
        return
    done, _, _ = run(f"{how.replace(' ', '-')}-{turn}", [PY, "-c", PROGRAM, *words], preload, TURN=f"{gpu.tmp}/turn", **settings)
    if check(done[0] == 0, how, "ended with", done[0], done[2][-300:]):
        for work, seconds in json.loads(done[1].strip().splitlines()[-1]).items():
            found[how][work].append(seconds)


with concurrent.futures.ThreadPoolExecutor(5) as pool:
    list(pool.map(one, list(HOWS) * ROUNDS, [turn for turn in range(ROUNDS) for _ in HOWS]))
for how in HOWS:
    report(question=5, how=how, torch=version_of("torch") if how == "without" else "", rounds=len(found[how]["steps"]),
           **{work: dict(median_us=round(statistics.median(v) * 1e6), least_us=round(min(v) * 1e6), most_us=round(max(v) * 1e6))
              for work, v in found[how].items()})
sys.exit(failed())
