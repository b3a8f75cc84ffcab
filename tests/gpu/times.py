#!/usr/bin/env python3
"""Questions 3, 6 and 7: device times of a real CUPTI. Every launch and copy of a loop has its op, which begins behind its
call; what recording them costs, with and without graphs, in time and in device memory; a profiler inside the job keeps its own
trace; whether the driver's clock or a client's breaks times. Each part is reported by itself: what is missing here is left out.
timeout: 1800"""
import json
import os
import re
import subprocess
import sys

import gpu
from gpu import HOOK, PY, build, check, failed, has, need_gpu, part, records, report, run, version_of

need_gpu("that device times are complete, what they cost, and that torch's and jax's own profilers go on beside them "
         "(questions 3, 6, 7)")
LOOP = f"{build}/tests/jobs/client_loop"

# One line of JSON: seconds of a turn, and the device memory that is gone at the end.
GRAPHS = """
import json, time, torch
x = torch.zeros(64, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    x.add_(1)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    for _ in range(1000):
        x.add_(1)
def turn():
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
turn(); free = torch.cuda.mem_get_info()[0]
times, end = [], time.perf_counter() + 7
while time.perf_counter() < end:
    t = time.perf_counter(); turn(); times.append(time.perf_counter() - t)
print(json.dumps(dict(turn_s=sorted(times)[len(times) // 2], gone=free - torch.cuda.mem_get_info()[0])))
"""
TORCH_PROFILER = """
import json, torch
from torch.profiler import ProfilerActivity, profile
x = torch.zeros(4096, device="cuda")
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
    for _ in range(500):
        x.add_(1)
    torch.cuda.synchronize()
p.export_chrome_trace("torch.json")
events = json.load(open("torch.json"))["traceEvents"]
print(json.dumps(dict(kernels=sum(e.get("cat") == "kernel" for e in events))))
"""
# The graph was captured before the profiler came.
TORCH_GRAPH_PROFILER = """
import json, torch
from torch.profiler import ProfilerActivity, profile
x = torch.zeros(4096, device="cuda")
graph = torch.cuda.CUDAGraph()
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    x.add_(1)
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    for _ in range(50):
        x.add_(1)
for _ in range(20):
    graph.replay()
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
for _ in range(20):
    graph.replay()
torch.cuda.synchronize()
p.export_chrome_trace("torch.json")
events = json.load(open("torch.json"))["traceEvents"]
print(json.dumps(dict(kernels=sum(e.get("cat") == "kernel" for e in events))))
"""
JAX_PROFILER = """
import glob, gzip, json, jax, jax.numpy as jnp
f = jax.jit(%s)
x = jnp.ones((256, 256)); f(x).block_until_ready()
for _ in range(20):
    x = f(x)
x.block_until_ready()  # or kernels that were launched before the trace run in it
with jax.profiler.trace("jax", create_perfetto_trace=True):
    for _ in range(%d):
        x = f(x)
    x.block_until_ready()
path = glob.glob("jax/**/perfetto_trace.json.gz", recursive=True)[0]
events = json.load(gzip.open(path))["traceEvents"]
devices = {e["pid"] for e in events if e.get("name") == "process_name" and "gpu" in str(e.get("args", {}).get("name", "")).lower()}
for _ in range(20):
    x = f(x)
x.block_until_ready()
print(json.dumps(dict(kernels=sum(e.get("ph") == "X" and e.get("pid") in devices for e in events))))
"""
JAX_OPS = JAX_PROFILER % ("lambda x: x * 2 + 1", 500)
# Enough for XLA to launch them as a graph ("command buffer").
JAX_GRAPHS = JAX_PROFILER % ("lambda x: [x := jnp.tanh(x @ x) for _ in range(30)][-1]", 50)

TF_PROFILER = """
import glob, json, tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2
for device in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(device, True)
x, two = tf.ones((256, 256)), tf.constant(2.0)
def work(n):
    global x
    for _ in range(n):
        x = x * two
    x.numpy()
work(20)
with tf.profiler.experimental.Profile("tf"):
    work(500)
work(20)
space = xplane_pb2.XSpace()
space.ParseFromString(open(glob.glob("tf/**/*.xplane.pb", recursive=True)[0], "rb").read())
names = lambda p, e: p.event_metadata[e.metadata_id].name
events = [names(p, e) for p in space.planes if p.name.startswith("/device:GPU") for line in p.lines
          if line.name.startswith("Stream") for e in line.events]
print(json.dumps(dict(kernels=sum(not n.lower().startswith("mem") for n in events))))
"""


def ops_of(runs):
    """Device ops, and what is known of them."""
    lines = []
    for place in runs:
        out = subprocess.run([f"{build}/tests/hook/ops", place], capture_output=True, text=True)
        check(out.returncode == 0, "ops", out.stderr[-300:])
        lines += [json.loads(line) for line in out.stdout.splitlines()]
    infos = [x for x in lines if "pid" in x]
    return [x for x in lines if "pid" not in x], infos[0] if infos else {}


