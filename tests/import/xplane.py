#!/usr/bin/env python3
"""XPlane traces: a step marked by the program or found on the devices, streams of several GPUs, launches by correlation number,
iterators of tf.data and their stages, and what XLA executes on a CPU, come out as calls, ops and steps; a TensorBoard log directory is its newest session; broken
and foreign files are rejected with exit code 3 and one line. The files are written here from the field numbers of xplane.proto."""
import json
import os
import subprocess
import sys

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
DUMP, TFHOOK = BUILD + "/tests/import/dump", BUILD + "/bin/tfhook"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from xspace import MS, START, Plane, field  # noqa: E402


def space(steps=3, marked=True, named=False, gpus=2):
    host, devices = Plane("/host:CPU"), []
    main, loader, correlation = [], [], 0
    streams = {g: ([], []) for g in range(gpus)}
    found = {g: [] for g in range(gpus)}
    for i in range(steps):
        t = i * 10 * MS
        if marked:
            main.append(("train", t, 10 * MS, {"_r": 1, "step_num": 100 + i}))
        main.append(("IteratorGetNextOp::DoCompute", t + MS, 2 * MS, {"id": 77, "group_id": i}))
        main.append(("Iterator::Root", t + MS + 1000, 2 * MS - 2000, {"id": 5}))
        main.append(("Iterator::Root::Prefetch", t + MS + 2000, 2 * MS - 5000, {"id": 6, "parent_id": 5}))
        loader.append(("Iterator::Root::Prefetch::Map", t + MS, 1900000, {"id": 7, "parent_id": 6}))
        main.append(("ExecutorState::Process", t + 3 * MS + 1, 50000, {"id": 1}))
        main.append(("MemoryAllocation", t + 3 * MS + 2, 0, {}))
        for g in range(gpus):
            correlation += 1
            at = t + 4 * MS + g * 20000
            link = {"correlation_id": correlation, "context_id": "$$%d" % (g + 1)}
            main.append(("cuMemcpyHtoDAsync_v2" if named else "MemcpyH2D", at, 9000,
                         dict(link, memcpy_details="size:8192 dest:%d async:1" % g)))
            details = {"memcpy_details": "kind_src:pageable kind_dst:device size:8192 dest:0 async:1"}
            streams[g][1].append(("MemcpyH2D", at + 9000, 5000, dict(link, **details)))
            correlation += 1
            link = dict(link, correlation_id=correlation)
            main.append(("cuLaunchKernel" if named else "gemm", at + 10000, 5000,
                         dict(link, **{"kernel_details*": "regs:38 shm:0 grid:160,1,1 block:1024,1,1"})))
            kernel = {"kernel_details*": "regs:38 shm:64 grid:160,2,1 block:1024,1,1", "group_id": i}
            streams[g][0].append(("gemm" if g else "ncclDevKernel_AllReduce", at + 20000, 3 * MS + g * 1000, dict(link, **kernel)))
            found[g].append((str(i), at + 20000, 3 * MS + g * 1000, {"group_id": i}))
    host.line("python3", main, 1234)
    host.line("tf_data_iterator_resource/9", loader, 99)
    out = host.pack()
    for g in range(gpus):
        d = Plane("/device:GPU:%d" % g)
        d.own = field(6, d.stat("core_count", 80 + g))
        d.line("Stream #%d(Compute)" % (13 + g * 10), streams[g][0], 13)
        d.line("Stream #%d(MemcpyH2D)" % (14 + g * 10), streams[g][1], 14)
        d.line("TensorFlow Ops", found[g], 15)
        d.line("Steps", found[g], 16)
        out += d.pack()
    return out + Plane("Task Environment").pack() + field(4, "worker-1")


