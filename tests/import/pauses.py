#!/usr/bin/env python3
"""What a trace tells of the host's pauses is used: Python's functions are named and charged (host.python), unless they wait; pauses
within ops that launch are launching, at most 1 ms of them; an op that computes on the host is the program's own code (host.code if
the trace has no function of Python); without a
device, exchanging data while no thread executes ops is communication. Functions around waiting calls are named, too. The .tft made of a trace says the same."""
import json
import os
import subprocess

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TFHOOK = BUILD + "/bin/tfhook"
STEPS, STEP = 6, 10000  # us
MAIN, OTHER = 100, 101
NORMALIZE = "shop/images.py(390): normalize"


def event(cat, name, at, dur, tid=MAIN, **args):
    return dict(ph="X", cat=cat, name=name, pid=100 if cat not in ("kernel",) else 0, tid=tid, ts=at, dur=dur, args=args)


def trace(name, inside, device=True):
    """Steps of 10 ms: a kernel of 1 ms at the begin, one at the end, each in an op. inside(t): what lies between, 2 to 8 ms."""
    events, n = [], 0
    for i in range(STEPS):
        t = i * STEP
        events.append(event("user_annotation", "ProfilerStep#%d" % i, t, STEP - 5))
        for at in (t + 100, t + 8500) if device else ():
            n += 1
            events.append(event("cpu_op", "aten::mm", at, 20))
            events.append(event("cuda_runtime", "cudaLaunchKernel", at + 5, 8, correlation=n))
            events.append(event("kernel", "gemm", at + 15, 1000, tid=7, device=0, stream=7, correlation=n, grid=[500, 1, 1], block=[256, 1, 1]))
        events += inside(t)
    path = os.path.join(TMP, name + ".json")
    with open(path, "w") as f:
        json.dump({"traceEvents": events}, f)
    return path


def report(path):
    return json.loads(subprocess.check_output([TFHOOK, "report", "--json", path]))