def told(runs):
    """What the recording says about CUPTI."""
    out = [subprocess.run([f"{build}/bin/tfhook", "info", place], capture_output=True, text=True).stdout for place in runs]
    return re.findall(r"library: (\S+)|(no device times[^\n]*)|(taken in windows[^\n]*)", "".join(out))


def complete():
    """Question 3."""
    done, runs, _ = run("complete", [LOOP, "--steps", "200", "--h2d", "500000", "--d2h", "1000", "--launches", "20", "--spin",
                                     "20", "--stream", "own", "--sync", "stream"], HOOK, TFHOOK_CUPTI="on")
    check(done[0] == 0, "loop", done)
    ops, info = ops_of(runs)
    calls = [r for r in records(runs) if r["kind"] == 1 and r["result"] == 0 and
             re.match(r"cuLaunchKernel|cuMemcpy[DH]to[DH](Async)?_v2$", r["fn"])]
    begin_before = [op for op in ops if op["call"] >= 0 and op["t0"] < op["issue0"] - 5000]
    untimed = [op for op in ops if op["t1"] <= op["t0"]]
    check(ops and len(ops) + info.get("dropped", 0) >= len(calls), "ops", len(ops), "of calls", len(calls), info)
    check(len(begin_before) <= len(ops) // 100, "ops that begin before their call", len(begin_before), begin_before[:2])
    report(question=3, ops=len(ops), calls=len(calls), with_call=sum(op["call"] >= 0 for op in ops),
           before_their_call=len(begin_before), without_length=len(untimed), info=info, told=told(runs))


def last_json(done):
    return json.loads(done[1].strip().splitlines()[-1])


def costs(name, program):
    """Question 6: told, never a failure but where the program fails."""
    found = {}
    for how, preload, settings in (("without", "", {}), ("off", HOOK, {"TFHOOK_CUPTI": "off"}), ("on", HOOK, {"TFHOOK_CUPTI": "on"}),
                                   ("whole", HOOK, {"TFHOOK_CUPTI": "on", "TFHOOK_GRAPH_NODES": "0"})):
        done, runs, _ = run(f"{name}-{how}", [PY, "-c", program], preload, **settings)
        if not check(done[0] == 0, name, how, "ended with", done[0], done[1][-300:], done[2][-600:]):
            continue
        found[how] = last_json(done)
        if how in ("on", "whole"):
            found[how].update(ops=len(ops_of(runs)[0]), told=told(runs))
    report(question=6, program=name, torch=version_of("torch"), found=found)


def beside(name, module, program):
    """Question 7."""
    plain, _, _ = run(name + "-plain", [PY, "-c", program])
    if not plain[0] == 0:
        print(f"{name}: does not run here without tfhook: {plain[2][-300:]}")
        return
    alone, found = last_json(plain)["kernels"], {}
    for share in ("tee", "off", "own"):
        done, runs, _ = run(f"{name}-{share}", [PY, "-c", program], HOOK, TFHOOK_CUPTI="on", TFHOOK_CUPTI_SHARE=share)
        if share != "own" and not check(done[0] == 0, name, share, done[1][-300:], done[2][-600:]):
            continue
        ops, info = ops_of(runs)
        theirs = last_json(done)["kernels"] if done[0] == 0 else None
        found[share] = dict(profiler=theirs, ours=len(ops), status=done[0], told=told(runs))
        check(share == "own" or theirs == alone, name, share, "the profiler has", theirs, "kernels, alone", alone)
        check(share != "tee" or len(ops) >= alone > 0, name, "tee: we have", len(ops), "kernels, the profiler alone", alone)
    report(question=7, program=name, version=version_of(module), alone=alone, found=found)


ONLY = os.environ.get("TFH_GPU_PARTS", "").split()
if os.path.exists(LOOP) and (not ONLY or "complete" in ONLY):
    part("complete", complete)
for module, parts in (("torch", [("graphs", costs, ("graphs", GRAPHS)),
                                 ("torch-profiler", beside, ("torch-profiler", "torch", TORCH_PROFILER)),
                                 ("torch-graph-profiler", beside, ("torch-graph-profiler", "torch", TORCH_GRAPH_PROFILER))]),
                      ("jax", [("jax-profiler", beside, ("jax-profiler", "jax", JAX_OPS)),
                               ("jax-graph-profiler", beside, ("jax-graph-profiler", "jax", JAX_GRAPHS))]),
                      ("tensorflow", [("tf-profiler", beside, ("tf-profiler", "tensorflow", TF_PROFILER))])):
    if gpu.DRIVER:
        break
    if not has(module):
        print(f"{PY} has no {module}")
        continue
    for name, work, args in parts:
        if not ONLY or name in ONLY:
            part(name, work, *args)
sys.exit(failed())
