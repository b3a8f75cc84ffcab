#!/usr/bin/env python3
"""`tfhook import` writes .tft files on which every report says what it says on the trace itself: steps, classes, what-ifs, tables; one
process makes a file, several a directory. Nothing existing is overwritten, what is no trace is refused. `info` reads both."""
import json
import os
import subprocess
import sys

BUILD, TMP, TRACES = os.environ["TFH_BUILD"], os.environ["TFH_TMP"], os.environ.get("TFH_TRACES", "")
TFHOOK, DUMP = BUILD + "/bin/tfhook", BUILD + "/tests/import/dump"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def tfhook(*args, code=0):
    run = subprocess.run([TFHOOK, *args], capture_output=True, text=True)
    assert run.returncode == code, (args, run.returncode, run.stderr)
    return run.stdout if code == 0 else run.stderr


def same(trace, out, forms=(["--json"], ["--json", "--steps"], ["--csv"], ["--all"])):
    tfhook("import", trace, "-o", out)
    for form in forms:
        a, b = (tfhook("report", *form, path).splitlines() for path in (trace, out))
        if form == ["--all"]:  # the title names the job, which for a foreign trace is its file; only a job can have unhooked calls
            a, b = (lines[lines.index(""):[n for n, x in enumerate(lines) if x.startswith("DATA")][0]] for lines in (a, b))
        assert a == b, "\n".join("%s | %s" % p for p in zip(a, b) if p[0] != p[1])
    ours, theirs = (json.loads(subprocess.check_output([DUMP, path])) for path in (out, trace))
    for p, q in zip(ours["processes"], theirs["processes"]):
        for o, w in zip(p["ops"], q["ops"]):
            # Calls are counted with the records that say more about them, threads from the names' on.
            for key in set(o) - {"call", "thread"} - (set() if w["correlation"] else {"correlation"}):
                assert o[key] == w[key], (key, o, w)
        assert len(p["ops"]) == len(q["ops"]) and len(p["events"]) == len(q["events"])
        # Of two threads' calls that end together either may come first.
        key = ("t0", "t1", "kind", "fn", "depth", "dir", "pageable", "stream", "w", "name")
        assert sorted([e[k] for k in key] for e in p["events"]) == sorted([e[k] for k in key] for e in q["events"])
    return tfhook("info", out)


def step(n, at, rank=0):
    """A step of 10 ms: batch, copies of all kinds, kernels in two streams, a wait of one for the other, a peer copy."""
    t, c = at * 1000, n * 100

    def x(cat, name, tid, ts, dur, pid=100, **args):
        return dict(ph="X", cat=cat, name=name, pid=pid, tid=tid, ts=1700000000000000 + t + ts, dur=dur, args=args)

    def op(call, cat, name, ts, start, dur, k, stream, **args):
        return [x("cuda_runtime", call, 100, ts, 6, correlation=c + k),
                x(cat, name, stream, start, dur, pid=0, device=0, context=1, stream=stream, correlation=c + k, **args)]

    out = [x("user_annotation", "ProfilerStep#%d" % n, 100, 0, 10000),
           x("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 100, 5, 3000 + rank),
           x("cpu_op", "aten::conv2d", 100, 3300, 800), x("cpu_op", "aten::_convolution", 100, 3310, 780)]
    out += op("cudaMemcpyAsync", "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 3100, 3105, 50, 1, 7, bytes=1 << 20)
    out += op("cudaMemcpyAsync", "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 3110, 3160, 50, 2, 7, bytes=1 << 20)
    out += op("cudaMemcpyAsync", "gpu_memcpy", "Memcpy DtoD (Device -> Device)", 3120, 3215, 20, 3, 7, bytes=1 << 20)
    out += op("cudaMemcpyAsync", "gpu_memcpy", "Memcpy PtoP (Device -> Device)", 3130, 3240, 20, 4, 7, bytes=1 << 20)
    for k in range(20):
        out += op("cudaLaunchKernel", "kernel", "gemm_%d" % (k % 3), 3400 + k * 20, 3450 + k * 200, 180, 10 + k, 7 + k % 2, grid=[40 + k, 1, 1],
                  block=[256, 1, 1])
    out.append(x("cuda_runtime", "cudaEventRecord", 100, 3850, 2, correlation=c + 50))
    out.append(x("cuda_runtime", "cudaStreamWaitEvent", 100, 3860, 2, correlation=c + 51))
    out.append(x("cuda_sync", "Stream Wait Event", 8, 3860, 2, pid=0, correlation=c + 51, stream=8, wait_on_stream=7,
                 wait_on_cuda_event_record_corr_id=c + 50))
    out += op("cudaLaunchKernel", "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 3870, 7500, 900, 60, 9)
    out += op("cudaMemcpyAsync", "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 3900, 8400, 40, 61, 7, bytes=4)
    out.append(x("cuda_runtime", "cudaStreamSynchronize", 100, 3910, 4540, correlation=c + 70))
    return out


def write(name, rank):
    events = [e for n in range(1, 31) for e in step(n, n * 10, rank)]
    with open(os.path.join(TMP, name), "w") as f:
        json.dump({"deviceProperties": [{"id": 0, "numSms": 108}], "distributedInfo": {"rank": rank, "world_size": 2},
                   "traceEvents": events}, f)
    return os.path.join(TMP, name)


one = write("one.json", 0)
info = same(one, TMP + "/one.tft")
assert "by PyTorch's profiler" in info and "780 ops, 0 of them" in info.replace(",", "", 0), info
assert "by PyTorch's profiler" in tfhook("info", one)
assert "name another with -o" in tfhook("import", one, "-o", TMP + "/one.tft", code=3)
assert tfhook("verify", TMP + "/one.tft") is not None
os.mkdir(TMP + "/two")
write("two/a.json", 0)
write("two/b.json", 1)
same(TMP + "/two", TMP + "/out")
assert len([n for n in os.listdir(TMP + "/out") if n.endswith(".tft")]) == 2
assert "cannot be read together" in tfhook("report", one, TMP + "/one.tft", code=2)
tfhook("import", one, code=2)
tfhook("import", TMP + "/one.tft", "-o", TMP + "/x.tft", code=3)
tfhook("import", TMP + "/none.json", "-o", TMP + "/x.tft", code=3)
assert not os.path.exists(TMP + "/x.tft")
if os.path.isdir(TRACES or "/nowhere"):
    for i, name in enumerate(("ddp8_rank3.pt.trace.json.gz", "tf_gpu_worker.xplane.pb")):
        same(os.path.join(TRACES, name), "%s/real%d.tft" % (TMP, i), (["--json"],))
print("ok")
