#!/usr/bin/env python3
"""Exports of Nsight Systems (`nsys export --type sqlite`) say the same as PyTorch's profiler of the same events: verdict, steps, parts, kernels and
copies, in the schema of recent versions and without the tables and columns that others do not have. Several processes in one file are several
processes of the run; ranges have their domain's name; waits for events join streams; graphs, whole and by nodes; managed memory that moves without a
call; the first call, which creates the context, is not allocating; calls that give the device no work are nothing to analyse. `tfhook import` gives the same report. What cannot be read
says so in one line, with exit code 3 or 5."""
import json
import os
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.abspath(__file__)) + "/../export"]
import nsysdb  # noqa: E402
import runs  # noqa: E402
from nsysdb import Database  # noqa: E402
from runs import TMP, report, tfhook, trace  # noqa: E402

PID = 1 << 48 | 100 << 24


def facts(path):
    """What a report says, but for where it comes from."""
    r = report(path)
    assert r["run"]["source"] in ("kineto", "nsys"), r["run"]
    return {k: r[k] for k in ("verdict", "steps", "breakdown", "kernels", "transfers", "whatif", "segments") if k in r}


def processes(path):
    lines = tfhook("info", path).stdout.decode().split("\nPROCESS ")[1].split("\n\n")[0].splitlines()[1:]
    return sorted(line.split()[0] for line in lines)


def same(kineto, **how):
    made = nsysdb.from_kineto(nsysdb.load(kineto), TMP + "/made.sqlite", **how)
    a, b = facts(kineto), facts(made)
    assert a == b, [(k, a[k], b[k]) for k in a if a[k] != b[k]][:1]
    return made


# The same verdict as from Kineto, whatever the version.
plain = trace("plain.json")
same(plain, suffix="", without=("graphNodeId", "registersPerThread", "dynamicSharedMemory", "returnValue", "eventClass"))
same(plain, leave_out=("PROCESSES", "ThreadNames", "TARGET_INFO_SYSTEM_ENV", "TARGET_INFO_SESSION_START_TIME", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                       "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"))
traces = os.environ.get("TFH_TRACES", "")
for name in ("resnet50_workers0", "resnet50_workers4"):
    path = os.path.join(traces, name + ".pt.trace.json.gz")
    if traces and os.path.exists(path):
        same(path)
made = same(plain)

# Converted: the same report. In a directory it is a rank of a job; from a pipe it cannot be read.
tfhook("import", made, "-o", TMP + "/made.tft")
assert facts(TMP + "/made.tft") == facts(made)
said = tfhook("info", made).stdout.decode()
assert "Nsight Systems" in said and "node7" in said and "python3" in said and "systemd" not in said, said
os.mkdir(TMP + "/job")
for rank in range(2):
    nsysdb.from_kineto(nsysdb.load(trace("r%d.json" % rank, pid=100 + rank)), TMP + "/job/report_%d.sqlite" % rank)
assert processes(TMP + "/job") == ["100", "101"]
with open(made, "rb") as f:
    said = tfhook("report", "-", stdin=f, status=3).stderr.decode()
assert "pipe" in said and said.count("\n") == 1, said


def loop(name, steps=20, processes=1, kernel="gemm", **how):
    """Steps of 1 ms: a launch, a kernel of 800 us, a wait; each process has a device of its own."""
    db = Database(TMP + "/" + name, **how)
    for p in range(processes):
        tid = PID + (p << 24) + 100 + p
        for i in range(steps):
            t, c = i * 1000000 + 5000000, 5000 + 2 * i
            db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=t, end=t + 9000, globalTid=tid, correlationId=c, nameId=db.string("cudaLaunchKernel_v7000"))
            db.put("CUPTI_ACTIVITY_KIND_KERNEL", start=t + 20000, end=t + 820000, deviceId=p, streamId=7, correlationId=c, globalPid=PID + (p << 24),
                   shortName=db.string(kernel), gridX=4000, gridY=1, gridZ=1, blockX=256, blockY=1, blockZ=1)
            db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=t + 10000, end=t + 830000, globalTid=tid, correlationId=c + 1,
                   nameId=db.string("cudaDeviceSynchronize_v3020"))
    return db


