"""A trace of PyTorch's profiler, reduced to what AMD's profilers record as well, and a check that another report has the same steps, parts
of a step and kernels."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../export")
import runs  # noqa: E402
from runs import TMP, report  # noqa: E402


def trace():
    """The trace without what the others do not have, and its report."""
    with open(runs.trace("kineto.json")) as f:
        found = json.load(f)
    found["traceEvents"] = [e for e in found["traceEvents"] if e["cat"] not in ("gpu_memset", "cpu_op") and e["name"] != "cudaMemsetAsync"]
    with open(TMP + "/kineto.json", "w") as f:
        json.dump(found, f)
    return found, report(TMP + "/kineto.json")


def parts(r):
    return {b["name"]: b["s_per_step"] for b in r["breakdown"]}


def check_same(got, want, *same):
    """same: names of the parts whose time must be equal."""
    assert got["run"]["source"] == "rocprof" and got["verdict"]["class"] == want["verdict"]["class"] and got["verdict"]["tier"] == "A", got["verdict"]
    assert got["steps"]["count"] == want["steps"]["count"] and abs(got["steps"]["median_s"] / want["steps"]["median_s"] - 1) < 1e-4
    assert all(abs(parts(got)[k] - parts(want)[k]) < 1e-7 for k in same), (parts(got), parts(want))
    assert [(k["name"], k["calls_per_step"]) for k in got["kernels"]] == [(k["name"], k["calls_per_step"]) for k in want["kernels"]]
