#!/usr/bin/env python3
"""`export --to pprof` is a profile as profile.proto defines it: stacks of each thread add up to the calls of `--to csv`, without what they spend in inner
ones; each device op is below the call that issued it, and ops have the number and time of the table; labels name process, thread, device and stream; lines
of Python are those of `report --folded`. Names of all kinds are kept, deep and overlapping ranges neither counted twice nor lost, and a second export is the
same."""
import collections
import csv
import gzip
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

runs.within(__file__)
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402

# The fields of profile.proto that are used: name -> number, type ("s": text), repeated.
FIELDS = {
    "Type": {"type": (1, "i", 0), "unit": (2, "i", 0)},
    "Label": {"key": (1, "i", 0), "str": (2, "i", 0), "num": (3, "i", 0)},
    "Sample": {"location_id": (1, "u", 1), "value": (2, "i", 1), "label": (3, "Label", 1)},
    "Line": {"function_id": (1, "u", 0), "line": (2, "i", 0)},
    "Location": {"id": (1, "u", 0), "line": (4, "Line", 1)},
    "Function": {"id": (1, "u", 0), "name": (2, "i", 0), "system_name": (3, "i", 0), "filename": (4, "i", 0)},
    "Profile": {"sample_type": (1, "Type", 1), "sample": (2, "Sample", 1), "location": (4, "Location", 1), "function": (5, "Function", 1),
                "string_table": (6, "s", 1), "time_nanos": (9, "i", 0), "duration_nanos": (10, "i", 0), "comment": (13, "i", 1),
                "default_sample_type": (14, "i", 0)},
}
KINDS = {"i": 3, "u": 4, "s": 9}
file = descriptor_pb2.FileDescriptorProto(name="profile.proto", syntax="proto3")
for message, fields in FIELDS.items():
    one = file.message_type.add(name=message)
    for name, (number, kind, repeated) in fields.items():
        field = one.field.add(name=name, number=number, label=3 if repeated else 1, type=KINDS.get(kind, 11))
        if kind not in KINDS:
            field.type_name = "." + kind
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Profile = message_factory.GetMessageClass(pool.FindMessageTypeByName("Profile"))
TYPES = ["calls/count", "host/nanoseconds", "ops/count", "device/nanoseconds", "python_per_step/nanoseconds"]
Sample = collections.namedtuple("Sample", "stack labels calls host ops device python")


def read(path):
    """The profile, and its samples; the innermost frame of a stack comes first."""
    p = Profile()
    with gzip.open(path) as f:
        p.ParseFromString(f.read())
    text = p.string_table
    assert text[0] == "" and len(set(text)) == len(text)
    assert [text[t.type] + "/" + text[t.unit] for t in p.sample_type] == TYPES
    function = {f.id: (text[f.name], text[f.filename]) for f in p.function}
    frame = {at.id: (*function[at.line[0].function_id], at.line[0].line) for at in p.location}
    assert 0 not in frame and len(set(frame.values())) == len(frame) == len(p.location) and len(function) == len(p.function)
    got = [Sample(tuple(frame[at] for at in s.location_id), {text[one.key]: text[one.str] for one in s.label}, *s.value) for s in p.sample]
    assert len({(s.stack, tuple(s.labels.items())) for s in got}) == len(got) and all(any(s[2:]) and min(s[2:]) >= 0 for s in got)
    return p, got


def table(path, *flags):
    with open(runs.export("csv", path, runs.TMP + "/table.csv", "--force", *flags), newline="", encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(f, strict=True)]
    return [r for r in rows if r["what"] in ("call", "range")], [r for r in rows if r["what"] == "op"]


def length(row):
    return int(row["end_ns"]) - int(row["start_ns"])


def covered(rows):
    """The time that rows of one thread take together."""
    total, until = 0, None
    for begin, end in sorted((int(r["start_ns"]), int(r["end_ns"])) for r in rows):
        total += max(0, end - (begin if until is None else max(begin, until)))
        until = end if until is None else max(until, end)
    return total


def compare(path, *flags):
    """A profile with the table of the same run; the samples."""
    p, got = read(runs.export("pprof", path, runs.TMP + "/out.pb.gz", "--force", *flags))
    calls, ops = table(path, *flags)
    calls = [r for r in calls if r["calls"] == "1"]
    ops = [r for r in ops if r["name"] != "Synchronisation"]
    counted = collections.Counter()
    for s in got:
        counted[s.stack[0][0], s.labels.get("thread", "").split(" ")[-1]] += s.calls
    assert +counted == collections.Counter((name_of(r), r["tid"]) for r in calls), (path, flags)
    for tid in {r["tid"] for r in calls}:
        host = sum(s.host for s in got if s.labels.get("thread", "").split(" ")[-1] == tid)
        assert host == covered([r for r in calls if r["tid"] == tid]), (path, tid, host)
    device = collections.Counter()
    for s in got:
        if s.ops:
            device[s.stack[0][0], s.labels["device"], s.labels["stream"], "ops"] += s.ops
            device[s.stack[0][0], s.labels["device"], s.labels["stream"], "ns"] += s.device
    want = collections.Counter()
    for r in ops:
        want[name_of(r), r["device"], r["stream"], "ops"] += 1
        want[name_of(r), r["device"], r["stream"], "ns"] += length(r)
    assert device == want, (path, flags, device, want)
    by_id = {r["call"]: name_of(r) for r in calls}
    issued = collections.Counter((s.stack[0][0], s.stack[1][0] if len(s.stack) > 1 else None) for s in got for _ in range(s.ops))
    assert issued == collections.Counter((name_of(r), by_id.get(r["call"])) for r in ops), (path, flags)
    return p, got


