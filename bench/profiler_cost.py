#!/usr/bin/env python3
"""What recording costs real PyTorch and Keras jobs, beside the framework's own profiler: blocks of steps, one of each kind in turns,
within one process, and the processor time of the whole process in each, the recorder's own threads included. (Two processes that do
the same work differ by several percent, blocks of one do not.)

usage: profiler_cost.py [PAIRS [STEPS]]    60 rounds of blocks of 100 steps: five minutes

"off" is a block with recording paused. The profilers run as their documentation says, with default settings; the time that they take
to start, to stop and to write the trace of a block is shown by itself, as one pays it once per profiled part, not per step.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import side_by_side  # noqa: E402

src, build = os.environ["TFH_SRC"], os.environ["TFH_BUILD"]
ROUNDS, STEPS = ([int(a) for a in sys.argv[1:]] + [60, 100][len(sys.argv) - 1:])[:2]
COMMON = """
import ctypes, gc, json, os, random, sys, tempfile, time
rounds, steps, where = int(sys.argv[1]), int(sys.argv[2]), tempfile.mkdtemp(dir=sys.argv[3])
tfhook = ctypes.CDLL(None)
def cpu():
    return time.process_time_ns()
def block(kind):
    a = cpu()
    if kind != "on":
        tfhook.tfhook_pause()
    profiler = start() if kind == "profiler" else None
    b = cpu()
    run(steps)
    c = cpu()
    if profiler:
        stop(profiler)
    if kind != "on":
        tfhook.tfhook_resume()
    return c - b, (b - a) + (cpu() - c)
kinds = ["off", "on", "profiler"]
for kind in kinds:
    block(kind)
out = []
for _ in range(rounds):
    random.shuffle(kinds)
    out.append({kind: block(kind) for kind in kinds})
print(json.dumps(out))
"""
JOBS = {
    "torch": """
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
data = torch.utils.data.TensorDataset(torch.rand(8192, 128), torch.randint(0, 10, (8192,)))
loader, optimizer = torch.utils.data.DataLoader(data, 64, shuffle=True), torch.optim.SGD(model.parameters(), 0.01)
loss_of = torch.nn.CrossEntropyLoss()
def batches():
    while True:
        yield from loader
source = batches()
def run(n):
    for _ in range(n):
        x, y = next(source)
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
def start():
    p = torch.profiler.profile()
    p.start()
    return p
def stop(p):
    p.stop()
    p.export_chrome_trace(where + "/trace.json")
""",
    "keras": """
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
model = tf.keras.Sequential([tf.keras.layers.Input((128,)), tf.keras.layers.Dense(512, "relu"), tf.keras.layers.Dense(512, "relu"),
                             tf.keras.layers.Dense(10)])
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = tf.random.uniform((8192, 128)), tf.random.uniform((8192,), 0, 10, tf.int32)
data = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (a * 2, b)).batch(64).repeat().prefetch(2)
source = iter(data)
def run(n):
    for _ in range(n):
        model.train_on_batch(*next(source))
def start():
    tf.profiler.experimental.start(where)
    return True
def stop(p):
    tf.profiler.experimental.stop()
""",
}


def measure(name, tmp):
    python = subprocess.run([f"{src}/scripts/python-env", {"torch": "torch", "keras": "main"}[name]], check=True, stdout=subprocess.PIPE,
                            text=True).stdout.strip()
    env = {k: v for k, v in os.environ.items() if not k.startswith("TFHOOK") and k != "LD_PRELOAD"}
    out = f"{tmp}/{name}"
    done = subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", out, "--", python, "-c",
                           COMMON.replace("def cpu", JOBS[name] + "def cpu", 1), str(ROUNDS), str(STEPS), tmp], env=env, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


print(f"{ROUNDS} rounds of {STEPS} steps, processor time of the process")
print(f"{'job':7} {'recorder':12} {'a step':>10} {'more than off (95 % interval)':>36} {'start, stop, write':>20}")
for job in JOBS:
    with tempfile.TemporaryDirectory() as tmp:
        rounds = measure(job, tmp)
    for kind, label in (("off", "-"), ("on", "tfhook"), ("profiler", "its own")):
        step = side_by_side.interval([r[kind][0] / STEPS for r in rounds], 1)[0]
        more = side_by_side.interval([r[kind][0] / r["off"][0] - 1 for r in rounds])
        rest = side_by_side.interval([r[kind][1] for r in rounds], 1)[0]
        text = "%+.2f %% (%+.2f .. %+.2f)" % tuple(100 * v for v in more) if kind != "off" else ""
        print(f"{job:7} {label:12} {step / 1e3:7.0f} us {text:>36} {rest / 1e6:17.1f} ms")
