#!/usr/bin/env python3
"""What recording costs real PyTorch, Keras and tinygrad jobs, beside the framework's own profiler and LTTng-UST: blocks of steps, one of each
kind in turns, within one process, and the processor time of the process in each. (Two processes that do the same work differ by several
percent, blocks of one do not.)

usage: profiler_cost.py [ROUNDS [STEPS [JOB...]]]    400 rounds of blocks of 100 steps for each job: a quarter of an hour

"off" is a block with recording paused; the recorder's thread runs then, too. "threads of the job" is the processor time of all threads
but the recorder's own, "with the recorder" that and the recorder's threads and processes, both beyond "off" with a 95 % interval. The
frameworks' profilers run as their documentation says, with default settings, in every fourth round; the time that they take to start, to
stop and to write the trace of a block is shown by itself, as one pays it once per profiled part, not per step. LTTng-UST records, in a
quarter of the rounds, what it can of an unmodified program: memory allocations, by its preloaded liblttng-ust-libc-wrapper. uftrace is
not here: it records one library call of a whole Python program, Py_BytesMain. PyTorch and Keras run on the processor, tinygrad on the
simulated GPU.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lttng  # noqa: E402
import side_by_side  # noqa: E402

src, build = os.environ["TFH_SRC"], os.environ["TFH_BUILD"]
ROUNDS, STEPS = ([int(a) for a in sys.argv[1:3]] + [400, 100][len(sys.argv[1:3]):])
BAR = 0.01
WRAPPER = "/usr/lib/%s-linux-gnu/liblttng-ust-libc-wrapper.so.1" % os.uname().machine
COMMON = """
import ctypes, json, os, random, subprocess, sys, tempfile, time
rounds, steps, where, mode = int(sys.argv[1]), int(sys.argv[2]), tempfile.mkdtemp(dir=sys.argv[3]), sys.argv[4]
library = ctypes.CDLL(None)
def recorders():
    used = 0
    for tid in os.listdir("/proc/self/task"):
        with open("/proc/self/task/" + tid + "/comm") as name:
            if not name.read().startswith("tfhook-"):
                continue
        with open("/proc/self/task/" + tid + "/schedstat") as stat:
            used += int(stat.read().split()[0])
    return used
