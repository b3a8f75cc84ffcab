#!/usr/bin/env python3
"""rocprof's `results.json` (versions 1 and 2; Chrome's format without categories, times in whole microseconds, nanoseconds and the kind of an entry
elsewhere) says the same of steps and of what the device did as PyTorch's profiler of the same events. Calls of HSA below those of HIP are only ranges;
where HSA alone was recorded, they are the launches. Arrows with the same time join nothing. `tfhook import` keeps it. Chakra's execution traces, which hold
no times, are refused in one line."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../export")
from runs import TMP, report, tfhook  # noqa: E402
import device_trace  # noqa: E402
from device_trace import check_same, parts  # noqa: E402

LABELS = {0: "Markers and Ranges", 1: "COPY", 2: "CPU HIP API", 3: "CPU HSA API", 6: "GPU0"}
COPIES = {"HtoD": "CopyHostToDevice", "DtoH": "CopyDeviceToHost"}


def rocprof(trace, name, labels=LABELS):
    """As rocprof writes the events of a trace of PyTorch's profiler."""
    out = [{}] + [{"args": {"name": text}, "ph": "M", "pid": pid, "name": "process_name", "sort_index": i} for i, (pid, text) in enumerate(labels.items())]
    arrows, ends = [], {}

    def add(pid, tid, what, us, dur, **args):
        begin = round(us * 1000) + 1
        out.append({"ph": "X", "name": what, "pid": str(pid), "tid": str(tid), "ts": str(begin // 1000), "dur": str(int(dur)),
                    "args": dict({"BeginNs": str(begin), "EndNs": str(begin + round(dur * 1000)), "pid": "219105", "tid": str(tid), "Name": what}, **args)})
        return begin // 1000

    for e in trace["traceEvents"]:
        cat, a = e.get("cat"), e.get("args", {})
        if cat == "cuda_runtime":
            call = e["name"].replace("cuda", "hip")
            pid = 2 if 2 in labels else 3
            what = call if pid == 2 else {"hipLaunchKernel": "hsa_dispatch", "hipMemcpyAsync": "hsa_amd_memory_async_copy"}.get(call, "hsa_signal_wait_scacquire")
            ends.setdefault(a["correlation"], {})["s"] = (pid, e["tid"], add(pid, e["tid"], what, e["ts"], e["dur"]))
            if pid == 2 and "Launch" in call:
                add(3, e["tid"], "hsa_dispatch", e["ts"] + 1, 0)
        elif cat == "kernel":
            at = add(6, a["stream"], e["name"], e["ts"], e["dur"], **{"gpu-id": "0", "queue-id": str(a["stream"]), "grd": "4096", "wgr": "128"})
            ends.setdefault(a["correlation"], {})["t"] = (6, a["stream"], at)
        elif cat == "gpu_memcpy":
            at = add(1, 0, next(v for k, v in COPIES.items() if k in e["name"]), e["ts"], e["dur"])
            ends.setdefault(a["correlation"], {})["t"] = (1, 0, at)
        elif cat == "user_annotation" and 0 in labels:
            add(0, e["tid"], e["name"], e["ts"], e["dur"])
    for i, pair in enumerate(p for p in ends.values() if len(p) == 2):
        arrows += [{"ts": ts, "ph": ph, "cat": "DataFlow", "id": i, "pid": pid, "tid": tid, "name": "dep"} for ph, (pid, tid, ts) in sorted(pair.items())]
    with open(os.path.join(TMP, name), "w") as f:
        json.dump({"traceEvents": out + arrows, "otherData": {"Agent0.Name": "gfx90a"}}, f)
    return os.path.join(TMP, name)


trace, want = device_trace.trace()
path = rocprof(trace, "results.json")
got = report(path)
check_same(got, want, "compute", "input", "host", "communication")
assert sum(parts(got)[k] - parts(want)[k] for k in parts(want)) < 1e-7  # whether memory is pageable is not in the file: the copies' time is split differently
said = tfhook("info", path).stdout.decode()
assert "by rocprof" in said and "0 of them without the call" in said and "HIP API" not in said, said
tfhook("import", path, "-o", TMP + "/r.tft")
again = report(TMP + "/r.tft")
assert again["verdict"] == got["verdict"] and again["run"]["source"] == "rocprof"

# HSA alone, without ranges; then two kernels that begin in the same microsecond.
got = report(rocprof(trace, "hsa.json", {k: v for k, v in LABELS.items() if k in (1, 3, 6)}))
assert got["verdict"]["tier"] == "A" and got["steps"]["count"] > 20 and abs(parts(got)["compute"] / parts(want)["compute"] - 1) < 0.1, (got["steps"], parts(got))
kernels = [e for e in trace["traceEvents"] if e["cat"] == "kernel"]
kernels[1].update(ts=kernels[0]["ts"], args=dict(kernels[1]["args"], stream=kernels[0]["args"]["stream"]))
said = tfhook("info", rocprof(trace, "meet.json")).stdout.decode()
assert "2 of them without the call" in said, said

with open(TMP + "/rank0.et", "wb") as f:
    f.write(b"\x0a\x05\x0a\x030.4\x12\x10")
with open(TMP + "/et.json", "w") as f:
    json.dump({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1, "name": "aten::mm"}]}, f)
for name in ("rank0.et", "et.json"):
    said = tfhook("report", TMP + "/" + name, status=3).stderr.decode()
    assert "times" in said and said.count("\n") == 1, said
print("ok")