def judge(name, inside, device=True):
    path = trace(name, inside, device)
    r, out = report(path), path[:-5] + ".tft"
    subprocess.check_call([TFHOOK, "import", path, "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    again = report(out)
    assert again["verdict"] == r["verdict"] and again["breakdown"] == r["breakdown"], (name, r["verdict"], again["verdict"])
    v = r["verdict"]
    print("%-12s %s %s %s" % (name, v["cause"], v["evidence"], [a["do"] for a in r["advice"]]))
    return v, {x["name"]: x["share"] for x in r["breakdown"]}, " ".join(a["do"] for a in r["advice"])


# A function of the program's; what it calls of libraries and builtins is its, what runs around it is not.
v, part, do = judge("python", lambda t: [event("python_function", "train.py(9): step", t + 50, 9800),
                                         event("python_function", NORMALIZE, t + 1200, 7000),
                                         event("python_function", "enum.py(5): __call__", t + 1300, 2000),
                                         event("python_function", "<built-in method astype of numpy.ndarray object at 0x1>", t + 3400, 4000)])
assert v["cause"] == "host.python" and NORMALIZE in do and "py-spy" not in do, (v, do)
assert any("7 ms of it in " + NORMALIZE in e for e in v["evidence"]), v

# Of a long path only the last directory is shown.
v, part, do = judge("path", lambda t: [event("python_function", "/app/current/" + NORMALIZE, t + 1200, 7000)])
assert "make " + NORMALIZE in do and any("7 ms of it in " + NORMALIZE in e for e in v["evidence"]), (v, do)

# A function that waits is no code of the program's; who calls it is named all the same.
v, part, do = judge("wait", lambda t: [event("python_function", "train.py(9): step", t + 50, 9800),
                                       event("python_function", "threading.py(300): wait", t + 1000, 7400),
                                       event("python_function", "<built-in method acquire of _thread.lock object at 0x1>", t + 1010, 7380)])
assert v["cause"] == "host.unknown" and any("train.py(9): step" in e for e in v["evidence"]), v
# Of a range that the program named only the name is known.
v, part, do = judge("noted", lambda t: [event("user_annotation", "## postprocess ##", t + 1200, 7000)])
assert v["cause"] == "host.unknown" and any("7 ms of it in ## postprocess ##" in e for e in v["evidence"]), v
v, part, do = judge("inner", lambda t: [event("python_function", "train.py(9): step", t + 50, 9800),
                                        event("user_annotation", "## postprocess ##", t + 1200, 7000)])
assert v["cause"] == "host.python" and any("7 ms of it in ## postprocess ##" in e for e in v["evidence"]), v
# Joining texts is no waiting.
v, part, do = judge("join", lambda t: [event("python_function", "train.py(9): step", t + 50, 9800),
                                       event("python_function", "<built-in method join of str object at 0x1>", t + 1000, 7400)])
assert v["cause"] == "host.python", v


def launches(t, pause, op="aten::addmm", count=9):
    """Ops one after the other, each pausing around its launch of a kernel of 5 us."""
    events = []
    for k in range(count):
        at, n = t + 1200 + k * 790, 1000000 + t + k
        events.append(event("cpu_op", op, at, pause + 40))
        events.append(event("cuda_runtime", "cudaLaunchKernel", at + pause + 20, 8, correlation=n))
        events.append(event("kernel", "small", at + pause + 30, 5, tid=7, device=0, stream=7, correlation=n, grid=[1, 1, 1], block=[32, 1, 1]))
    return events


# Dispatch, and the 40 us from op to op. Before the first op there is a millisecond of which nothing is known.
v, part, do = judge("dispatch", lambda t: launches(t, 710))
assert v["cause"] == "host.launch" and part["launch"] > 0.6 and part["host"] < 0.2, (v, part)
# The same work between the ops instead of in them.
v, part, do = judge("between", lambda t: launches(t, 0))
assert v["cause"] == "host.unknown" and part["launch"] < 0.2 and "with_stack" in do, (v, part, do)
# Making ready for 7 ms is no dispatch.
v, part, do = judge("ready", lambda t: launches(t, 7000, "aten::cudnn_convolution", 1))
assert v["cause"] == "host.unknown" and any("aten::cudnn_convolution" in e for e in v["evidence"]), v
# A thread without ranges was given its work by the one that ran Python; with two such nobody can tell by which.
def given(t, threads):
    calls = [dict(e, tid=50) for e in launches(t, 0) if e["cat"] != "cpu_op"]
    return calls + [event("python_function", "model.py(7): forward", t + 60, 9900, tid=200 + k) for k in range(threads)]


v, part, do = judge("given", lambda t: given(t, 1))
assert v["cause"] == "host.python" and "model.py(7): forward" in do, (v, do)
v, part, do = judge("given_by_two", lambda t: given(t, 2))
assert v["cause"] == "host.unknown", v
# An op on the host that launches nothing.
v, part, do = judge("host_op", lambda t: [event("cpu_op", "aten::normal_", t + 1200, 7000)])
assert v["cause"] == "host.code" and "make aten::normal_ faster" in do, (v, do)
v, part, do = judge("native", lambda t: [event("user_annotation", "Scheduler::prepare", t + 1200, 7000)])
assert v["cause"] == "host.code" and "make Scheduler::prepare faster" in do, (v, do)
# Waiting for another rank in MPI, whose calls nsys writes as ranges.
v, part, do = judge("mpi", lambda t: [event("user_annotation", "MPI: MPI_Recv", t + 1200, 7000)])
assert v["cause"] == "communication.transfer", v
# Compiling, unless the range launches something.
v, part, do = judge("compiles", lambda t: [event("user_annotation", "KernelExecutor::compileFusion", t + 1200, 7000),
                                           event("cpu_op", "aten::empty", t + 3000, 2000)])
assert v["cause"] == "host.compile" and any("7 ms of it in KernelExecutor::compileFusion" in e for e in v["evidence"]), v
v, part, do = judge("runs", lambda t: [event("user_annotation", "compile mode", t + 1200, 7200)] + launches(t, 0))
assert v["cause"] == "host.unknown", v
# What libraries' functions do, with the ops that they execute.
for cause, stack in (("host.checkpoint", ["train.py(9): step", "torch/serialization.py(940): save", "<built-in method write of _io.BufferedWriter object at 0x1>"]),
                     ("host.logging", ["train.py(9): step", "wandb/sdk/wandb_run.py(1700): log"]),
                     ("host.compile", ["train.py(9): step", "torch/_dynamo/convert_frame.py(600): _compile", "model.py(7): forward"]),
                     ("input.decode", ["train.py(9): step", "PIL/Image.py(2200): resize"]),
                     ("input.unknown", ["train.py(9): step", "queue.py(154): get", "threading.py(300): wait",
                                        "<built-in method acquire of _thread.lock object at 0x1>"]),
                     ("host.sleep", ["train.py(9): step", "<built-in function sleep>"])):
    v, part, do = judge(cause, lambda t: [event("python_function", f, t + 1200 + k, 7000 - 2 * k) for k, f in enumerate(stack)]
                        + [event("cpu_op", "aten::clone", t + 3000, 2000)])
    assert v["cause"] == cause and any("train.py(9): step" in e for e in v["evidence"]), v
# A pause is divided by what was done in it.
v, part, do = judge("divided", lambda t: [event("python_function", "train.py(9): step", t + 1200, 7000),
                                          event("python_function", "torch/serialization.py(940): save", t + 1200, 3000)])
causes = {c["cause"]: c["s_per_step"] for c in report(os.path.join(TMP, "divided.json"))["causes"]}
assert v["cause"] == "host.python" and 0.7 < causes["host.checkpoint"] / causes["host.python"] < 0.8, (v, causes)
# The same op, called from Python.
v, part, do = judge("called_op", lambda t: [event("python_function", "train.py(9): step", t + 50, 9800), event("cpu_op", "aten::normal_", t + 1200, 7000)])
assert v["cause"] == "host.python", v
# An op of the backward pass in a trace of 2021, which knows no categories of its own for ops.
v, part, do = judge("backward", lambda t: [dict(e, cat="Operator") if e["cat"] == "cpu_op" else e
                                           for e in launches(t, 710, "AddmmBackward")])
assert v["cause"] == "host.launch", v

# Calls that wait are named by the function around them: what a loader in the training process calls, not who asks for the batch.
NEXT = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
v, part, do = judge("loader", lambda t: [event("python_function", "train.py(9): step", t + 50, 9800),
                                         event("user_annotation", NEXT, t + 1200, 7000),
                                         event("python_function", "torch/utils/data/dataloader.py(701): __next__", t + 1210, 6980),
                                         event("python_function", NORMALIZE, t + 1300, 6800)])
assert v["cause"] == "input.dataloader" and any("6.8 ms of it in " + NORMALIZE in e for e in v["evidence"]), v
for call, cause in ("cudaDeviceSynchronize", "host.sync"), ("cudaMalloc", "host.alloc"):
    v, part, do = judge(call, lambda t: [event("python_function", "train.py(9): step", t + 50, 9800),
                                         event("python_function", "log.py(3): report", t + 1190, 7020),
                                         event("cuda_runtime", call, t + 1200, 7000, correlation=3000000 + t)])
    assert v["cause"] == cause and any(" of it in log.py(3): report" in e for e in v["evidence"]), v
# Launches have no line, which a trace with functions need not be made again for.
for functions in True, False:
    path = trace("line%d" % functions, lambda t: launches(t, 710) + [event("python_function", "train.py(9): step", t + 50, 9800)] * functions)
    text = subprocess.check_output([TFHOOK, "report", path], text=True)
    assert ("with_stack=True" in text) == (not functions) and "host.launch" in text, text

# No device: 2 ms of ops on the main thread, 6 ms in which another thread exchanges, of them 1 ms while a third computes.
v, part, do = judge("gloo", lambda t: [event("cpu_op", "aten::mm", t + 100, 2000), event("cpu_op", "gloo:all_reduce", t + 2500, 6000, tid=OTHER),
                                       event("cpu_op", "aten::add", t + 3000, 1000, tid=102)], device=False)
assert v["cause"] == "communication.transfer" and 0.48 < part["communication"] < 0.52 and 0.28 < part["compute"] < 0.32, (v, part)

# A call of another rank's function lasts until the answer is there; what is computed here meanwhile is computing.
v, part, do = judge("rpc", lambda t: [event("user_annotation", "rpc_async#f(worker0 -> worker1)", t + 100, 8000),
                                      event("cpu_op", "aten::mm", t + 200, 2000)], device=False)
assert v["cause"].startswith("communication.") and part["communication"] > 0.78 and 0.18 < part["compute"] < 0.22, (v, part)

# A range that the program named for getting or preparing its batch is input, however it numbers these ranges; if it launches, it is not.
for kind, name, cause in ("plain", "data_loading", "input.unknown"), ("numbered", "Load Batch %d", "input.unknown"), \
        ("prepares", "preprocess images", "input.map"), ("copies", "data_transfer", "host.unknown"):
    v, part, do = judge(kind, lambda t: [event("user_annotation", name % (t // STEP) if "%" in name else name, t + 1200, 7000)])
    assert v["cause"] == cause and any("7 ms of it in " + name.split(" %")[0] in e for e in v["evidence"]), (kind, v)
v, part, do = judge("launched", lambda t: launches(t, 710) + [event("user_annotation", "data_loading", t + 1200, 7000)])
assert v["cause"] == "host.launch", v

# Names that differ in their numbers are different places where each has a large part.
v, part, do = judge("layers", lambda t: [event("user_annotation", "table%d" % k, t + 1200 + 3500 * k, 3500) for k in range(2)])
assert any("3.5 ms of it in table0, 3.5 ms of it in table1" in e for e in v["evidence"]), v

# Where a trace with functions of Python names none, recording it with functions of Python once more does not help.
for functions in True, False:
    v, part, do = judge("unnamed%d" % functions, lambda t: [event("python_function", "watch.py(9): idle", t + 50, 900, tid=OTHER)] * functions)
    assert v["cause"] == "host.unknown" and ("once more" in do) == (not functions), (v, do)

# Launches of a thread that captures a graph move nothing, and are no steps: three are captured between any two that run.
def captured(t):
    calls = [("cudaStreamBeginCapture", 1200)] + [("cudaLaunchKernel", 1300 + 900 * k) for k in range(3)] + [("cudaStreamEndCapture", 8000)]
    return [event("cuda_runtime", name, t + at, 5, correlation=2000000 + t + at) for name, at in calls]


path = trace("captured", lambda t: captured(t) + [event("python_function", "graphs.py(9): capture", t + 1100, 7300)])
r = report(path)
assert r["verdict"]["cause"] == "host.python" and "graphs.py" in r["advice"][0]["do"], r["verdict"]
assert sum(k["calls_per_step"] for k in r["kernels"]) == 2, r["kernels"]
