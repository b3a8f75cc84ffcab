#!/usr/bin/env python3
"""Kineto traces of every age say the same: a small training loop, written as each version of PyTorch's profiler has written
it, comes out as the same calls, ops, steps and batches; files without correlation numbers are joined by their arrows, and
without those by the order in the stream. Broken and foreign files are rejected with exit code 3 and one line."""
import gzip
import json
import os
import re
import subprocess

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
DUMP = BUILD + "/tests/import/dump"
TFHOOK = BUILD + "/bin/tfhook"
US = 1000
BASE = 1700000000000000  # us of Unix time
STEPS, KERNELS = 4, 3

NEW = dict(host="cpu_op", note="user_annotation", call="cuda_runtime", kernel="kernel", copy="gpu_memcpy",
           memset="gpu_memset", arrow="ac2g")
MIDDLE = dict(NEW, arrow="async_cpu_to_gpu")
OLD = dict(host="Operator", note="Operator", call="Runtime", kernel="Kernel", copy="Memcpy", memset="Memset", arrow="async")


def loop(names, ts=lambda us: BASE + us, number=lambda us: us, tid=lambda t: t, stream=lambda s: s, correlation=True, arrows=True,
         streams=1, sync=False):
    """Steps of 1 ms: 300 us in the DataLoader, a copy, three kernels of 150 us, a set of memory, a synchronisation."""
    events, n = [], 0

    def add(cat, name, pid, tid_, at, dur, **args):
        events.append(dict(ph="X", cat=cat, name=name, pid=pid, tid=tid_, ts=ts(at), dur=number(dur), args=args))

    def issue(call, cat, name, at, start, dur, s=7, **args):
        nonlocal n
        n += 1
        link = {"correlation": n} if correlation else {}
        add(names["call"], call, 100, tid(100), at, 8, **link)
        add(cat, name, 0, stream(s), start, dur, device=0, context=1, stream=s, **args, **link)
        if arrows:
            events.append(dict(ph="s", id=n, pid=100, tid=100, ts=ts(at), cat=names["arrow"], name="ac2g"))
            events.append(dict(ph="f", id=n, pid=0, tid=stream(s), ts=ts(start), cat=names["arrow"], name="ac2g", bp="e"))

    events.append(dict(ph="M", name="process_name", pid=100, tid=0, ts=ts(0), args={"name": "python3"}))
    for i in range(STEPS):
        t = i * 1000
        add(names["note"], "ProfilerStep#%d" % (5 + i), 100, tid(100), t, 1000)
        add(names["note"], "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, tid(100), t + 2, 300)
        add(names["host"], "aten::to", 100, tid(100), t + 305, 40)
        add(names["host"], "aten::copy_", 100, tid(100), t + 310, 30)
        issue("cudaMemcpyAsync", names["copy"], "Memcpy HtoD (Pageable -> Device)", t + 315, t + 320, 20, bytes=4096)
        for k in range(KERNELS):
            s = 7 + (k if streams > 1 else 0)
            issue("cudaLaunchKernel", names["kernel"], "void gemm<%d>(float)" % k, t + 350 + k * 10, t + 365 + k * 150, 150, s=s,
                  grid=[16, 2, 1], block=[128, 1, 1], **{"shared memory": 512})
        issue("cudaMemsetAsync", names["memset"], "Memset (Device)", t + 390, t + 820, 5, bytes=64)
        if sync:
            add(names["call"], "cudaEventRecord", 100, tid(100), t + 400, 2, correlation=1000 + i)
            add(names["call"], "cudaStreamWaitEvent", 100, tid(100), t + 404, 2, correlation=2000 + i)
            # Which stream an event was recorded in is recorded with the wait for it, or (since 2025) by itself.
            add("cuda_sync", "Stream Wait Event", 0, 9, t + 404, 2, correlation=2000 + i, stream=9, wait_on_stream=-1 if i % 2 else 7,
                wait_on_cuda_event_record_corr_id=1000 + i)
            if i % 2:
                add("cuda_event", "cudaEventRecord", 0, 7, t + 400, 0, correlation=1000 + i, stream=7, event_id=i)
        add(names["call"], "cudaGetDevice", 100, tid(100), t + 410, 1, correlation=90000 + i)
        add(names["call"], "cudaDeviceSynchronize", 100, tid(100), t + 420, 410, correlation=80000 + i)
    events.append({"ph": "i", "s": "t", "name": "[memory]", "pid": 100, "tid": 100, "ts": ts(1), "args": {"Bytes": 4}})
    events.append(dict(ph="X", cat="Trace", ts=ts(0), dur=number(4000), pid="Traces", tid="PyTorch Profiler", name="PyTorch Profiler (0)",
                       args={}))
    return events


def write(name, doc, text=None):
    path = os.path.join(TMP, name)
    body = text if text is not None else re.sub('"@([0-9.]*)@"', r"\1", json.dumps(doc, indent=2))
    with (gzip.open(path, "wt") if name.endswith(".gz") else open(path, "w")) as f:
        f.write(body)
    return path


def dump(*paths):
    run = subprocess.run([DUMP, *paths], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def doc(events, **more):
    return dict({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU", "numSms": 80}]}, traceEvents=events, **more)


def strings(v):  # numbers as texts, as the first versions wrote thread ids
    return str(v)


def exact(text):  # a decimal number as it stands in the file: see write()
    return "@%s@" % text


def check(d, streams=1, shift=0, joined=True):
    p = d["processes"][0]
    assert (p["pid"], p["exe"], p["processors"]) == (100, "python3", 80), p
    marks = [e for e in p["events"] if e["kind"] == 5]
    assert [m["w"][0] for m in marks] == [5, 6, 7, 8] and all(m["t1"] - m["t0"] == 1000 * US for m in marks)
    assert [m["t0"] for m in marks] == [i * 1000 * US + shift for i in range(STEPS)], marks
    batches = [e for e in p["events"] if e["family"] == 32]
    assert len(batches) == STEPS and all(b["fn"].startswith("enumerate(DataLoader)") and b["w"][0] == 1 for b in batches)
    assert all(b["t1"] - b["t0"] == 300 * US for b in batches)
    launches = [e for e in p["events"] if e["family"] == 3]
    assert len(launches) == STEPS * KERNELS and all(e["fn"] == "cudaLaunchKernel" for e in launches)
    ops = p["ops"]
    assert [o["t0"] for o in ops] == sorted(o["t0"] for o in ops)
    kernels = [o for o in ops if o["kind"] == 1]
    assert len(kernels) == STEPS * KERNELS and len(ops) == STEPS * (KERNELS + 2)
    for i, k in enumerate(kernels):
        assert k["name"] == "void gemm<%d>(float)" % (i % KERNELS)
        assert k["t0"] == (i // KERNELS * 1000 + 365 + i % KERNELS * 150) * US + shift and k["t1"] - k["t0"] == 150 * US
        assert k["grid"] == 16 | 2 << 32 | 1 << 48 and k["block"] == 128 | 1 << 11 | 1 << 22 | 512 << 32
        assert k["stream"] == 7 + (i % KERNELS if streams > 1 else 0) and k["device"] == 0 and not k["communication"]
    copies = [o for o in ops if o["kind"] == 2]
    assert len(copies) == STEPS and all(o["dir"] == 1 and o["pageable"] and o["bytes"] == 4096 for o in copies)
    sets = [o for o in ops if o["kind"] == 3]
    assert len(sets) == STEPS and all(o["bytes"] == 64 for o in sets)
    syncs = [e for e in p["events"] if e["family"] == 7]
    assert len(syncs) == STEPS
    ranges = {(e["name"], e["depth"]) for e in p["events"] if e["kind"] == 6}
    assert ranges == {("aten::to", 0), ("aten::copy_", 1), ("cudaGetDevice", 0)}, ranges
    if not joined:
        assert p["unissued"] == len(ops)
        return
    assert p["unissued"] == 0 and p["dependencies"]
    for i, k in enumerate(kernels):
        assert k["issue0"] == (i // KERNELS * 1000 + 350 + i % KERNELS * 10) * US + shift and k["issue1"] - k["issue0"] == 8 * US
        call = [e for e in p["events"] if e["thread"] == k["thread"]][k["call"]]
        assert call["t0"] == k["issue0"] and call["name"] == k["name"] and call["w"][1] == k["grid"]
    calls = [e for e in p["events"] if e["family"] == 1]
    assert all(c["w"][0] == 4096 and c["dir"] == 1 and c["pageable"] and c["stream"] == 7 for c in calls)


def ages():
    old = loop(OLD, tid=strings, stream=lambda s: "stream %d" % s)
    check(dump(write("old.json", doc(old))))
    check(dump(write("old.json.gz", doc(old))))
    check(dump(write("middle.pt.trace.json", doc(loop(MIDDLE), distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8}))))
    assert dump(TMP + "/middle.pt.trace.json")["processes"][0]["rank"] == 3
    # Since 2024: decimals of microseconds, counted from a base that is stored beside them.
    fine = loop(NEW, ts=lambda us: exact("%d.250" % (us + 5000)), number=lambda us: exact("%d.000" % us))
    new = dump(write("new.json", doc(fine, displayTimeUnit="ms", baseTimeNanoseconds=BASE * 1000)))
    check(new)
    assert new["start"] == BASE * 1000 + 5000250, new["start"]
    # A base that no clock shows, after the year 2096, is not added.
    far = dump(write("far.json", doc(fine, baseTimeNanoseconds=8 * 10**18)))
    check(far)
    assert not far["start"], far["start"]
    # Sixteen digits before the point and three behind it are more than a double holds.
    decimals = loop(NEW, ts=lambda us: exact("%d.123" % (BASE + us)))
    first = dump(write("exact.json", doc(decimals)))
    assert first["start"] == BASE * 1000 + 123, first["start"]
    check(first)
    # A kernel of 31 years is none, and of such times there is no sum.
    endless = dict(ph="X", cat="kernel", name="endless", pid=0, tid=7, ts=BASE, dur=1e15, args={"stream": 7, "device": 0})
    check(dump(write("endless.json", doc(loop(NEW) + [endless]))))
    check_bare = dump(write("bare.json", loop(NEW)))
    assert check_bare["processes"][0]["n_ops"] == STEPS * (KERNELS + 2)


def halves():
    """A begin and an end in place of a length, in the order of time; arguments with either. What never ended is left out, and an
    end without a begin."""
    both = []
    for e in loop(NEW):
        if e["ph"] != "X" or e["cat"] == "Trace":
            both.append((-1, 0, e))
            continue
        begin = dict(e, ph="B", args={k: v for k, v in e["args"].items() if k != "correlation"})
        del begin["dur"]
        end = dict(ph="E", pid=e["pid"], tid=e["tid"], ts=e["ts"] + e["dur"], args={k: v for k, v in e["args"].items() if k == "correlation"})
        both += [(begin["ts"], 1 / e["dur"], begin), (end["ts"], -1 / e["dur"], end)]
    both.sort(key=lambda x: x[:2])
    events = [e for _, _, e in both]
    events.insert(0, dict(ph="E", pid=100, tid=100, ts=BASE - 9))
    events.insert(1, dict(ph="B", cat="cpu_op", name="never ends", pid=100, tid=100, ts=BASE - 5))
    check(dump(write("halves.json", doc(events))))


def first_profiler():
    """Until 2021: no categories, no calls, decimals of microseconds from the start; what issued the kernels is not told."""
    events = []
    for i in range(4):
        events.append(dict(name="aten::mm", ph="X", ts=i * 100.5, dur=20.25, tid=1, pid="CPU functions", args={}))
        events.append(dict(name="aten::mm", ph="s", ts=i * 100.5, tid=1, pid="CPU functions", id=i, cat="cpu_to_cuda", args={}))
        events.append(dict(name="sgemm", ph="f", ts=i * 100.5 + 30, tid=0, pid="CUDA functions", id=i, cat="cpu_to_cuda", args={}))
        events.append(dict(name="sgemm", ph="X", ts=i * 100.5 + 30, dur=50, tid=0, pid="CUDA functions", args={}))
    p = dump(write("first.json", events))["processes"][0]
    assert [(o["name"], o["t0"], o["t1"] - o["t0"]) for o in p["ops"]] == [("sgemm", i * 100500 + 30000, 50000) for i in range(4)]
    assert [e["t1"] - e["t0"] for e in p["events"] if e["name"] == "aten::mm"] == [20250] * 4
    assert p["unissued"] == 4 and not p["dependencies"]
    events = [e | dict(dur=99) if e["name"] == "sgemm" else e for e in events if e["ph"] == "X"]
    said = subprocess.check_output([TFHOOK, "report", write("busy.json", events)], text=True)
    assert "the device is busy" in said and "on the CPU" not in said, said


def on_the_cpu():
    """Without a device, the outermost ops of each thread compute; the report names those that take most of it."""
    events = []
    for i in range(12):
        for name, at, dur, tid in (("aten::conv2d", 0, 600, 1), ("aten::mkldnn_convolution", 10, 580, 1), ("aten::relu", 600, 90, 1),
                                   ("autograd::engine::evaluate_function: MulBackward0", 690, 210, 2), ("aten::copy_", 900, 30, 1)):
            events.append(dict(ph="X", cat="cpu_op", name=name, pid=100, tid=tid, ts=BASE + i * 1000 + at, dur=dur))
    write("processor.json", doc(events))
    said = " ".join(subprocess.check_output([TFHOOK, "report", TMP + "/processor.json"], text=True).split())
    assert "compute.cpu" in said and "ops 65 % of the computing in aten::conv2d, 23 % in MulBackward0 why" in said, said
    assert "if a GPU did the work, record it, too" in said and "the trace shows no device" in said, said


def last_batch():
    """Without a device, too, a loader's last answer begins no step: that there are no more batches, after which nothing is computed."""
    events = []
    for i in range(9):
        at = BASE + i * 20000
        events.append(dict(ph="X", cat="user_annotation", name="enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", pid=1, tid=1, ts=at,
                           dur=500 if i < 8 else 400000))
        if i < 8:
            events.append(dict(ph="X", cat="cpu_op", name="aten::conv2d", pid=1, tid=1, ts=at + 600, dur=19000))
    r = json.loads(subprocess.check_output([TFHOOK, "report", "--json", write("last.json", doc(events))]))
    assert r["steps"]["total"] == 8 and r["steps"]["clock"] == "iterator" and r["verdict"]["cause"] == "compute.cpu", (r["steps"], r["verdict"])


def last_mark():
    """The profiler begins a step as it stops: a last one in which nothing is launched (without a device: no op executed) is none."""
    for device in (True, False):
        events = [e for e in loop(NEW) if device or e.get("cat") in ("cpu_op", "user_annotation")]
        if not device:
            events += [dict(ph="X", cat="cpu_op", name="aten::mm", pid=100, tid=100, ts=BASE + i * 1000 + 350, dur=600) for i in range(STEPS)]
        mark = dict(ph="X", cat="user_annotation", name="ProfilerStep#%d" % (5 + STEPS), pid=100, tid=100, ts=BASE + STEPS * 1000, dur=60)
        work = dict(ph="X", cat="cpu_op", name="aten::mm", pid=100, tid=100, ts=BASE + STEPS * 1000 + 10, dur=20)
        call = dict(work, cat="cuda_runtime", name="cudaLaunchKernel", args=dict(correlation=999))
        for more, steps in ([], STEPS), ([call] if device else [work], STEPS + 1):
            r = json.loads(subprocess.check_output([TFHOOK, "report", "--json", write("mark.json", doc(events + [mark] + more))]))
            assert r["steps"]["total"] == steps and r["steps"]["clock"] == "mark", (device, steps, r["steps"])


def joins():
    check(dump(write("arrows.json", doc(loop(NEW, correlation=False)))))
    check(dump(write("order.json", doc(loop(NEW, correlation=False, arrows=False)))))
    # Two streams, no numbers, no arrows: which call issued what cannot be known, and is not guessed.
    d = dump(write("streams.json", doc(loop(NEW, correlation=False, arrows=False, streams=3))))
    p = d["processes"][0]
    assert p["unissued"] == STEPS * KERNELS and not p["dependencies"], p["unissued"]
    check(dump(write("numbered.json", doc(loop(NEW, streams=3)))), streams=3)
    d = dump(write("sync.json", doc(loop(NEW, sync=True))))
    records = {e["w"][0]: e for e in d["processes"][0]["events"] if e["fn"] == "cudaEventRecord"}
    waits = [e for e in d["processes"][0]["events"] if e["fn"] == "cudaStreamWaitEvent"]
    assert len(waits) == STEPS and all(w["stream"] == 9 and records[w["w"][0]]["stream"] == 7 for w in waits)


def ranks():
    os.mkdir(TMP + "/ranks")
    for rank in range(3):
        write("ranks/worker%d.pt.trace.json.gz" % rank,
              doc(loop(NEW, ts=lambda us: BASE + us + rank * 50), distributedInfo={"rank": rank, "world_size": 3}))
    write("ranks/notes.json", {"what": "no trace"})
    d = dump(TMP + "/ranks")
    assert [p["rank"] for p in d["processes"]] == [0, 1, 2]
    for rank, p in enumerate(d["processes"]):
        check({"processes": [p]}, shift=rank * 50 * US)
    report = json.loads(subprocess.check_output([TFHOOK, "report", "--json", TMP + "/ranks"]))
    assert report["run"]["source"] == "kineto" and report["world"]["seen"] == report["world"]["ranks"] == 3, report["world"]
    report = json.loads(subprocess.check_output([TFHOOK, "report", "--json", TMP + "/middle.pt.trace.json"]))
    assert (report["world"]["ranks"], report["world"]["seen"]) == (8, 1), report["world"]
    assert report["quality"]["gpu_times"] == "imported", report["quality"]


def names():
    more = loop(NEW)
    for i, (name, communication) in enumerate([("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", True),
                                               ("ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", True),
                                               ("void accidental_nccl()", False)]):
        more.append(dict(ph="X", cat="kernel", name=name, pid=1, tid=7, ts=BASE + 5000 + 10 * i, dur=5,
                         args=dict(device=1, stream=7, correlation=7000 + i)))
    text = json.dumps(doc(more)).replace("aten::to", "caf\\u00e9 \\ud83d\\ude00 \\\"x\\\\\\n\\q").replace('"dur": 40,', '"dur": 40, "x": NaN,')
    p = dump(write("names.json", None, text))["processes"][0]
    nccl = [o for o in p["ops"] if o["device"] == 1]
    assert [o["communication"] for o in nccl] == [True, True, False], nccl
    assert len({o["stream"] for o in nccl} | {7}) == 2 and p["unissued"] == 3
    assert 'caf\u00e9 \U0001f600 "x\\\n\\q' in {e["name"] for e in p["events"]}, {e["name"] for e in p["events"]}


def refused():
    whole = json.dumps(doc(loop(NEW))).encode()
    packed = gzip.compress(whole)
    cases = {
        "cut.json": whole[:len(whole) // 2], "cut.json.gz": packed[:len(packed) // 2], "zip.json.gz": packed[:200] + b"x" * 300,
        "empty.json": b"", "text.json": b"hello", "open.json": b"{", "colon.json": b'{"traceEvents": [{"ph": }]}',
        "deep.json": b'{"traceEvents": ' + b"[" * 100000, "deeper.json": b'{"a":' * 100000, "other.json": b'{"a": 1}',
        "string.json": b'{"traceEvents": [{"name": "' + b"x" * 200000, "nothing.json": b'{"traceEvents": []}',
        "brackets.json": b'{"traceEvents": [}]',
        "binary.pb": bytes(range(256)) * 8, "null.json": b"\0" * 4096,
    }
    for name, data in cases.items():
        path = os.path.join(TMP, name)
        with open(path, "wb") as f:
            f.write(data)
        run = subprocess.run([TFHOOK, "report", path], capture_output=True, text=True, timeout=20)
        want = 5 if name == "nothing.json" else 3
        assert run.returncode == want and run.stderr.count("\n") == 1 and name in run.stderr, (name, run.returncode, run.stderr)
    assert subprocess.run([TFHOOK, "report", TMP + "/gone.json"], capture_output=True).returncode == 3


def odd():
    """Numbers that no clock gives, and a kernel that ends before it began: no crash, no negative time."""
    events = loop(NEW)
    for ts in (-5, 1e300, "x", None, True, [1], {"a": 1}, 99999999999999999999, -1e30):
        events.append(dict(ph="X", cat="kernel", name="odd", pid=0, tid=7, ts=ts, dur=-5, args=dict(stream=7, correlation=-1, grid=["a", -1, 1e99])))
    events += [1, None, "text", [], {}, {"ph": "X"}, {"ph": ["X"], "args": 5}]
    p = dump(write("odd.json", doc(events)))["processes"][0]
    assert all(o["t1"] >= o["t0"] >= 0 for o in p["ops"])


def exchanges():
    """Kernels that exchange data with other devices are no computing: NCCL's, and those that hand tokens to experts elsewhere."""
    for name, exchange in (("ncclDevKernel_AllReduce_Sum_f32_RING_LL", True), ("void deep_ep::internode::dispatch<false, 4>(int*)", True),
                           ("void dpsk::ep::internode::combine<false, 8>(int*)", True), ("void combine(float*)", False)):
        events = loop(NEW) + [dict(ph="X", cat="kernel", name=name, pid=0, tid=9, ts=BASE + 990, dur=5, args=dict(stream=9, correlation=9000))]
        path = write("exchange.json", doc(events))
        p = json.loads(subprocess.check_output([DUMP, "-s", path]))["processes"][0]
        rest = p["busy_ns"] - p["compute_ns"]
        plain = rest - 5 * US if exchange else rest
        assert plain == first.setdefault("rest", plain), (name, p)


def processors():
    """Kernels that leave a few processors to collectives fill the device; those with blocks for less than half of it do not."""
    for blocks, cause in ((112, "compute.dense"), (20, "compute.underfilled")):
        events = []
        for n in range(30):
            at = BASE + n * 1000
            events.append(dict(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=1, tid=1, ts=at, dur=5, args=dict(correlation=n + 1)))
            events.append(dict(ph="X", cat="kernel", name="a" if n % 2 else "b", pid=0, tid=7, ts=at + 10, dur=990,
                               args=dict(correlation=n + 1, stream=7, device=0, grid=[blocks, 1, 1], block=[128, 1, 1])))
        path = write("processors.json", dict(doc(events), deviceProperties=[dict(id=0, numSms=132)]))
        verdict = json.loads(subprocess.check_output([TFHOOK, "report", "--json", path]))["verdict"]
        assert verdict["cause"] == cause, verdict


def without_kernels():
    """A profiler without access to the device's counters records launches and no kernels. The ops around them tell them apart: 30 steps of
    six ops (the launches alone repeat after each), and six different ops are one step."""
    for steps, n_ops in ((30, 6), (1, 180)):
        events = []
        for n in range(steps * n_ops):
            at = BASE + n * 100
            events.append(dict(ph="X", cat="cpu_op", name="aten::op%d" % (n % n_ops), pid=1, tid=1, ts=at, dur=60))
            events.append(dict(ph="X", cat="cpu_op", name="aten::empty", pid=1, tid=1, ts=at + 5, dur=5))
            events.append(dict(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=1, tid=1, ts=at + 20, dur=30, args=dict(correlation=n + 1)))
        r = json.loads(subprocess.check_output([TFHOOK, "report", "--json", write("blind.json", doc(events))]))
        assert r["steps"]["total"] == steps and r["verdict"]["cause"] == "host.launch", (steps, r["steps"], r["verdict"])


def loading():
    """The first op that uses a library waits for it in a free of nothing, which is not allocating; but what an allocator frees in an op,
    after it failed to allocate, is."""
    for before, cause in (("cudaHostAlloc", "host.compile"), ("cudaMalloc", "host.alloc")):
        events = [dict(ph="X", cat="cpu_op", name="aten::cudnn_convolution", pid=1, tid=1, ts=BASE, dur=220000)]
        for n, (name, at, dur) in enumerate([(before, 10, 900), ("cudaFree", 1000, 120000), ("cudaFree", 122000, 90000), ("cudaMalloc", 213000, 10),
                                             ("cudaLaunchKernel", 214000, 10)]):
            events.append(dict(ph="X", cat="cuda_runtime", name=name, pid=1, tid=1, ts=BASE + at, dur=dur, args=dict(correlation=n + 1)))
        events.append(dict(ph="X", cat="kernel", name="conv", pid=0, tid=7, ts=BASE + 214020, dur=900, args=dict(correlation=5, stream=7, device=0)))
        verdict = json.loads(subprocess.check_output([TFHOOK, "report", "--json", write("loading.json", doc(events))]))["verdict"]
        assert verdict["cause"] == cause, (before, verdict)


def rounds():
    """A step whose forward pass is launched by one thread and whose backward pass by another is a round of both, although its layers repeat,
    too. If the rounds differ, they are no steps."""
    for alike in (True, False):
        events, n = [], 0
        for step in range(4):
            for layer in range(16):
                for k in range(4):
                    back = layer >= 8
                    n += 1
                    at = BASE + n * 50
                    name = "%s%d" % ("dgrad" if back else "fprop", k) if alike or step % 2 else "other%d" % (n % 61)
                    events.append(dict(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=1, tid=2 if back else 1, ts=at, dur=9,
                                       args=dict(correlation=n)))
                    events.append(dict(ph="X", cat="kernel", name=name, pid=0, tid=7, ts=at + 10, dur=5,
                                       args=dict(correlation=n, stream=7, device=0, grid=[8, 1, 1])))
        steps = json.loads(subprocess.check_output([TFHOOK, "report", "--json", write("rounds.json", doc(events))]))["steps"]
        assert (steps["total"] == 4 and steps["clock"] == "period") == alike, (alike, steps)


first = {}
for part in (ages, halves, first_profiler, on_the_cpu, last_batch, last_mark, joins, ranks, names, refused, odd, exchanges, processors, without_kernels, loading, rounds):
    part()
print("ok")
