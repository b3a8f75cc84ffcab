#!/usr/bin/env python3
"""Ascend's trace_view.json (a list in Chrome's format, whose entries of the NPU and of its runtime have no category; calls are known by arrows alone) says
the same of steps and of what the device did as PyTorch's profiler of the same events. What streams wait for and tasks without a name are no work, an exchange
counts once, other rows of the device (counters, what overlaps, parts of exchanges) not at all. Without arrows' beginnings the device's rows are still judged;
MindSpore's iterations are steps. Files with a part of it are refused, and so is its database."""
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../export")
import runs  # noqa: E402
from runs import TMP, report, tfhook  # noqa: E402

PIDS = {"CANN": 4000000096, "Ascend Hardware": 4000000288, "Communication": 4000000352, "Overlap Analysis": 4000000608}

def ascend(trace, name, host=True, rows=tuple(PIDS)):
    """As Ascend's profiler writes the events of a trace of PyTorch's profiler."""
    out, pid = [], next(e["pid"] for e in trace["traceEvents"] if e["cat"] == "cuda_runtime")
    if host:
        out += [dict(e, ts="%.3f" % e["ts"]) for e in trace["traceEvents"] if e["cat"] == "cpu_op"]
        out.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "Python"}})
    out += [{"ph": "M", "name": "process_name", "pid": p, "tid": 0, "args": {"name": n}} for n, p in PIDS.items() if n in rows]

    def add(row, tid, what, us, dur, arrow=None, **args):
        if row in rows:
            out.append({"name": what, "pid": PIDS[row], "tid": tid, "ts": "%.3f" % us, "dur": dur, "args": args, "ph": "X"})
            if arrow is not None:
                end(row, tid, us, arrow, "f")

    def end(row, tid, us, number, ph):
        out.append({"name": "HostToDevice%d" % number, "ph": ph, "id": str(number), "cat": "HostToDevice", "pid": PIDS[row], "tid": tid, "ts": "%.3f" % us})

    for e in trace["traceEvents"]:
        cat, a = e["cat"], e.get("args", {})
        number = (a.get("correlation", 0) << 32) + 0xFFFFFFFF  # wider than 32 bits
        if cat == "cuda_runtime" and "Synchronize" in e["name"] and host:
            add("CANN", e["tid"], "AscendCL@aclrtSynchronizeStreamWithTimeout", e["ts"], e["dur"])
            add("CANN", e["tid"], "Runtime@StreamSynchronize", e["ts"], e["dur"])
        elif cat == "cuda_runtime" and a.get("correlation") and host:
            end("CANN", e["tid"], e["ts"], number, "s")
        elif cat == "kernel" and "nccl" in e["name"]:
            add("Communication", 0, "hcom_allReduce__868_%d_1" % a["correlation"], e["ts"], e["dur"], number)
            add("Communication", 1, "Notify_Wait", e["ts"], e["dur"], **{"task type": "Notify_Wait"})
            add("Ascend Hardware", 99, "Notify Wait", e["ts"], e["dur"], **{"Task Type": "Notify Wait"})
            add("Ascend Hardware", 98, "Other", e["ts"], e["dur"], **{"Task Type": "Other"})
            add("Ascend Hardware", a["stream"], "EVENT_WAIT", e["ts"], e["dur"], **{"Task Type": "EVENT_WAIT_SQE"})
        elif cat == "kernel":
            add("Ascend Hardware", a["stream"], e["name"], e["ts"], e["dur"], number, **{"Task Type": "AI_CORE"})
            add("Overlap Analysis", 0, "Computing", e["ts"], e["dur"])
        elif cat in ("gpu_memcpy", "gpu_memset"):
            add("Ascend Hardware", a["stream"], "MEMCPY_ASYNC", e["ts"], e["dur"], number, **{"Task Type": "PCIE_DMA_SQE"})
        elif e["name"].startswith("ProfilerStep") and not host:
            add("Ascend Hardware", 10036, "Iteration " + e["name"].split("#")[1], e["ts"], e["dur"])
    with open(os.path.join(TMP, name), "w") as f:
        json.dump(out, f)
    return os.path.join(TMP, name)


