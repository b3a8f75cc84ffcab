#!/usr/bin/env python3
"""Layers of a network are no steps: launches that come again inside one call of a module, inside a range that the program
named, or in the smaller part of the time, make no steps of an imported trace; calls of such ranges do, where there are
several, and PyTorch's optimizers end steps where nothing marks them. One batch is one step. The profiler's own wait at the
end of a trace is not the program's; a trace in which nothing ran is said to be one. Nor is the work from before the trace
its own, for which its first ops or the program itself wait. What only comes again is no step beyond doubt. One or two steps promise no
gain, and what comes again inside marked steps is no part of the run. An only step that is marked lasts as long as its mark. A long first
launch of a kernel is compiling. On a processor, only ops of which nothing else is in the trace make steps."""
import json
import os
import subprocess

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TFHOOK = BUILD + "/bin/tfhook"
BASE = 1700000000000000  # us


class Trace:
    def __init__(self):
        self.events, self.n = [], 0

    def add(self, cat, name, at, dur, pid=100, tid=100, **args):
        self.events.append(dict(ph="X", cat=cat, name=name, pid=pid, tid=tid, ts=BASE + at, dur=dur, args=args))

    def launch(self, name, at, start, dur):
        self.n += 1
        self.add("cuda_runtime", "cudaLaunchKernel", at, 5, correlation=self.n)
        self.add("kernel", name, start, dur, pid=0, tid=7, device=0, stream=7, correlation=self.n)

    def layers(self, at, n, us=100):
        """n alike layers of two kernels, which run while they are launched."""
        for i in range(n):
            self.launch("gemm", at + i * us, at + i * us + 10, us // 2)
            self.launch("relu", at + i * us + 10, at + i * us + 10 + us // 2, us // 3)
        return at + n * us

    def report(self, name, *flags, code=0):
        path = TMP + "/" + name + ".json"
        with open(path, "w") as f:
            json.dump({"schemaVersion": 1, "traceEvents": self.events}, f)
        r = subprocess.run([TFHOOK, "report", "--json", *flags, path], capture_output=True, text=True)
        assert r.returncode == code, (name, r.returncode, r.stderr)
        if code:
            return r.stderr
        kept = TMP + "/" + name + ".tft"
        subprocess.run([TFHOOK, "import", path, "-o", kept], check=True, capture_output=True)
        again = json.loads(subprocess.run([TFHOOK, "report", "--json", kept], capture_output=True, text=True).stdout)
        d = json.loads(r.stdout)
        assert again["steps"] == d["steps"] and again["verdict"] == d["verdict"], (name, again["steps"], d["steps"])
        return d


def one_call(cat, name):
    """Twelve layers inside one call."""
    t = Trace()
    t.add(cat, name, 0, 1300)
    t.layers(50, 12)
    return t


def main():
    for i, (cat, name) in enumerate([("user_annotation", "model_inference"), ("python_function", "nn.Module: Net_0"),
                                     ("cpu_op", "CompiledFunction")]):
        s = one_call(cat, name).report("one%d" % i)["steps"]
        assert s["count"] == 1 and s["clock"] is None, (name, s)

    # A function of Python may hold the whole loop: it says nothing about steps.
    s = one_call("python_function", "train.py(7): main").report("loop")["steps"]
    assert s["clock"] == "period" and s["count"] >= 8, s
    t = Trace()
    t.layers(0, 60)
    d = t.report("many")
    assert d["steps"]["clock"] == "period" and d["steps"]["count"] >= 50, d["steps"]
    assert d["verdict"]["confidence"] == "medium", d["verdict"]

    # Several such calls, whose names differ in numbers, are the steps.
    t = Trace()
    for i in range(6):
        t.add("user_annotation", "step[EXTEND bs=%d]" % i, i * 1000, 900)
        t.layers(i * 1000 + 20, 8)
    s = t.report("several")["steps"]
    assert s["clock"] == "mark" and s["clock_name"] == "step" and s["count"] == 5, s
    assert abs(s["median_s"] - 0.001) < 2e-5, s

    # Calls that launch nothing are none, even if their names differ in numbers only.
    t = Trace()
    t.add("user_annotation", "stage 0", 0, 1300)
    t.layers(50, 12)
    for i in range(20):
        t.add("user_annotation", "stage 3", 1400 + 50 * i, 20)
    s = t.report("stages")["steps"]
    assert s["count"] == 1 and s["clock"] is None, s

    # What comes again beside one part that takes most of the time is a detail of that work; beside a pause it is not.
    for part in "encoder", "pause":
        t = Trace()
        at = t.layers(0, 2)
        for i in range(60 if part == "encoder" else 1):
            t.launch("encode%d" % i, at, at + 10, 90)
            at += 100
        d = t.layers(at + (0 if part == "encoder" else 6000), 14) and t.report(part)
        assert (d["steps"]["clock"] is None) == (part == "encoder"), (part, d["steps"])

    # Optimizers end steps.
    t = Trace()
    for i in range(6):
        end = t.layers(i * 1000, 8)
        t.add("user_annotation", "Optimizer.step#SGD.step", end, 100)
        t.launch("sgd", end + 10, end + 20, 30)
    s = t.report("updates")["steps"]
    assert s["clock"] == "mark" and s["clock_name"] == "Optimizer.step" and s["count"] == 5, s
    assert abs(s["median_s"] - 0.001) < 2e-5, s

    # What comes again only in the smaller part of the time.
    t = Trace()
    t.launch("first", 0, 10, 20)
    t.add("cpu_op", "compile_it", 100, 5000)
    t.layers(5200, 12)
    d = t.report("part")
    assert d["steps"]["count"] == 1 and d["verdict"]["class"] == "host-bound", (d["steps"], d["verdict"])

    # One batch: a third of the time.
    t = Trace()
    t.add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 10000)
    t.add("cpu_op", "aten::linear", 10000, 20000)
    d = t.report("batch")
    assert d["steps"]["count"] == 1 and d["steps"]["clock"] is None, d["steps"]
    assert d["verdict"]["class"] == "input-bound", d["verdict"]
    assert abs(d["verdict"]["share"] - 1 / 3) < 0.01, d["verdict"]

    # The device was busy until 50 ms with what the trace does not hold. A kernel that its first call loads for so long is
    # no such case, nor is a device that waits for the host.
    for case in "busy", "loads", "idle":
        t = Trace()
        t.launch("first", 0, 10, 20)
        at = 50000
        for i in range(1, 20):
            issue = 100 + 10 * i if case == "busy" else 49980 + 10 * i
            t.launch("k%d" % i, issue, at, 1000 + 100 * i)
            at += 1005 + 100 * i
        if case == "loads":
            load = next(e for e in t.events if e["args"].get("correlation") == 2 and e["cat"] == "cuda_runtime")
            load["dur"] += load["ts"] - BASE - 100
            load["ts"] = BASE + 100
        d = t.report(case)
        said = [x for x in d["remarks"] if "work from before the trace" in x]
        assert d["steps"]["clock"] is None and d["steps"]["count"] == 1, (case, d["steps"])
        assert bool(said) == (case == "busy"), (case, d["remarks"])
        if said:
            assert "for 50.0 ms with work from before the trace: not counted" in said[0], said
            assert d["verdict"]["class"] == "compute-bound", d["verdict"]
            assert abs(d["steps"]["median_s"] - 0.0381) < 2e-4, d["steps"]
        else:
            assert d["verdict"]["class"] == "host-bound" and d["steps"]["median_s"] > 0.085, (case, d["verdict"])

    # A program that waits before it launches anything waits for what the trace does not hold, too.
    t = Trace()
    t.add("cuda_runtime", "cudaDeviceSynchronize", 0, 60000, correlation=900)
    for i in range(1, 20):
        t.launch("k%d" % i, 60000 + 300 * i, 60020 + 300 * i, 50)
    d = t.report("waits")
    assert any("for 60.0 ms with work from before the trace: not counted" in x for x in d["remarks"]), d["remarks"]
    assert d["verdict"]["cause"] == "host.launch" or d["verdict"]["cause"] == "host.unknown", d["verdict"]
    assert d["steps"]["median_s"] < 0.01, d["steps"]

    # The only step lasts as long as its mark, although the device is done early (a graph is captured).
    t = Trace()
    t.add("user_annotation", "ProfilerStep#7", 0, 30000)
    t.launch("fill", 500, 520, 5)
    t.add("python_function", "graphs.py(9): capture", 600, 29000)
    d = t.report("only")
    assert abs(d["steps"]["median_s"] - 0.03) < 1e-4, d["steps"]
    assert d["verdict"]["cause"] == "host.python" and d["verdict"]["share"] > 0.9, d["verdict"]

    # The first launch of a kernel loads it, if it takes long; a long launch of a kernel launched before is launching.
    for first in True, False:
        t = Trace()
        for i in range(40):
            t.launch("k%d" % (i if first else i % 3), i * 6000, i * 6000 + 5010, 100)
            t.events[-2]["dur"] = 5000 if i >= 6 else 8
        d = t.report("loading%d" % first)
        assert d["verdict"]["cause"] == ("host.compile" if first else "host.launch"), (first, d["verdict"])

    # Where only launches tell steps, parts that begin alike but go on differently are parts of one step.
    for parts in (("abc", "de", "fgh", "i"), ("abc",)):
        t, at = Trace(), 0
        for k in "uvw" * (len(parts) > 1):
            t.launch(k, at, at + 10, 40)
            at += 100
        for i in range(24):
            for k in ("norm",) + tuple(parts[(i * i + i // 5) % len(parts)]):
                t.launch(k, at, at + 10, 40)
                at += 100
        d = t.report("parts%d" % len(parts))
        assert (d["steps"]["clock"], d["steps"]["total"]) == ((None, 1) if len(parts) > 1 else ("period", 24)), d["steps"]

    # The report says what a compiler made of a step, and mentions an optimizer only where weights change.
    for name in "triton_poi_fused_add_0", "triton_poi_fused_add_native_layer_norm_backward_1":
        t = Trace()
        for i in range(40):
            t.launch(name, i * 1000, i * 1000 + 10, 20)
            t.add("cpu_op", "aten::add", i * 1000 - 900, 950)
        do = t.report("compiled%d" % ("backward" in name))["advice"][0]["do"]
        assert "it is compiled" in do and ("optimizer" in do) == ("backward" in name), do

    # The last call of a loader, after which nothing is launched, delivered no batch.
    t = Trace()
    for i in range(6):
        t.add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", i * 20000, 10000 if i < 5 else 50)
        if i < 5:
            t.layers(i * 20000 + 10100, 12)
    d = t.report("loader")
    assert (d["steps"]["clock"], d["steps"]["total"]) == ("iterator", 5) and d["verdict"]["class"] == "input-bound", (d["steps"], d["verdict"])

    # Two steps, of which the first one loads what both need, promise nothing; three do.
    for n in 3, 4:
        t = Trace()
        for i in range(n):
            t.add("user_annotation", "ProfilerStep#%d" % i, i * 20000, 20000)
            t.layers(i * 20000 + (4000 if i else 12000), 12)
        d = t.report("marked%d" % n)
        assert d["steps"]["clock"] == "mark" and d["verdict"]["class"] == "host-bound", (d["steps"], d["verdict"])
        assert d["whatif"] and all(bool(w["no_bound"]) == (n == 3) for w in d["whatif"]), (n, d["whatif"])

    # The run is made of the steps that are marked, whatever comes again inside them.
    t = Trace()
    for i in range(5):
        t.add("user_annotation", "ProfilerStep#%d" % i, i * 20000, 20000)
        for k in range(3 + 2 * i):
            t.launch("gemm", i * 20000 + 5000 + k * 300, i * 20000 + 5010 + k * 300, 100)
            t.add("cuda_runtime", "cudaStreamSynchronize", i * 20000 + 5010 + k * 300, 110, correlation=1000 * i + k + 500)
        t.launch("last%d" % i, i * 20000 + 9000, i * 20000 + 9010, 100)
    d = t.report("inside")
    parts = {p["kind"]: p for p in d["tree"]["parts"]}
    assert d["steps"]["clock"] == "mark" and parts["step"]["count"] == d["steps"]["total"] == 5, (d["steps"], d["tree"])
    assert parts["step"]["wall_s"] > 0.9 * d["tree"]["wall_s"], d["tree"]

    # One launch.
    t = Trace()
    t.launch("one", 0, 40, 2)
    t.events[0]["dur"] = 40
    d = t.report("once")
    assert d["verdict"]["text"].startswith("issuing 1 launch takes"), d["verdict"]

    # The profiler's wait makes neither a step of its own nor a device of a program without one.
    t = Trace()
    t.add("python_function", "run.py(3): main", 0, 90000)
    for i in range(20):
        t.add("cpu_op", "aten::mm", i * 1000, 1000)
    t.add("cuda_runtime", "cudaDeviceSynchronize", 20100, 69000, correlation=1)
    t.add("python_function", "torch/cuda/__init__.py(367): __exit__", 89200, 100)
    d = t.report("stop")
    assert d["verdict"]["cause"] == "compute.cpu" and d["verdict"]["share"] > 0.98, d["verdict"]
    # Steps last until the device has done their work, even if the program only launches it and the profiler waits for it.
    t = Trace()
    for i in range(5):
        t.add("user_annotation", "ProfilerStep#%d" % i, i * 1000, 990)
        for k in range(4):
            t.launch("abcd"[k], i * 1000 + k * 200, 100 + i * 20000 + k * 5000, 5000)
    t.add("cuda_runtime", "cudaDeviceSynchronize", 5000, 145100, correlation=1000)
    d = t.report("behind")
    parts = {p["kind"]: p["wall_s"] for p in d["tree"]["parts"]}
    assert 0.095 < parts["step"] < 0.105, d["tree"]

    # On a processor, ops that come again are steps, unless something is before or after all of them: then they are layers.
    for around in False, True:
        t, at = Trace(), 0
        for op in ["embedding"] * around + ["linear", "relu", "add_"] * 8 + ["cross_entropy"] * around:
            t.add("cpu_op", "aten::" + op, at, 900)
            at += 1000
        d = t.report("processor%d" % around)
        assert (d["steps"]["clock"], d["steps"]["total"]) == ((None, 1) if around else ("period", 8)), (around, d["steps"])
        assert d["verdict"]["cause"] == "compute.cpu" and "torch.cuda" in d["advice"][0]["do"], (d["verdict"], d["advice"])
    t = Trace()
    t.add("cuda_runtime", "cudaGetDeviceCount", 0, 5, correlation=1)
    t.add("cuda_runtime", "cudaDeviceSynchronize", 10, 90000, correlation=2)
    assert "without a single launch, op or kernel" in t.report("nothing", code=5)


main()

# What a program releases at its end belongs to the time of which a period must cover half.
for freed in 200, 5000:
    t = Trace()
    end = t.layers(0, 12)
    t.add("cuda_runtime", "cudaFree", end, freed, correlation=900)
    d = t.report("freed%d" % freed)
    assert (d["steps"]["clock"] == "period") == (freed == 200), (freed, d["steps"])

# The device's rows alone show steps by their annotations, one for each stream.
t = Trace()
for i in range(6):
    for stream, at, dur in ((7, 0, 800), (20, 300, 650)):
        t.add("kernel", f"gemm{stream}", i * 1000 + at, dur, pid=0, tid=stream, device=0, stream=stream)
        t.add("gpu_user_annotation", f"ProfilerStep#{i + 3}", i * 1000 + at, dur, pid=0, tid=stream)
d = t.report("device")
assert (d["steps"]["clock"], d["steps"]["total"], d["verdict"]["class"]) == ("mark", 6, "compute-bound"), (d["steps"], d["verdict"])

# Numbers that are left out show that the profiler was off: no time of a step, whether it is short or long.
for off in 5000, 30000, 400000:
    t = Trace()
    for i in range(8):
        at = i * 10000 + off * (i > 3)
        t.add("user_annotation", f"ProfilerStep#{i + 20 * (i > 3)}", at, 9990)
        for k in range(8):
            t.launch(f"gemm{k}", at + k * 1000, at + k * 1000 + 20, 900)
    d = t.report(f"off{off}")
    parts = {p["kind"]: p["wall_s"] for p in d["tree"]["parts"]}
    mean = d["steps"]["total_s"] / d["steps"]["count"]
    assert d["steps"]["total"] == 8 and 0.0095 < mean < 0.0101, (off, d["steps"])
    assert parts["step"] < 0.081 and abs(parts["between"] - off / 1e6) < 0.003, (off, parts)


def on_processor(name, around=None, updates=False):
    """Eight steps of unequal ops on a processor."""
    t, at = Trace(), 0
    t.add("cpu_op", "aten::randn", at, 900)
    for i in range(8):
        at = 1000 + i * 10000
        if around:
            t.add("user_annotation", around, at, 9900)
        for k in range(3 + i % 3):
            t.add("cpu_op", "aten::mm", at + k * 1000, 950)
        t.add("cpu_op", "aten::sum", at + 7000, 2000)
        if updates:
            t.add("user_annotation", "Optimizer.step#SGD.step", at + 9000, 900)
    return t.report(name)["steps"]


# On a processor, too, optimizers end steps; so does what the program named, if it takes most of the time.
plain, updated, annotated = on_processor("cpu0"), on_processor("cpu1", updates=True), on_processor("cpu2", around="inference")
assert (plain["clock"], updated["clock_name"], updated["total"]) == (None, "Optimizer.step", 8), (plain, updated)
assert (annotated["clock"], annotated["clock_name"], annotated["total"]) == ("mark", "inference", 8), annotated

# What TorchDynamo does is compiling, not computing.
t = Trace()
t.add("cpu_op", "dynamo", 0, 900000)
t.add("cpu_op", "entire_frame_compile", 1000, 890000)
t.add("cpu_op", "aten::empty", 5000, 500000)
t.add("cpu_op", "aten::mm", 900100, 90000)
d = t.report("dynamo")
assert d["verdict"]["cause"] == "host.compile", d["verdict"]

# PyTorch does not escape the quotes in the names of functions.
t, path, quoted = Trace(), TMP + "/quotes.json", 'config.py(0): "combo_kernels"'
t.add("cpu_op", "aten::mm", 0, 90000)
with open(path, "w") as f:
    f.write(json.dumps({"traceEvents": t.events}).replace("aten::mm", quoted))
r = subprocess.run([TFHOOK, "report", path], capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"})
assert r.returncode == 0 and quoted in r.stdout, r