def switch(on):
    if mode == "tfhook":
        (library.tfhook_resume if on else library.tfhook_pause)()
    else:
        subprocess.run(["lttng", "start" if on else "stop"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
def block(kind):
    switch(kind == "on")
    begin = time.process_time_ns()
    profiler = start() if kind == "profiler" else None
    own, a = recorders(), time.process_time_ns()
    run(steps)
    b, own = time.process_time_ns(), recorders() - own
    if profiler:
        stop(profiler)
    return b - a - own, own, (a - begin) + (time.process_time_ns() - b)
kinds = ["off", "on", "profiler"] if mode == "tfhook" else ["off", "on"]
for kind in kinds:
    block(kind)
out = []
for i in range(rounds):
    random.shuffle(kinds)
    out.append({kind: block(kind) for kind in kinds if kind != "profiler" or i % 4 == 0})
switch(True)
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
    "tinygrad": """
import pickle
import numpy as np
from tinygrad import Tensor, TinyJit, device, helpers, nn
Tensor.manual_seed(7)
l1, l2 = nn.Linear(128, 64), nn.Linear(64, 10)
optimizer = nn.optim.SGD([*nn.state.get_parameters(l1), *nn.state.get_parameters(l2)], lr=0.05)
helpers.Context(TRAINING=1).__enter__()
@TinyJit
def train(x, y):
    optimizer.zero_grad()
    loss = l2(l1(x).relu()).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*optimizer.schedule_step())
x, y = np.random.rand(32, 128).astype(np.float32), np.random.randint(0, 10, 32).astype(np.int32)
def run(n):
    for _ in range(n):
        train(Tensor(x).realize(), Tensor(y).realize()).item()
def start():
    context = helpers.Context(PROFILE=1)
    context.__enter__()
    return context
def stop(context):
    context.__exit__(None, None, None)
    events = [helpers.cpu_events, device.Compiled.profile_events, device.Buffer.profile_events]
    with open(where + "/profile.pkl", "wb") as out:
        pickle.dump(events, out)
    for e in events:
        e.clear()
""",
}


def python_of(job, tmp):
    """The interpreter and the environment of a job."""
    name = {"torch": "torch", "keras": "main", "tinygrad": "main"}[job]
    python = subprocess.run([f"{src}/scripts/python-env", name], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    env = {k: v for k, v in os.environ.items() if not k.startswith("TFHOOK") and k != "LD_PRELOAD"}
    if job == "tinygrad":
        env.update(DEV="CUDA:PTX", LD_LIBRARY_PATH=f"{build}/sim", XDG_CACHE_HOME=tmp, TFHOOK_CUPTI="off")
    return python, env


def command(job, mode, tmp, rounds):
    """The command and the environment of a job in blocks."""
    python, env = python_of(job, tmp)
    return [python, "-c", COMMON.replace("def recorders", JOBS[job] + "def recorders", 1), str(rounds), str(STEPS), tmp, mode], env


def rounds_of(argv, env):
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def with_tfhook(job, tmp):
    argv, env = command(job, "tfhook", tmp, ROUNDS)
    return rounds_of([f"{build}/bin/tfhook", "run", "-q", "-o", f"{tmp}/run", "--", *argv], env)


def with_lttng(job, tmp, daemon):
    """A quarter of the rounds, and nanoseconds of LTTng's daemons in a block that was recorded."""
    argv, env = command(job, "lttng", tmp, ROUNDS // 4)
    daemon.begin(f"{tmp}/lttng", "lttng_ust_libc:*")
    before = lttng.consumed()
    rounds = rounds_of(argv, {**env, "LTTNG_HOME": daemon.home, "LD_PRELOAD": WRAPPER})
    daemon.end()
    return rounds, (lttng.consumed() - before) * 1e9 / len(rounds)


def percent(values):
    return "%+.2f %% (%+.2f .. %+.2f)" % tuple(100 * v for v in values)


def row(job, label, rounds, kind, daemons=0):
    """`daemons`: nanoseconds of other processes in a block. Returns the upper bound of what is added in all."""
    rounds = [r for r in rounds if kind in r]
    step = statistics.median(r[kind][0] / STEPS for r in rounds)
    print(f"{job:9} {label:13} {step / 1e3:8.0f} us", end="")
    if kind == "off":
        print()
        return 0
    threads = side_by_side.interval([r[kind][0] / r["off"][0] - 1 for r in rounds])
    whole = side_by_side.interval([(sum(r[kind][:2]) + daemons) / sum(r["off"][:2]) - 1 for r in rounds])
    rest = "%5.0f ms" % (statistics.median(r[kind][2] for r in rounds) / 1e6) if kind == "profiler" else ""
    print(f" {percent(threads):>28} {percent(whole):>28} {rest}", flush=True)
    return whole[2]


def measure(job, daemon):
    """Prints a job's rows; returns the upper bound of what tfhook adds."""
    with tempfile.TemporaryDirectory() as tmp:
        rounds = with_tfhook(job, tmp)
        row(job, "-", rounds, "off")
        upper = row(job, "tfhook", rounds, "on")
        row(job, "its profiler", rounds, "profiler")
        if daemon:
            rounds, others = with_lttng(job, tmp, daemon)
            row(job, "LTTng-UST", rounds, "on", others)
    return upper


def main():
    print(f"{ROUNDS} rounds of blocks of {STEPS} steps; processor time")
    print(f"{'job':9} {'recorder':13} {'a step':>11} {'more: threads of the job':>28} {'with the recorder':>28} start, stop")
    daemon = lttng.Daemon() if lttng.available() and os.path.exists(WRAPPER) else None
    try:
        upper = {job: measure(job, daemon) for job in sys.argv[3:] or JOBS}
    finally:
        if daemon:
            daemon.close()
    if not daemon:
        print("LTTng-UST is not installed: left out")
    print("; ".join("%s: the bar of 1 %% is %s" % (job, "held" if most < BAR else "not held") for job, most in upper.items()))


if __name__ == "__main__":
    main()