def parts(r):
    return {b["name"]: b["s_per_step"] for b in r["breakdown"]}


with open(runs.trace("kineto.json")) as f:
    trace = json.load(f)
trace["traceEvents"] = [e for e in trace["traceEvents"] if not e["cat"].startswith("gpu_mem") and not e["name"].startswith("cudaMem")]
for e in trace["traceEvents"]:
    e["cat"] = e["cat"].replace("user_annotation", "cpu_op")  # as Ascend's does
with open(TMP + "/kineto.json", "w") as f:
    json.dump(trace, f)
want, path = report(TMP + "/kineto.json"), ascend(trace, "trace_view.json")
got = report(path)
assert got["run"]["source"] == "ascend" and got["verdict"]["class"] == want["verdict"]["class"] and got["verdict"]["tier"] == "A", got["verdict"]
assert got["steps"]["count"] == want["steps"]["count"] and abs(got["steps"]["median_s"] / want["steps"]["median_s"] - 1) < 1e-4
assert all(abs(parts(got)[k] - parts(want)[k]) < 2e-5 for k in ("compute", "input", "host", "communication")), (parts(got), parts(want))
said = tfhook("info", path).stdout.decode()
assert "Ascend's profiler" in said and "0 of them without the call" in said, said
tfhook("import", path, "-o", TMP + "/a.tft")
again = report(TMP + "/a.tft")
assert again["verdict"] == got["verdict"] and again["run"]["source"] == "ascend"

# Two that exchange at one time are ranks, though no file numbers them; two that were recorded one after the other are not.
later = dict(trace, traceEvents=[dict(e, ts=e["ts"] + 10**9) for e in trace["traceEvents"]])
for second, ranks in (trace, "2 ranks"), (later, "before or after it"):
    said = tfhook("report", path, ascend(second, "second.json")).stdout.decode()
    assert ranks in said, said

# MindSpore's: the device alone.
got = report(ascend(trace, "msprof_1.json", host=False))
assert got["steps"]["clock"] == "mark" and got["steps"]["count"] == want["steps"]["count"], got["steps"]
assert abs(parts(got)["compute"] / parts(want)["compute"] - 1) < 0.02, (parts(got), parts(want))

# As it is written to a directory.
os.makedirs(TMP + "/host_1_ascend_pt/ASCEND_PROFILER_OUTPUT")
with open(TMP + "/host_1_ascend_pt/profiler_info.json", "w") as f:
    f.write("{}")
os.rename(path, TMP + "/host_1_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json")
assert report(TMP + "/host_1_ascend_pt")["verdict"] == again["verdict"]
os.makedirs(TMP + "/job/host_2_ascend_pt/ASCEND_PROFILER_OUTPUT")
os.rename(TMP + "/host_1_ascend_pt", TMP + "/job/host_1_ascend_pt")
os.rename(ascend(trace, "other.json"), TMP + "/job/host_2_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json")
assert "2 ranks" in tfhook("report", TMP + "/job").stdout.decode()

for row in ("Ascend Hardware", "Communication"):
    said = tfhook("report", ascend(trace, "part.json", host=False, rows=(row,)), status=5).stderr.decode()
    assert "trace_view.json" in said and said.count("\n") == 1, said
with open(TMP + "/step_trace_0.json", "w") as f:
    json.dump([{"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "Step Trace"}},
               {"ph": "X", "name": "Iteration 1", "cat": "Iteration Time", "pid": 9, "tid": 9, "ts": 1, "dur": 9}], f)
said = tfhook("report", TMP + "/step_trace_0.json", status=5).stderr.decode()
assert "trace_view.json" in said and said.count("\n") == 1, said
with sqlite3.connect(TMP + "/ascend_pytorch_profiler_0.db") as db:
    db.execute("CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER)")
said = tfhook("report", TMP + "/ascend_pytorch_profiler_0.db", status=3).stderr.decode()
assert "trace_view.json" in said and said.count("\n") == 1, said
print("ok")