# Two processes in one file; a range's domain; a range that never ended, and one of a process without calls, are left out.
db = loop("two.sqlite", processes=2)
db.put("NVTX_EVENTS", eventType=75, globalTid=PID, domainId=3, text="loader")
for i in range(20):
    at = i * 1000000 + 5840000
    db.put("NVTX_EVENTS", start=at, end=at + 150000, eventType=59, globalTid=PID + 100, domainId=3, textId=db.string("decode"))
db.put("NVTX_EVENTS", start=5000000, eventType=59, globalTid=PID + 100, text="open")
db.put("NVTX_EVENTS", start=5000000, end=9000000, eventType=59, globalTid=(1 << 48) + (7 << 24), text="worker")
made = db.save()
r = report(made)
assert processes(made) == ["100", "101"] and r["steps"]["count"] > 15, r["steps"]
tfhook("export", "--to", "csv", "-o", TMP + "/two.csv", made)
with open(TMP + "/two.csv") as f:
    text = f.read()
assert text.count("range,") == 20 and "loader: decode" in text and "worker" not in text

# Processes that communicate, each with its own device, are ranks.
assert not r["ranks"], r["ranks"]
r = report(loop("ranks.sqlite", processes=2, kernel="ncclDevKernel_AllReduce_Sum_f32_RING_LL").save())
assert [x["rank"] for x in r["ranks"]] == [0, 1] and r["world"]["ranks"] == 2, (r["ranks"], r["world"])

# A graph's nodes belong to its launch; whole graphs count as work whose parts are not known.
for table, more in (("CUPTI_ACTIVITY_KIND_KERNEL", dict(graphNodeId=(5 << 32) + 1)), ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", dict(graphId=5))):
    db = Database(TMP + "/graph.sqlite")
    for i in range(30):
        t = i * 1000000
        db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=t, end=t + 9000, globalTid=PID + 100, correlationId=5000 + i, nameId=db.string("cudaGraphLaunch_v10000"))
        for k in range(1 if "GRAPH" in table else 3):
            db.put(table, start=t + 20000 + k * 200000, end=t + 210000 + k * 200000, deviceId=0, streamId=7, correlationId=5000 + i, globalPid=PID, **more)
    r = report(db.save())
    assert r["steps"]["count"] >= 25, r["steps"]
    assert "0 of them without the call" in tfhook("info", TMP + "/graph.sqlite").stdout.decode()

