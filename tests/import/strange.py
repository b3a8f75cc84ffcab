#!/usr/bin/env python3
"""What foreign traces have that a training loop on one NVIDIA GPU does not have: a recording that began while work was queued, no
device at all, nothing that repeats, devices of other makers, a launch that takes long, signals between streams that take longer than
the next op of the same, files of other tools in Chrome's format. Each is made here as the real one is built."""
import json
import os
import subprocess

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TFHOOK = BUILD + "/bin/tfhook"
BASE = 1700000000000000


class Trace:
    def __init__(self, **head):
        self.events, self.n, self.head = [], 100, head

    def add(self, cat, name, at, dur, tid=7, pid=7, **args):
        self.events.append(dict(ph="X", cat=cat, name=name, pid=pid, tid=tid, ts=BASE + at, dur=dur, args=args))

    def launch(self, at, start, dur, name="gemm", stream=3, call="cudaLaunchKernel", held=5, recorded=True, cat="kernel",
               runtime="cuda_runtime", key="stream"):
        self.n += 1
        if recorded:
            self.add(runtime, call, at, held, correlation=self.n)
        self.add(cat, name, start, dur, tid=stream, pid=0, device=0, correlation=self.n, **{key: stream})

    def step(self, i, at, dur):
        self.add("user_annotation", "ProfilerStep#%d" % i, at, dur)

    def save(self, name):
        path = os.path.join(TMP, name)
        with open(path, "w") as f:
            json.dump(dict(self.head, traceEvents=self.events), f)
        return path


def run(*args):
    p = subprocess.run([TFHOOK, *args], capture_output=True, text=True)
    return p.returncode, p.stdout, p.stderr


def report(path):
    code, out, err = run("report", "--json", path)
    assert code == 0, (path, code, err)
    return json.loads(out)


def part(r, name):
    return next(b["share"] for b in r["breakdown"] if b["name"] == name)


# The device is 3 ms behind when the recording begins: ops without their calls, but none of them hides a dependency.
t = Trace()
for k in range(40):
    t.launch(0, k * 75, 74, recorded=False)
for i in range(4):
    t.step(i, i * 3000, 3000)
    for k in range(40):
        t.launch(i * 3000 + k * 10, (i + 1) * 3000 + k * 75, 74)
early = t.save("early.json")
r = report(early)
assert r["verdict"]["tier"] == "A" and r["verdict"]["class"] == "compute-bound", r["verdict"]
assert "40 of them without the call that issued them (40 were queued before the recording began)" in run("info", early)[1]
for e in t.events:  # the same in the middle of the recording is no edge
    if e["cat"] == "cuda_runtime" and 3000 <= e["ts"] - BASE < 6000:
        e["args"]["correlation"] = 0
r = report(t.save("holes.json"))
assert r["verdict"]["tier"] == "B", r["verdict"]

# Steps that are all issued ahead: the device works on them after the last call, and it is their time there, too.
t = Trace()
for i in range(10):
    t.launch(i * 30, 20 + i * 8000, 7990)
r = report(t.save("ahead.json"))
whole = {p["kind"]: p["share"] for p in r["tree"]["parts"]}
assert r["verdict"]["class"] == "compute-bound" and whole["step"] > 0.7 and whole.get("after", 0) < 0.25, whole

# A step in which nothing is launched is no reason to know nothing of its neighbour.
t = Trace()
t.step(0, 0, 50)
t.step(1, 60, 9000)
for k in range(10):
    t.launch(100 + k * 800, 110 + k * 800, 60, call="hipLaunchKernel")
r = report(t.save("empty.json"))
assert r["verdict"]["tier"] == "A" and r["verdict"]["class"] == "host-bound", r["verdict"]

# No marks, nothing that repeats: the trace is one step, and says so.
t = Trace()
for k in range(7):
    t.launch(100 + 1000 * k, 108 + 1000 * k, 20 + 13 * k, name="kernel %d" % k)
r = report(t.save("once.json"))
assert r["steps"]["count"] == 1 and r["steps"]["clock"] is None, r["steps"]
assert abs(r["steps"]["median_s"] - 6.1e-3) < 2e-4 and r["verdict"]["class"] == "host-bound", (r["steps"], r["verdict"])
assert "no step repeats" in run("report", "--all", TMP + "/once.json")[1]

# Without a device what ops take is computing, but not what the program does between them, and not a wait for others.
t = Trace()
for i in range(6):
    t.step(i, i * 10000, 10000)
    t.add("cpu_op", "aten::linear", i * 10000 + 10, 6000)
    t.add("cpu_op", "aten::addmm", i * 10000 + 20, 5900)
    t.add("user_annotation", "Optimizer.step#SGD.step", i * 10000 + 6100, 3800)
    t.add("cpu_op", "aten::_foreach_add_", i * 10000 + 6110, 3700)
r = report(t.save("cpu.json"))
assert (r["verdict"]["class"], r["verdict"]["cause"]) == ("compute-bound", "compute.cpu"), r["verdict"]
assert abs(part(r, "compute") - 0.97) < 0.02, r["breakdown"]
for e in t.events:
    if e["name"] == "aten::_foreach_add_":
        e["name"] = "c10d::allreduce_"
