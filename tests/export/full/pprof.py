#!/usr/bin/env python3
"""pprof itself (Go's, of Debian) reads what `export --to pprof` writes: for each kernel and copy the number and time of the report's table, to the
nanosecond; below a call the time of what it issued; the verdict as a comment; parts by label; and the difference of a run with itself is nothing. Run by
`make check-export`.
timeout: 300"""
import collections
import csv
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402

subprocess.run([runs.SRC + "/scripts/bootstrap", "pprof"], check=True)
ENV = dict(os.environ, HOME=runs.TMP, PPROF_TMPDIR=runs.TMP, GOFLAGS="", GOTOOLCHAIN="local")


def pprof(*args):
    done = subprocess.run(["go", "tool", "pprof", *args], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, (args, done.stderr)
    return done.stdout


def top(path, kind, unit, *args):
    """name -> (own, with what is below)"""
    text = pprof("-top", "-nodecount=1000000", "-nodefraction=0", "-sample_index=" + kind, "-unit=" + unit, *args, path)
    rows = re.findall(r"^ *(-?[\d.]+)(?:ns)? +\S+ +\S+ +(-?[\d.]+)(?:ns)? +\S+  (.*)$", text, re.M)
    assert rows or "-diff_base" in " ".join(args), text
    return {name: (float(own), float(all_)) for own, all_, name in rows}


path = runs.trace("trace.json", names=["gemm", "void ns::op<float, 4>(int)", "\u202egnp", "a;b c"])
for source in (runs.record(), path):
    with open(runs.export("csv", source, runs.TMP + "/table.csv", "--force"), newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f, strict=True))
    ops = [r for r in rows if r["what"] == "op" and r["name"] != "Synchronisation"]
    call = {r["call"]: r["name"] for r in rows if r["what"] == "call"}
    out = runs.export("pprof", source, runs.TMP + "/out.pb.gz", "--force")
    ns, n, below = collections.Counter(), collections.Counter(), collections.Counter()
    for r in ops:
        length = int(r["end_ns"]) - int(r["start_ns"])
        n[r["name"]] += 1
        ns[r["name"]] += length
        below[call[r["call"]]] += length
    got = top(out, "device", "ns")
    assert {name: own for name, (own, _) in got.items() if own} == ns, (got, ns)
    assert {name: got[name][1] for name in below} == below, (got, below)
    assert {name: own for name, (own, _) in top(out, "ops", "count").items() if own} == n
    stream = collections.Counter()
    for r in ops:
        stream[r["stream"]] += int(r["end_ns"]) - int(r["start_ns"])
    for at, total in stream.items():
        assert sum(own for own, _ in top(out, "device", "ns", "-tagfocus=stream=^%s$" % at).values()) == total, (at, total)
    verdict = runs.report(source)["verdict"]
    comment = pprof("-comments", out)
    assert verdict["class"] in comment and verdict["cause"] in comment, comment
    assert not [own for own, _ in top(out, "host", "ns", "-diff_base=" + out).values() if own]
print("ok: %d kinds of ops" % len(ns))