# Copies on another stream hold up the kernels only through the event that those wait for.
db = Database(TMP + "/events.sqlite")
for i in range(30):
    t, c = i * 2000000, 5000 + 10 * i
    for k, (call, table, more) in enumerate([
            ("cudaMemcpyAsync_v3020", "CUPTI_ACTIVITY_KIND_MEMCPY", dict(start=t + 20000, end=t + 920000, streamId=13, bytes=9 << 20, copyKind=1,
                                                                        srcKind=1, dstKind=2)),
            ("cudaEventRecord_v3020", "CUPTI_ACTIVITY_KIND_CUDA_EVENT", dict(streamId=13, eventId=4)),
            ("cudaStreamWaitEvent_v3020", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", dict(streamId=7, eventId=4)),
            ("cudaLaunchKernel_v7000", "CUPTI_ACTIVITY_KIND_KERNEL", dict(start=t + 925000, end=t + 1900000, streamId=7, shortName=db.string("gemm"))),
            ("cudaStreamSynchronize_v3020", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", dict(streamId=7, eventId=nsysdb.NONE))]):
        end = t + 1910000 if k == 4 else t + 5000 * k + 4000
        db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=t + 5000 * k, end=end, globalTid=PID + 100, correlationId=c + k, nameId=db.string(call))
        db.put(table, deviceId=0, globalPid=PID, correlationId=c + k, **more)
r = report(db.save())
share = {b["name"]: b["share"] for b in r["breakdown"]}
assert 0.4 < share["transfer"] < 0.5 and r["verdict"]["tier"] == "A", (share, r["verdict"])
assert r["transfers"][0]["pageable"] is False, r["transfers"]

# The context is created in the first call; pages of managed memory move without a call.
db = loop("context.sqlite")
db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=0, end=4000000, globalTid=PID + 100, correlationId=107, nameId=db.string("cudaMalloc_v3020"))
for i in range(20):
    db.put("CUPTI_ACTIVITY_KIND_MEMCPY", start=i * 1000000 + 5100000, end=i * 1000000 + 5200000, deviceId=0, streamId=0, globalPid=PID, bytes=4096,
           copyKind=11, srcKind=7, dstKind=7)
made = db.save()
tfhook("export", "--to", "csv", "-o", TMP + "/context.csv", made)
with open(TMP + "/context.csv") as f:
    text = f.read()
assert "cudaMalloc (creates the context)" not in text  # read after the others: not the first
assert "0 of them without the call" in tfhook("info", made).stdout.decode()
for allocate, launch in (("cudaMalloc_v3020", "cudaLaunchKernel_v7000"), ("cuMemAllocAsync", "cuLaunchKernel")):
    db = Database(TMP + "/first.sqlite")
    calls = [(0, 9, "cuModuleGetLoadingMode"), (10, 4000000, allocate), (5000000, 5010000, launch)]
    for c, (t0, t1, name) in enumerate(calls):
        db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=t0, end=t1, globalTid=PID + 100, correlationId=106 + c, nameId=db.string(name))
    db.put("CUPTI_ACTIVITY_KIND_KERNEL", start=5020000, end=5400000, deviceId=0, streamId=7, globalPid=PID, correlationId=108, shortName=db.string("gemm"))
    r = report(db.save())
    assert r["verdict"]["cause"] != "host.alloc", r["verdict"]

# Another call than an allocation may create it: then that call takes as long, and an allocation after it is one.
for name, ns, cause in (("cudaEventCreate_v3020", 240000000, None), ("cudaGetDeviceCount_v3020", 90000, "host.alloc")):
    db = Database(TMP + "/event.sqlite")
    calls = [(0, ns, name), (ns + 10000, ns + 4000000, "cudaHostAlloc_v3020"), (ns + 4100000, ns + 4110000, "cudaLaunchKernel_v7000")]
    for c, (t0, t1, called) in enumerate(calls):
        db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=t0, end=t1, globalTid=PID + 100, correlationId=106 + c, nameId=db.string(called))
    db.put("CUPTI_ACTIVITY_KIND_KERNEL", start=ns + 4120000, end=ns + 5000000, deviceId=0, streamId=7, globalPid=PID, correlationId=108,
           shortName=db.string("gemm"))
    tfhook("export", "--force", "--to", "csv", "-o", TMP + "/event.csv", db.save())
    with open(TMP + "/event.csv") as f:
        text = f.read()
    assert (name.split("_")[0] + " (creates the context)" in text) == (cause is None) and "cudaHostAlloc (creates" not in text, text
    r = report(TMP + "/event.sqlite")
    assert r["verdict"]["cause"] == "host.alloc" and r["steps"]["median_s"] < 0.0052, (r["verdict"], r["steps"])

def database_of(name, calls, ops=(), **how):
    """A database of calls (begin and end in us, name) and of ops (table, begin, end, index of the call, columns)."""
    db = Database(TMP + "/" + name, **how)
    for c, (t0, t1, called) in enumerate(calls):
        db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=t0 * 1000, end=t1 * 1000, globalTid=PID + 100, correlationId=106 + c, nameId=db.string(called))
    for table, t0, t1, c, more in ops:
        if "name" in more:
            more = dict(shortName=db.string(more["name"]))
        db.put("CUPTI_ACTIVITY_KIND_" + table, start=t0 * 1000, end=t1 * 1000, deviceId=0, streamId=7, globalPid=PID, correlationId=106 + c, **more)
    return db.save()


# The only step of a trace ends with its results on the host: the copy after the last kernel is part of it, what is copied long after is not.
BACK = dict(bytes=1 << 22, copyKind=2, srcKind=2, dstKind=0)
calls = [(0, 90000, "cudaMalloc_v3020"), (90010, 90030, "cudaLaunchKernel_v7000"), (90040, 92000, "cudaMemcpy_v3020"),
         (190000, 190010, "cudaMemcpy_v3020"), (190020, 190030, "cudaFree_v3020")]
r = report(database_of("results.sqlite", calls, [("KERNEL", 90040, 90140, 1, dict(name="add")), ("MEMCPY", 90150, 91990, 2, BACK),
                                          ("MEMCPY", 190002, 190008, 3, BACK)]))
assert r["verdict"]["cause"] == "transfer.d2h" and 0.0019 < r["steps"]["median_s"] < 0.0021, (r["verdict"], r["steps"])

