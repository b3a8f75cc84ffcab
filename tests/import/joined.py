#!/usr/bin/env python3
"""The traces of several ranks, joined into one file as tools do it, give the report of the separate files: numbers of processes
made unique (TraceLens), or the rank's name in front of them (SGLang), where they may be equal."""
import json
import os
import subprocess

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TFHOOK = BUILD + "/bin/tfhook"
BASE = 1700000000000000  # us


def of_rank(rank):
    """Eight steps of 5 ms; rank 1 sleeps for 2 ms of each, and rank 0 waits for it in the exchange."""
    events, n = [], 0

    def add(cat, name, at, dur, pid=77, tid=77, **args):
        events.append(dict(ph="X", cat=cat, name=name, pid=pid, tid=tid, ts=BASE + at, dur=dur, args=args))

    for step in range(8):
        at = step * 5000
        add("user_annotation", f"ProfilerStep#{step}", at, 4990)
        late = 2000 if rank else 0
        add("cpu_op", "aten::mm", at + 100 + late, 50)
        for name, start, dur in (("gemm", at + 150 + late, 2000), ("ncclDevKernel_AllReduce", at + 2150 + late, 4300 - 2150 - late + 300)):
            n += 1
            add("cuda_runtime", "cudaLaunchKernel", start - 30, 5, correlation=n)
            add("kernel", name, start, dur, pid=0, tid=7, device=rank, stream=7, correlation=n)
    return events


def report(*files):
    r = subprocess.run([TFHOOK, "report", "--json", *files], capture_output=True, text=True)
    assert r.returncode == 0, (files, r.stderr)
    d = json.loads(r.stdout)
    return {k: d.get(k) for k in ("verdict", "steps", "ranks")}


def write(name, events, **more):
    with open(TMP + "/" + name, "w") as f:
        json.dump({**more, "traceEvents": events}, f)
    return TMP + "/" + name


apart = report(*(write(f"rank{r}.json", of_rank(r), distributedInfo={"rank": r, "world_size": 2}) for r in range(2)))
assert apart["steps"]["total"] == 8, apart["steps"]
for form, pid in (("numbers", lambda rank, pid: rank * 100000000 + pid), ("names", lambda rank, pid: f"[TP{rank:02d}] {pid}")):
    joined = report(write(form + ".json", [dict(e, pid=pid(r, e["pid"])) for r in range(2) for e in of_rank(r)]))
    assert joined == apart, (form, joined, apart)
one = report(write("one.json", of_rank(1)))
assert one["verdict"]["class"] == "host-bound", one["verdict"]
# PyTorch's profiler has 0 for the numbers of a thread that it does not know: no further rank.
waiting = dict(ph="X", cat="python_function", name="threading.py(316): wait", pid=0, tid=0, ts=BASE, dur=40000, args={})
for place in 0, 100:
    assert report(write("unknown.json", of_rank(1)[:place] + [waiting] + of_rank(1)[place:]))["ranks"] == one["ranks"]


def on_processor(rank):
    """The same on processors: exchanges of a thread of gloo's, which nothing matches with the other rank's."""
    events = []

    def add(cat, name, at, dur, tid=77):
        events.append(dict(ph="X", cat=cat, name=name, pid=70 + rank, tid=tid, ts=BASE + at, dur=dur, args={}))

    for step in range(8):
        at, late = step * 5000, 2000 * rank
        add("user_annotation", f"ProfilerStep#{step}", at, 4990)
        add("cpu_op", "aten::mm", at + 50 + late, 1000)
        add("user_annotation", "gloo:all_reduce", at + 1050 + late, 2100 - late, tid=78)
        add("cpu_op", "aten::add_", at + 3200, 1000)
    return events


for order in (0, 1), (1, 0):
    r = report(*(write(f"cpu{i}.json", on_processor(i), distributedInfo={"rank": i, "world_size": 2}) for i in order))
    assert [k["critical"] for k in sorted(r["ranks"], key=lambda k: k["rank"])] == [False, True], r["ranks"]
    assert r["verdict"]["class"] == "host-bound", r["verdict"]