r = report(t.save("cpu2.json"))
assert abs(part(r, "compute") - 0.60) < 0.02, r["breakdown"]
old = [dict(e, cat="Operator") for e in t.events]  # until 2022 ops and annotations were of one category
with open(TMP + "/cpu_old.json", "w") as f:
    json.dump({"traceEvents": old}, f)
r = report(TMP + "/cpu_old.json")
assert abs(part(r, "compute") - 0.60) < 0.02, r["breakdown"]

# Intel: its own calls, queues in place of streams, M2D for a copy to the device.
t = Trace()
for i in range(5):
    t.step(i, i * 5000, 5000)
    t.launch(i * 5000 + 10, i * 5000 + 20, 50, name="Memcpy M2D", cat="gpu_memcpy", runtime="xpu_runtime",
             call="urEnqueueUSMMemcpy", key="sycl queue")
    t.launch(i * 5000 + 100, i * 5000 + 120, 4700, runtime="xpu_runtime", call="urEnqueueKernelLaunch", key="sycl queue")
    t.add("xpu_runtime", "urQueueFinish", i * 5000 + 200, 4650, correlation=9000 + i)
r = report(t.save("xpu.json"))
assert r["verdict"]["class"] == "compute-bound" and r["verdict"]["tier"] == "A", r["verdict"]
assert [x["direction"] for x in r["transfers"]] == ["h2d"], r["transfers"]

# The next op waits 17 us for another stream's collective, which no event tells of: it is that collective's time.
t = Trace()
for i in range(5):
    at = i * 20000
    t.step(i, at, 20000)
    for k in range(60):
        t.launch(at + k * 10, at + 100 + k * 101, 100)
    t.launch(at + 95, at + 200, 12000, name="ncclDevKernel_Generic", stream=9)
    for k in range(60):
        t.launch(at + 800 + k * 10, at + 12217 + k * 101, 100)
r = report(t.save("signal.json"))
assert r["verdict"]["class"] == "communication-bound" and r["verdict"]["tier"] == "A", r["verdict"]
assert part(r, "unattributed") < 0.02, r["breakdown"]

# A solver's sweeps, in one order and the other by turns: loops inside of a step, of which none trains and none evaluates.
t, now = Trace(), 0


def wait_for(name, dur):
    global now
    if name == "kernel":
        t.launch(now, now + 8, dur, name="k%d" % dur)
        t.add("cuda_runtime", "cudaDeviceSynchronize", now + 6, dur + 4, correlation=t.n + 100000)
    else:
        t.n += 1
        t.add("cuda_runtime", "cudaMemcpy", now, dur + 10, correlation=t.n)
        t.add("gpu_memcpy", "Memcpy %s (Pageable -> Device)" % name, now + 5, dur, tid=3, pid=0, device=0, correlation=t.n, stream=3)
    now += dur + 12


A, B, H = ("kernel", 60), ("kernel", 61), ("HtoD", 10)
for i in range(8):
    sweeps = [(4, [B]), (16, [H, A]), (1, [B, H, H]), (16, [B, A, A])]
    for n, body in sweeps if i % 2 == 0 else sweeps[::-1]:
        for what in body * n:
            wait_for(*what)
    wait_for("DtoH", 3)
r = report(t.save("sweeps.json"))
assert '"evaluate"' not in json.dumps(r["tree"]), r["tree"]

# Other tools' files in Chrome's format, and other JSON.
for name, data, words in (
        ("tf.json", {"traceEvents": [dict(ph="M", pid=1, name="process_name", args={"name": "/device:GPU:0"}),
                                     dict(ph="X", pid=1, tid=1, ts=1, dur=2, name="fusion")]}, ".xplane.pb beside it"),
        ("chrome.json", [dict(ph="X", cat="blink", pid=1, tid=1, ts=1, dur=2, name="Paint")], "not of PyTorch's profiler"),
        ("rocprof.json", {"rocprofiler-sdk-tool": []}, "rocprofv3"),
        ("et.json", {"schema": "1.1", "nodes": []}, "execution graph")):
    with open(os.path.join(TMP, name), "w") as f:
        json.dump(data, f)
    code, _, err = run("report", os.path.join(TMP, name))
    assert code in (3, 5) and words in err and err.count("\n") == 1, (name, code, err)

# Files of which only the name is a trace's, and what they are instead.
for name in ("a.json", "a.json.gz", "a.xplane.pb", "a.sqlite"):
    with open(os.path.join(TMP, name), "w") as f:
        f.write("version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 5\n")
    code, _, err = run("report", os.path.join(TMP, name))
    assert code == 3 and "git lfs pull" in err and err.count("\n") == 1, (name, code, err)
for name, text, words in ("b.json", "", "empty"), ("c.json", "<!DOCTYPE html>", "no JSON"), ("d.json", "PK\3\4", "unpack"):
    with open(os.path.join(TMP, name), "w") as f:
        f.write(text)
    code, _, err = run("report", os.path.join(TMP, name))
    assert code == 3 and words in err and err.count("\n") == 1, (name, code, err)

# More threads than any process has do not cost memory for each.
t = Trace()
for i in range(70000):
    t.add("cpu_op", "aten::add", i, 1, tid=i)
r = report(t.save("threads.json"))
assert r["quality"]["events"] == 70000, r["quality"]