# A copy creates the context if it is the first call. The program launches all steps long before the device has run them; the wait after
# them is theirs, so they cover most of the time, although its results take as long as the launches.
calls = [(0, 77000, "cudaMemcpyToSymbol_v3020"), (77100, 77120, "cudaMalloc_v3020")]
ops = [("MEMCPY", 76990, 76991, 0, dict(bytes=64, copyKind=1, srcKind=0, dstKind=2))]
for i in range(400):
    calls.append((77200 + i * 50, 77206 + i * 50, "cudaLaunchKernel_v7000"))
    ops.append(("KERNEL", 77210 + i * 100, 77305 + i * 100, len(calls) - 1, dict(name=("force", "move")[i % 2])))
calls += [(97210, 117300, "cudaDeviceSynchronize_v3020"), (117400, 118000, "cudaMemcpy_v3020"), (125000, 125010, "cudaFree_v3020")]
ops.append(("MEMCPY", 117410, 117990, len(calls) - 2, BACK))
r = report(database_of("symbol.sqlite", calls, ops))
assert r["verdict"]["class"] == "compute-bound" and r["steps"]["total"] == 200, (r["verdict"], r["steps"])

# Neither kernels nor copies were recorded: the context is start-up all the same, a launch that loads its kernel leaves work behind, and
# copies are taken for what their place shows.
calls = [(0, 9, "cuModuleGetLoadingMode"), (500000, 780000, "cudaMalloc_v3020"), (780010, 782000, "cudaMemcpy_v3020"),
         (782010, 785000, "cudaLaunchKernel_v7000"), (785010, 795000, "cudaDeviceSynchronize_v3020"), (795010, 798000, "cudaMemcpy_v3020")]
r = report(database_of("calls.sqlite", calls, leave_out=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY")))
assert 0.0175 < r["steps"]["median_s"] < 0.0185, r["steps"]
share = {b["name"]: b["share"] for b in r["breakdown"]}
assert 0.5 < share["compute"] < 0.6 and 0.25 < share["transfer"] < 0.3, share
cause = {c["cause"]: c["s_per_step"] for c in r["causes"]}
assert cause["transfer.h2d-pageable"] > 0.0019 and cause["transfer.d2h"] > 0.0029 and not cause.get("transfer.d2d"), cause

# Where the trace names no code, the report says what nsys could have recorded, rather than settings of PyTorch's profiler.
db = Database(TMP + "/unnamed.sqlite")
for i in range(30):
    t = i * 10000000
    db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=t, end=t + 9000, globalTid=PID + 100, correlationId=5000 + i, nameId=db.string("cudaLaunchKernel_v7000"))
    db.put("CUPTI_ACTIVITY_KIND_KERNEL", start=t + 20000, end=t + 820000, deviceId=0, streamId=7, correlationId=5000 + i, globalPid=PID, shortName=db.string("gemm"))
said = tfhook("report", db.save()).stdout.decode()
assert "NVTX ranges" in said and "with_stack" not in said, said

# Nothing to analyse, or another program's database.
said = tfhook("report", Database(TMP + "/empty.sqlite").save(), status=5).stderr.decode()
assert "--trace=cuda" in said and said.count("\n") == 1, said
db = Database(TMP + "/idle.sqlite")
for c, name in enumerate(("cuInit", "cuCtxSetCurrent", "cuStreamCreate", "cudaMalloc_v3020")):
    db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=c * 1000000, end=c * 1000000 + 900000, globalTid=PID + 100, correlationId=100 + c, nameId=db.string(name))
said = tfhook("report", db.save(), status=5).stderr.decode()
assert "no work" in said and said.count("\n") == 1, said
for table, word in (("STR_TABLE", "results.json"), ("KERN", "results.json"), ("COPY", "results.json"), ("read_only_ops", "DLProf"), ("StringTable", "nvprof"), ("CANN_API", "trace_view.json"), ("pictures", "not exported by nsys")):
    db = Database(TMP + "/other.sqlite", leave_out=nsysdb.TABLES)
    db.db.execute("CREATE TABLE %s (id INTEGER)" % table)
    said = tfhook("report", db.save(), status=3).stderr.decode()
    assert word in said and said.count("\n") == 1, said
runs.ENV["LD_LIBRARY_PATH"] = TMP
with open(TMP + "/libsqlite3.so.0", "w") as f:
    f.write("no library")
said = tfhook("report", made, status=3).stderr.decode()
assert "libsqlite3-0" in said and said.count("\n") == 1, said
print("ok", json.dumps(share))