def write(name, data):
    path = os.path.join(TMP, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


def dump(path):
    run = subprocess.run([DUMP, path], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def check(d, marked=True, named=False):
    assert d["source"] == 2 and d["start"] == START + (0 if marked else MS), d["start"]
    (p,) = d["processes"]
    first = 0 if marked else MS
    assert p["host"] == "worker-1" and p["processors"] == 81 and p["n_ops"] == 12 and p["unissued"] == 0
    marks = [e for e in p["events"] if e["kind"] == 5]
    assert [(m["w"][0], m["t1"] - m["t0"]) for m in marks] == ([(100 + i, 10 * MS) for i in range(3)] if marked else
                                                              [(i, 3 * MS + 1000) for i in range(3)]), marks
    batches = [e for e in p["events"] if e["family"] == 32]
    assert len(batches) == 3 and all(b["fn"] == "IteratorGetNextOp::DoCompute" and b["t1"] - b["t0"] == 2 * MS for b in batches)
    stages = [e for e in p["events"] if e["family"] == 33]
    own = {e["name"]: e["w"][2] for e in stages}
    assert own == {"Iterator::Root": 3000, "Iterator::Root::Prefetch": 2 * MS - 5000, "Iterator::Root::Prefetch::Map": 1900000}, own
    kernels = [o for o in p["ops"] if o["kind"] == 1]
    assert [(o["device"], o["stream"], o["communication"], o["name"]) for o in kernels] == 3 * [
        (0, 13, True, "ncclDevKernel_AllReduce"), (1, 23, False, "gemm")], kernels
    assert all(o["grid"] == 160 | 2 << 32 | 1 << 48 and o["block"] == 1024 | 1 << 11 | 1 << 22 | 64 << 32 for o in kernels)
    for i, o in enumerate(kernels):
        assert o["issue0"] == i // 2 * 10 * MS + 4 * MS + i % 2 * 20000 + 10000 - first, o
    copies = [o for o in p["ops"] if o["kind"] == 2]
    assert all(o["bytes"] == 8192 and o["dir"] == 1 and o["pageable"] for o in copies) and len(copies) == 6
    calls = [e for e in p["events"] if e["family"] in (1, 3)]
    assert {e["fn"] for e in calls} == {"cuMemcpyHtoDAsync_v2", "cuLaunchKernel"} and len(calls) == 12, calls
    assert "MemoryAllocation" not in {e["name"] for e in p["events"]}
    assert "ExecutorState::Process" in {e["name"] for e in p["events"] if e["kind"] == 6}


def refused():
    whole = space()
    cases = {"cut.xplane.pb": whole[:len(whole) // 2], "text.xplane.pb": b"hello, world", "empty.xplane.pb": b"",
             "zero.xplane.pb": b"\0" * 1000, "big.xplane.pb": b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + b"x" * 100,
             "none.xplane.pb": Plane("/host:CPU").pack()}
    for name, data in cases.items():
        run = subprocess.run([TFHOOK, "report", write(name, data)], capture_output=True, text=True, timeout=20)
        want = 5 if name == "none.xplane.pb" else 3
        assert run.returncode == want and run.stderr.count("\n") == 1 and name in run.stderr, (name, run.returncode, run.stderr)
    # Any byte may be wrong: no crash, and an answer in time.
    for at in range(0, len(whole), 97):
        data = whole[:at] + bytes([whole[at] ^ 0xff]) + whole[at + 1:]
        run = subprocess.run([DUMP, "-s", write("bent.xplane.pb", data)], capture_output=True, timeout=20)
        assert run.returncode in (0, 3), (at, run.returncode, run.stderr)


def directory():
    write("log/plugins/profile/2026_01_01_00_00_00/a.xplane.pb", space(steps=2))
    write("log/plugins/profile/2026_01_02_00_00_00/a.xplane.pb", space())
    for view in "a.trace.json.gz", "perfetto_trace.json.gz":  # of what is in the XPlane file
        write("log/plugins/profile/2026_01_02_00_00_00/" + view, b"")
    check(dump(TMP + "/log"))
    report = json.loads(subprocess.check_output([TFHOOK, "report", "--json", TMP + "/log"]))
    assert report["run"]["source"] == "xplane" and report["quality"]["gpu_times"] == "imported", report["run"]


def tpu():
    """A TPU has a line of ops and one of what runs beside them in place of streams; its steps are those of its line of steps."""
    host, chip = Plane("/host:CPU"), Plane("/device:TPU:0")
    host.line("main", [("PjitFunction(f)", 0, 40 * MS, {})], 1)
    ops = []
    for i in range(4):
        ops += [("%fusion.1 = f32[8]{0} fusion()", i * 10 * MS, 6 * MS, {}), ("%all-reduce.2 = f32[8]{0}", i * 10 * MS + 6 * MS, 3 * MS, {}),
                ("%copy-done.3 = f32[8]{0}", i * 10 * MS + 9 * MS, MS // 2, {})]
    chip.line("XLA Modules", [("jit_f(1)", 0, 40 * MS, {})], 1)
    chip.line("XLA Ops", ops, 2)
    chip.line("Steps", [("%d" % i, i * 10 * MS, 10 * MS, {}) for i in range(4)], 3)
    data = b"".join(p.pack() for p in (chip, host))
    d = dump(write("tpu.xplane.pb", data))
    p = d["processes"][0]
    assert [(o["kind"], o["t1"] - o["t0"]) for o in p["ops"][:3]] == [(1, 6 * MS), (1, 3 * MS), (2, MS // 2)], p["ops"][:3]
    report = json.loads(subprocess.check_output([TFHOOK, "report", "--json", TMP + "/tpu.xplane.pb"]))
    assert report["steps"]["clock"] == "mark" and abs(report["steps"]["median_s"] - 0.01) < 0.0006, report["steps"]
    parts = {b["name"]: b["share"] for b in report["breakdown"]}
    assert report["verdict"]["class"] == "communication-bound" and abs(parts["compute"] - 0.6) < 0.04, (report["verdict"], parts)
    assert [k["name"] for k in report["kernels"]] == ["fusion.1"], report["kernels"]
    # XLA's text of a copy tells which of its ends is in the host's memory, which is S(5).
    host_memory, own, fast = ("f32[8,8]{1,0:T(8,128)%s}" % s for s in ("S(5)", "", "S(1)"))
    for to, of, cause in ((own, host_memory, "h2d-pinned"), (host_memory, own, "d2h"), (fast, own, "d2d")):
        tuple_ = "(%s, %s, u32[]{:S(2)})" % (to, of)
        chip = Plane("/device:TPU:0")
        ops = [("%%copy-start.1 = %s copy-start(%s %%p)" % (tuple_, of), 0, 1000, {}),
               ("%%copy-done.1 = %s copy-done(%s %%copy-start.1)" % (to, tuple_), 1000, 8 * MS, {}), ("%fusion = f32[8]", 9 * MS, MS // 2, {})]
        chip.line("XLA Ops", [(name, i * 10 * MS + at, took, {}) for i in range(4) for name, at, took, _ in ops], 2)
        chip.line("Steps", [("%d" % i, i * 10 * MS, 10 * MS, {}) for i in range(4)], 3)
        report = json.loads(subprocess.check_output([TFHOOK, "report", "--json", write("ends.xplane.pb", chip.pack() + host.pack())]))
        assert report["verdict"]["cause"] == "transfer." + cause, (cause, report["verdict"])
    # However many copies a step waits for, they are not small ones: their sizes are not told.
    chip = Plane("/device:TPU:0")
    chip.line("XLA Ops", [("%%copy-done.%d = f32[8]{0}" % j, i * 10 * MS + j * MS // 20, MS // 20, {}) for i in range(4) for j in range(198)], 2)
    chip.line("Steps", [("%d" % i, i * 10 * MS, 10 * MS, {}) for i in range(4)], 3)
    report = json.loads(subprocess.check_output([TFHOOK, "report", "--json", write("copies.xplane.pb", chip.pack() + host.pack())]))
    assert (report["verdict"]["class"], report["verdict"]["cause"]) == ("transfer-bound", "transfer.d2d"), report["verdict"]


def modules():
    """Where nothing tells steps, the program that a chip runs again and again, and that takes most of its time, makes them."""
    chip, other = Plane("/device:TPU:0"), Plane("/device:TPU:1")
    for plane, us in ((chip, 8000), (other, 7000)):
        ops = [("%fusion.1 = f32[8]{0} fusion()", i * 10 * MS, us * 1000, {}) for i in range(6)]
        ran = [("jit_train_step(77)", i * 10 * MS, us * 1000, {}) for i in range(6)]
        ran += [("jit_convert(%d)" % i, i * 10 * MS + 9 * MS, MS // 10, {}) for i in range(6)]
        plane.line("XLA Modules", ran, 1)
        plane.line("XLA Ops", ops, 2)
    host = Plane("/host:CPU")
    host.line("main", [("PjitFunction(train_step)", 0, 60 * MS, {})], 1)
    path = write("modules.xplane.pb", b"".join(p.pack() for p in (chip, other, host)))
    steps = json.loads(subprocess.check_output([TFHOOK, "report", "--json", path]))["steps"]
    assert steps["clock"] == "mark" and steps["total"] == 6 and abs(steps["median_s"] - 0.01) < 0.0006, steps


def jitted(whole):
    """Calls of a jitted function, each with a second range inside, are a GPU's steps, however many kernels each launches; not so where
    the step is made of many such calls."""
    gpu, host, n = Plane("/device:GPU:0"), Plane("/host:CPU"), 0
    kernels, launches, calls = [], [], []
    for i in range(5):
        at = i * 10 * MS
        for k in range(12):
            n += 1
            t = at + MS + k * MS // 2
            launches.append(("cuLaunchKernel", t, 10000, {"correlation_id": n, "context_id": 1}))
            kernels.append(("fusion_%d" % (k % 2), t + 20000, MS // 4, {"correlation_id": n}))
            if not whole:
                calls.append(("PjitFunction(%s)" % ("multiply", "add", "exp", "tanh")[k % 4], t - 10000, 40000, {}))
        if whole:
            calls += [("PjitFunction(train_step)", at, 7 * MS, {}), ("PjitFunction(train_step)", at + 1000, 7 * MS - 2000, {}),
                      ("PjitFunction(convert)", at + 8 * MS, MS // 10, {})]
    gpu.line("Stream #7(Kernel)", kernels, 7)
    host.line("python", sorted(calls, key=lambda c: c[1]), 1)
    host.line("Host Threads/9", launches, 9)
    path = write("jitted%d.xplane.pb" % whole, b"".join(p.pack() for p in (gpu, host)))
    steps = json.loads(subprocess.check_output([TFHOOK, "report", "--json", path]))["steps"]
    assert (steps["clock"] == "exec") == whole, steps
    assert not whole or (steps["total"] == 5 and steps["clock_name"] == "train_step" and abs(steps["median_s"] - 0.01) < 1e-4), steps


def on_cpu(annotated):
    """JAX without a device: ops of XLA's on threads of the host compute; marked steps, or executions. What the program named for
    getting its batch is input, and so is waiting in it."""
    host, main, ops = Plane("/host:CPU"), [], []
    for i in range(20):
        at = i * 10 * MS
        if annotated:
            main.append(("train", at, 10 * MS, {"_r": 1, "step_num": i}))
            main.append(("data_loading", at + 1000, 6 * MS, {}))
            main.append(("$time sleep", at + MS, 3 * MS, {}))
        main.append(("PjitFunction(train_step)", at + 6 * MS + 2000, MS // 5, {}))
        for k in range(3):
            ops.append(("fusion.%d" % k, at + 6 * MS + 100000 + k * MS, MS - 1000, {"hlo_op": "fusion.%d" % k, "hlo_module": "jit_step"}))
    host.line("python", main, 1)
    host.line("tf_XLAPjRtCpuClient/7", ops, 2)
    r = json.loads(subprocess.check_output([TFHOOK, "report", "--json", write("cpu%d.xplane.pb" % annotated, host.pack())]))
    part = {x["name"]: x["share"] for x in r["breakdown"]}
    assert r["steps"]["total"] == 20 and 0.28 < part["compute"] < 0.35, (r["steps"], part)
    assert not annotated or (r["verdict"]["class"] == "input-bound" and part["input"] > 0.6), (r["verdict"], part)


def started():
    """JAX's functions that start and stop the profiler are no time of the program's, nor is what else was recorded meanwhile."""
    gpu, host, n = Plane("/device:GPU:0"), Plane("/host:CPU"), 0
    main, launches, kernels = [("$profiler.py:101 start_trace", 0, 900 * MS, {})], [], []
    for i in range(6):
        at = 900 * MS + i * 10 * MS
        n += 1
        main.append(("train", at, 10 * MS, {"_r": 1, "step_num": i}))
        launches.append(("cuLaunchKernel", at + MS, 10000, {"correlation_id": n, "context_id": 1}))
        kernels.append(("gemm", at + MS + 20000, 8 * MS, {"correlation_id": n}))
    main.append(("$profiler.py:213 stop_trace", 960 * MS, 700 * MS, {}))
    gpu.line("Stream #7(Kernel)", kernels, 7)
    host.line("python", main, 1)
    host.line("launches", launches, 2)
    host.line("other", [("$threading.py:323 wait", 1000, 1700 * MS, {})], 3)
    r = json.loads(subprocess.check_output([TFHOOK, "report", "--json", write("started.xplane.pb", gpu.pack() + host.pack())]))
    assert r["steps"]["total"] == 6 and 0.058 < r["run"]["wall_s"] < 0.062, (r["steps"], r["run"])


check(dump(write("one.xplane.pb", space())))
on_cpu(True)
on_cpu(False)
started()
jitted(True)
jitted(False)
tpu()
modules()
check(dump(write("two.xplane.pb", space(named=True))), named=True)
check(dump(write("three.xplane.pb", space(marked=False))), marked=False)
check(dump(write("no-name", space())))
refused()
directory()
print("ok")
