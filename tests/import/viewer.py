#!/usr/bin/env python3
"""The JSON that TensorFlow's and JAX's profilers write for a viewer says the same as the .xplane.pb that it was made from: class, cause, steps, parts, kernels.
The files are made here from XPlane files, as XProf makes them: planes are processes, lines threads, stats arguments, entries in order of time. Beside its
.xplane.pb in a directory it is left out. From a pipe it is refused with advice, and so is one without an event."""
import gzip
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../export")
import runs  # noqa: E402
from runs import TMP, report, tfhook  # noqa: E402


def fields(data):
    """(number, value) of a message; value: an int, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            size = varint() if size is None else size
            yield key >> 3, data[at:at + size]
            at += size


def names(message, number):
    """A map of metadata: number -> name."""
    out = {}
    for n, entry in fields(message):
        if n == number:
            entry = dict(fields(entry))
            out[entry.get(1, 0)] = dict(fields(entry[2])).get(2, b"").decode()
    return out


def viewer(path, name):
    with open(path, "rb") as f:
        planes = [value for n, value in fields(f.read()) if n == 1]
    events = []
    for pid, plane in enumerate(planes, 1):
        texts, stats = names(plane, 4), names(plane, 5)
        title = dict((n, v) for n, v in fields(plane) if n == 2).get(2, b"").decode()
        events.append({"args": {"name": title}, "name": "process_name", "ph": "M", "pid": pid})
        for line in (v for n, v in fields(plane) if n == 3):
            own = {n: v for n, v in fields(line) if n != 4}
            tid = own.get(1, 0) & (1 << 53) - 1
            events.append({"args": {"name": own.get(2, b"").decode()}, "name": "thread_name", "ph": "M", "pid": pid, "tid": tid})
            for event in (v for n, v in fields(line) if n == 4):
                e, args = {n: v for n, v in fields(event) if n != 4}, {}
                for stat in (dict(fields(v)) for n, v in fields(event) if n == 4):
                    value = next(stat[n] for n in (3, 4, 5, 6, 7, 2) if n in stat)
                    args[stats.get(stat.get(1), "?")] = stats[value] if 7 in stat else value.decode(errors="replace") if isinstance(value, bytes) else str(value)
                ns = own.get(3, 0) + e.get(2, 0) // 1000
                events.append({"args": args, "name": texts.get(e.get(1), ""), "ph": "X", "pid": pid, "tid": tid, "ts": ns, "dur": e.get(3, 0) // 1000})
    first = min(e["ts"] for e in events if e["ph"] == "X")
    for e in events:
        if e["ph"] == "X":
            e["ts"], e["dur"] = (e["ts"] - first) / 1000, e["dur"] / 1000
    events.sort(key=lambda e: e.get("ts", -1))
    with gzip.open(os.path.join(TMP, name), "wt") as f:
        json.dump({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events + [{}]}, f)
    return os.path.join(TMP, name)


def same(path, name):
    made = viewer(path, name)
    a, b = report(path), report(made)
    assert b["run"]["source"] == "xplane" and (a["verdict"]["class"], a["verdict"]["cause"]) == (b["verdict"]["class"], b["verdict"]["cause"])
    for key in ("breakdown", "steps"):
        assert a[key] == b[key], (key, a[key], b[key])
    assert [(k["name"], k["calls_per_step"]) for k in a["kernels"]] == [(k["name"], k["calls_per_step"]) for k in b["kernels"]]
    return made


os.mkdir(TMP + "/log")
path = runs.export("xplane", runs.trace("kineto.json"), TMP + "/log/host.xplane.pb")
made = same(path, "host.trace.json.gz")
traces = os.environ.get("TFH_TRACES", "")
if os.path.exists(os.path.join(traces, "tf_gpu_worker.xplane.pb")):
    same(os.path.join(traces, "tf_gpu_worker.xplane.pb"), "real.trace.json.gz")
tfhook("import", made, "-o", TMP + "/v.tft")
assert report(TMP + "/v.tft")["verdict"] == report(made)["verdict"]
shutil.copy(made, TMP + "/log")
assert tfhook("info", TMP + "/log").stdout.decode().count("0 of them without the call") == 1

with open(made, "rb") as f:
    said = tfhook("report", "-", stdin=f, status=5).stderr.decode()
assert "for a viewer" in said and said.count("\n") == 1, said
with open(TMP + "/empty.json", "w") as f:
    json.dump({"traceEvents": [{"args": {"name": "/device:GPU:0"}, "name": "process_name", "ph": "M", "pid": 1}]}, f)
said = tfhook("report", TMP + "/empty.json", status=5).stderr.decode()
assert "without a single event" in said and said.count("\n") == 1, said
with open(TMP + "/odd.json", "w") as f:  # numbers and texts of every kind, and entries without a name of their line
    json.dump({"traceEvents": [{"args": {"name": "/host:CPU"}, "name": "process_name", "ph": "M", "pid": 1}] + [
        {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": "\u202e", "args": {"correlation_id": "x", "step_num": [1], "name": {}}}
        for pid in (1, -1, "1", 1 << 62, None) for tid in (0, -5, "t", 1e300) for ts in (0, -1e300, 1e300, "4", None) for dur in (1, -1, 1e300, "2")]}, f)
assert tfhook("report", TMP + "/odd.json", status=5).stderr.count(b"\n") == 1
print("ok")
