#!/usr/bin/env python3
"""One damaged file or broken link in a directory of traces does not cost the others: they are reported, what was left out is reported with
its reason, and --strict makes it exit code 4; the names of a file that broke off half-way are not met again in the next. A trace may
come out of a pipe, and begin with a byte-order mark. Files of other kinds are refused with one line that says what to do."""
import gzip
import json
import os
import subprocess
import sys

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TFHOOK = BUILD + "/bin/tfhook"
BASE = 1700000000000000


def trace(rank, steps=4, kernel="gemm"):
    events = []
    for i in range(steps):
        t = BASE + i * 1000
        events.append(dict(ph="X", cat="user_annotation", name="ProfilerStep#%d" % i, pid=7, tid=7, ts=t, dur=1000))
        events.append(dict(ph="X", cat="cpu_op", name="op of rank %d" % rank, pid=7, tid=7, ts=t + 10, dur=30))
        events.append(dict(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=7, tid=7, ts=t + 20, dur=5,
                           args={"correlation": i + 1}))
        events.append(dict(ph="X", cat="kernel", name="%s_%d" % (kernel, rank), pid=0, tid=3, ts=t + 40, dur=700,
                           args={"correlation": i + 1, "stream": 3, "device": 0}))
    return json.dumps({"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": events})


def run(*args, stdin=None):
    p = subprocess.run([TFHOOK, *args], input=stdin, capture_output=True)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def put(name, data):
    path = os.path.join(TMP, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


# A directory: the cut file comes first, so that its process is begun before it breaks off.
put("job/a.json", trace(3, kernel="cut")[:-300])
put("job/b.pt.trace.json", trace(0))
put("job/c.json.gz", gzip.compress(trace(1).encode()))
put("job/config.json", '{"batch": 32}')
os.symlink("/nowhere/at/all", TMP + "/job/d.json")
code, out, err = run("report", "--json", TMP + "/job")
assert code == 0, (code, err)
r = json.loads(out)
assert [x["rank"] for x in r["ranks"]] == [0, 1] and r["world"]["seen"] == 2 and r["world"]["ranks"] == 4, r["world"]
assert err.count("skipped: ") == 2 and "a.json: it ends" in err and "d.json: No such file" in err, err
assert (r["quality"]["files"], r["quality"]["files_complete"]) == (4, 2), r["quality"]
dump = subprocess.check_output([BUILD + "/tests/import/dump", TMP + "/job"]).decode()
assert "cut_3" not in dump and "op of rank 3" not in dump and "gemm_0" in dump and "op of rank 1" in dump
code, _, err = run("import", TMP + "/job", "-o", TMP + "/imported")
assert code == 0 and err.count("skipped: ") == 2 and len(os.listdir(TMP + "/imported")) == 2, (code, err)
code, _, err = run("report", "--strict", TMP + "/job")
assert code == 4, (code, err)
code, _, err = run("report", TMP + "/job/a.json", TMP + "/job/b.pt.trace.json")
assert code == 3 and err.count("\n") == 1, "a file that was asked for is needed"
put("bad/a.json", "{}")
put("bad/b.json", trace(0)[:-9])
code, _, err = run("report", TMP + "/bad")
assert code == 3 and "b.json: it ends" in err, "of several reasons the one of a damaged trace"

# Pipes.
want = run("report", "--json", put("one.json", trace(0)))[1]
for data in (trace(0).encode(), gzip.compress(trace(0).encode()), b"\xef\xbb\xbf" + trace(0).encode()):
    code, out, err = run("report", "--json", "-", stdin=data)
    assert code == 0, err
    a, b = json.loads(out), json.loads(want)
    assert (a["verdict"], a["steps"], a["breakdown"]) == (b["verdict"], b["steps"], b["breakdown"])
put("bom.json", b"\xef\xbb\xbf" + trace(0).encode())
assert run("report", TMP + "/bom.json")[0] == 0
fifo = TMP + "/fifo"
os.mkfifo(fifo)
feeder = subprocess.Popen(["sh", "-c", 'cat "$0" > "$1"', TMP + "/one.json", fifo])
assert run("report", fifo)[0] == 0 and feeder.wait() == 0
for data, words in ((b"", "empty"), (b"hello", "neither JSON"), (b"\xef\xbb\xbf", "neither JSON"), (trace(0)[:-200].encode(), "ends")):
    code, _, err = run("report", "-", stdin=data)
    assert code == 3 and err.startswith("tfhook: standard input: ") and words in err and err.count("\n") == 1, (data[:9], err)

# Other formats.
for name, data, words in (("x.sqlite", b"SQLite format 3\0", "not a database"), ("x.nsys-rep", b"\1\2\3", "nsys export"),
                          ("x.ncu-rep", b"\1\2\3", "Nsight Compute"), ("x.zip", b"PK\3\4..", "unpack"),
                          ("x.zst", b"\x28\xb5\x2f\xfd..", "zstd -dc"), ("x.bz2", b"BZh9..", "bzip2 -dc"), ("x.xz", b"\xfd7zXZ\0", "xz -dc"),
                          ("x.pftrace", b"\n\3abc", "Perfetto"), ("x.pickle", b"\x80\4\x95...", "pickle")):
    path = put(name, data)
    for args in (("report", path), ("import", path, "-o", TMP + "/out.tft")):
        code, _, err = run(*args)
        assert code == 3 and words in err and name in err and err.count("\n") == 1, (name, err)
    assert not os.path.exists(TMP + "/out.tft")

# A pipe that lies in a directory is not waited for; one that is named is read.
put("piped/a.json", trace(0))
for name in ("b.json", "c.xplane.pb", "d.json.gz"):
    os.mkfifo(TMP + "/piped/" + name)
out = subprocess.run([TFHOOK, "report", "--json", TMP + "/piped"], capture_output=True, timeout=60)
assert out.returncode == 0 and json.loads(out.stdout)["world"]["seen"] == 1, out
out = subprocess.run("cat %s/piped/a.json >%s/piped/b.json & exec %s report --json %s/piped/b.json" % (TMP, TMP, TFHOOK, TMP), shell=True,
                     capture_output=True, timeout=60)
assert out.returncode == 0 and json.loads(out.stdout)["world"]["seen"] == 1, out
sys.exit(0)

# PyTorch on Windows wrote paths with backslashes that are no escapes. Functions are named as they are elsewhere.
windows = json.loads(trace(0))
windows["traceEvents"].append(dict(ph="X", cat="python_function", name="torch#nn#modules#linear.py(113): forward", pid=7, tid=7, ts=BASE + 750, dur=240))
windows["traceEvents"].append(dict(ph="X", cat="python_function", name="torch#utils#data#dataloader.py(20): __iter__", pid=7, tid=7, ts=BASE + 1750, dur=240))
dump = subprocess.check_output([BUILD + "/tests/import/dump", put("windows.json", json.dumps(windows).replace("#", "\\"))]).decode()
assert "torch/nn/modules/linear.py(113)" in dump and "torch/utils/data/dataloader.py(20)" in dump, dump

# The mark that PyTorch's profiler begins as it stops is no step: the trace is one.
brief = json.loads(trace(0, steps=1))
brief["traceEvents"][0].update(name="ProfilerStep#1", ts=BASE + 985, dur=6)
for x in brief["traceEvents"][1:]:
    x["dur"] *= 1.3
code, out, err = run("report", "--json", put("brief.json", json.dumps(brief)))
r = json.loads(out)
assert r["steps"]["total"] == 1 and r["steps"]["median_s"] > 0.0008 and r["verdict"]["class"] == "compute-bound", (r["steps"], r["verdict"])
