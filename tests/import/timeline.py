#!/usr/bin/env python3
"""The timeline that TensorFlow 1 writes of one call of a session: class, cause and parts, with and without a device, in the words of old and new versions;
what repeats other rows, and what names no device, counts for nothing. From a pipe it is refused with advice, and so is one without an op."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../export")
import runs  # noqa: E402
from runs import TMP, report, tfhook  # noqa: E402


class Timeline:
    def __init__(self):
        self.events, self.pids = [], {}

    def op(self, process, kind, node, ts, dur, tid=0):
        if process not in self.pids:
            self.pids[process] = len(self.pids)
            self.events.insert(len(self.pids) - 1, {"name": "process_name", "ph": "M", "pid": self.pids[process], "args": {"name": process}})
        self.events.append({"ph": "X", "cat": "Op", "name": kind, "pid": self.pids[process], "tid": tid, "ts": 1500000000000000 + ts, "dur": dur,
                            "args": {"name": node, "op": kind}})

    def write(self, name):
        with open(f"{TMP}/{name}", "w") as f:
            json.dump({"traceEvents": self.events}, f)
        return f"{TMP}/{name}"


def parts(name):
    r = report(f"{TMP}/{name}")
    v = r["verdict"]
    return v["class"], v["cause"], r["steps"]["total"], {x["name"]: round(1e6 * x["s_per_step"]) for x in r["breakdown"]}


def job(get, cpu, gpu, device):
    """A batch of `get` us, then ten products: each is executed in 100 us; its kernel takes the last 40 of them."""
    t = Timeline()
    t.op(cpu, "IteratorGetNext", "next", 0, get)
    for i in range(10):
        at = get + 100 * i
        t.op(gpu, "MatMul", f"layer{i}/MatMul", at, 95)
        for stream in ("7", "all"):
            t.op(f"{device}/stream:{stream} Compute", "MatMul", f"layer{i}/MatMul", at + 60, 40)
    t.op(f"{device}/stream:8 Compute", "MEMCPYDtoH", "edge_5_layer9/MatMul", get + 1010, 20)
    t.op(f"{device}/memcpy Compute", "MEMCPYDtoH", "edge_5_layer9/MatMul", get + 1010, 20)
    t.op("Allocators", "gpu_bfc", "x", 0, 1)
    return t


new = "/job:localhost/replica:0/task:0/device:{} Compute", "/device:GPU:0"
old = "/job:localhost/replica:0/task:0/{} Compute", "/gpu:0"
job(3000, new[0].format("CPU:0"), new[0].format("GPU:0"), new[1]).write("new.json")
job(3000, old[0].format("cpu:0"), old[0].format("gpu:0"), old[1]).write("old.json")
for name in ("new.json", "old.json"):
    cls, cause, steps, part = parts(name)
    assert (cls, cause, steps) == ("input-bound", "input.unknown", 1), (cls, cause, steps)
    assert part["compute"] == 400 and abs(part["input"] - 3000) <= 60 and part["transfer"] <= 60, part
    assert sum(part.values()) in range(4028, 4033), part
job(10, new[0].format("CPU:0"), new[0].format("GPU:0"), new[1]).write("launches.json")
cls, cause, steps, part = parts("launches.json")
assert (cls, cause, steps) == ("host-bound", "host.launch", 1), (cls, cause, steps)
assert part["compute"] == 400 and part["launch"] >= 500, part

# Without a device, what executors do at the same time counts once.
t = Timeline()
for i in range(8):
    t.op(new[0].format("CPU:0"), "MatMul", f"m{i}", 1000 * i, 990, 0)
    t.op(new[0].format("CPU:0"), "Conv2D", f"c{i}", 1000 * i + 200, 990, 1)
t.write("cpu.json")
cls, cause, steps, part = parts("cpu.json")
assert (cls, cause, steps) == ("compute-bound", "compute.cpu", 1), (cls, cause, steps)
assert part["compute"] == 8190, part

with open(f"{TMP}/new.json", "rb") as f:
    said = tfhook("report", "-", stdin=f, status=5).stderr.decode()
assert "give the file itself" in said and said.count("\n") == 1, said
t = Timeline()
t.op("/device:GPU:0/stream:all Compute", "MatMul", "m", 0, 10)
said = tfhook("report", t.write("none.json"), status=5).stderr.decode()
assert "without a single op" in said and said.count("\n") == 1, said
tfhook("import", f"{TMP}/new.json", "-o", TMP + "/t.tft")
assert report(TMP + "/t.tft")["verdict"] == report(f"{TMP}/new.json")["verdict"] and report(TMP + "/t.tft")["run"]["source"] == "timeline"
with open(f"{TMP}/odd.json", "w") as f:  # numbers and texts of every kind
    json.dump({"traceEvents": [{"args": {"name": "/job:localhost/x/gpu:0 Compute"}, "name": "process_name", "ph": "M", "pid": 1},
                               {"args": {"name": "/gpu:99999999999/stream:77777777777 Compute"}, "name": "process_name", "ph": "M", "pid": 2}] + [
        {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": "\u202e", "args": {"name": node}}
        for pid in (1, 2, -1, "1", 1 << 62, None) for tid in (0, "t", 1e300) for ts in (0, -1e300, 1e300, "4", None) for dur in (1, -1, 1e300, "2")
        for node in ("edge_", "edge_1_", "", None, {})]}, f)
tfhook("report", f"{TMP}/odd.json")
print("ok")