def name_of(row):
    """What a spreadsheet would take for a formula has an apostrophe in the table."""
    name = row["name"]
    return name[1:] if name[:1] == "'" and name[1:2] in tuple("=+-@\t\r") else name


run = runs.record()
p, got = compare(run)
verdict = runs.report(run)["verdict"]
assert verdict["class"] in p.string_table[p.comment[0]] and verdict["cause"] in p.string_table[p.comment[0]]
assert p.string_table[p.default_sample_type] == "device" and p.time_nanos > 0 and p.duration_nanos > 0
kernels = [s for s in got if s.stack[0][0] == "spin"]
assert sum(s.ops for s in kernels) == 300 and all(s.stack[1][0].startswith("cuLaunchKernel") for s in kernels)
with open(runs.TMP + "/out.pb.gz", "rb") as f:
    assert f.read() == runs.tfhook("export", "--to", "pprof", "-o", "-", run).stdout
compare(run, "--steps", "20-29")

# Ranges inside one another, and names of all kinds.
path = runs.trace("hostile.json", names=runs.HOSTILE, overlap=False)
_, got = compare(path)
names = {s.stack[0][0] for s in got}
assert all(name.replace("\0", "\ufffd") in names for name in runs.HOSTILE), names

# Ranks, whose calls have the same numbers.
os.mkdir(runs.TMP + "/ranks")
for rank in (0, 1):
    runs.trace("ranks/r%d.json" % rank, rank=rank, world=2, names=["kernel of rank %d" % rank], pid=100 + rank)
_, got = read(runs.export("pprof", runs.TMP + "/ranks", runs.TMP + "/ranks.pb.gz"))
for rank in ("0", "1"):
    kernels = [s for s in got if s.ops and s.labels["rank"] == rank]
    assert {s.labels["pid"] for s in kernels} == {"10" + rank} and sum(s.ops for s in kernels) == 180, kernels
    assert [s.stack[2][0] for s in kernels if s.stack[0][0] == "kernel of rank " + rank] == ["kernel of rank %s op" % rank], kernels

# A range that begins in another one and ends after it counts whole, and what both lie in has neither's time twice.
events = [dict(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=1, tid=1, ts=runs.BASE + 1000 * i, dur=5) for i in range(9)]
for name, t, dur in (("all", 100, 800), ("first", 200, 200), ("second", 300, 300), ("in both", 350, 20), ("in second", 500, 50)):
    events.append(dict(ph="X", cat="user_annotation", name=name, pid=1, tid=1, ts=runs.BASE + t, dur=dur))
# Deeper than a profile's stacks: the launch in there counts as the deepest that is kept.
events += [dict(ph="X", cat="user_annotation", name="deep %d" % i, pid=1, tid=2, ts=runs.BASE + i, dur=2000 - 2 * i) for i in range(300)]
events.append(dict(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=1, tid=2, ts=runs.BASE + 900, dur=2, args={"correlation": 7}))
events.append(dict(ph="X", cat="kernel", name="k", pid=0, tid=7, ts=runs.BASE + 950, dur=50, args={"correlation": 7, "stream": 7, "device": 0}))
with open(runs.TMP + "/nested.json", "w") as f:
    json.dump({"traceEvents": events}, f)
_, got = read(runs.export("pprof", runs.TMP + "/nested.json", runs.TMP + "/nested.pb.gz"))
own = {s.stack[0][0]: s.host // 1000 for s in got}
assert [own[name] for name in ("all", "first", "second", "in both", "in second")] == [800 - 400, 200, 300 - 20 - 50, 20, 50], own
kernel, = [s for s in got if s.ops]
assert len(kernel.stack) == 257 and kernel.stack[1][0] == "deep 255", kernel.stack[:3]
assert sum(s.host for s in got if s.labels["thread"] == "2") == 2000000

# Lines of Python.
if os.environ.get("TFH_PY"):
    job = [os.environ["TFH_PY"], runs.SRC + "/tests/jobs/client_cb.py", "--steps", "150", "--sleep", "8", "--spin", "300"]
    subprocess.run([runs.BUILD + "/bin/tfhook", "run", "-q", "-o", runs.TMP + "/python", *job], env=dict(runs.ENV, TFHOOK_STACKS="on"), check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folded = collections.Counter()
    for line in runs.tfhook("report", "--folded", runs.TMP + "/python").stdout.decode().splitlines():
        stack, us = line.rsplit(" ", 1)
        folded[tuple(stack.split(";"))] += int(us)
    p, got = read(runs.export("pprof", runs.TMP + "/python", runs.TMP + "/python.pb.gz"))
    mine = collections.Counter()
    for s in got:
        if s.python >= 500:
            stack = tuple("%s_(%s:%d)" % (name, os.path.basename(path), line) for name, path, line in reversed(s.stack))
            mine[("(workers)", *stack) if s.labels.get("thread") == "(workers)" else stack] += s.python / 1000
    assert set(mine) == set(folded) and all(abs(mine[s] - folded[s]) <= 1 for s in folded), (mine, folded)
    assert all("client_cb.py" in s.stack[-1][1] for s in got if s.python), [s.stack for s in got if s.python]
    assert not [s for s in read(runs.export("pprof", runs.TMP + "/python", runs.TMP + "/part.pb.gz", "--steps", "20-29"))[1] if s.python]
print("ok")
