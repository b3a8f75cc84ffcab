#!/usr/bin/env python3
"""The comparison of a trace with the driver's log, which other tests rely on, finds each kind of difference: what is changed in
a copy of the log is reported."""
import copy
import io
import json
import sys
from contextlib import redirect_stdout

import compare
import common  # compare knows where it is
from compare import build, run, truth_of

records, truth, place = run("loop", f"{build}/tests/jobs/client_loop", "--steps", "5", "--h2d", "5000", "--d2h", "1000",
                            "--launches", "2", "--spin", "20", "--stream", "own", "--sync", "stream")
ops = truth_of(place, "op")
compare.compare("loop", records, truth, place)
if compare.failed():
    sys.exit(1)


def differences(change, ops_too=False):
    """How many are found after a change of the log's calls (or operations)."""
    calls, changed = copy.deepcopy(truth), copy.deepcopy(ops)
    change(changed if ops_too else calls)
    with open(f"{place}/truth", "w") as f:
        f.writelines(json.dumps(event) + "\n" for event in calls + changed)
    common.failures = 0
    with redirect_stdout(io.StringIO()):
        compare.compare("changed", records, calls, place)
    return common.failures


def change(key, value, **where):
    """Changes one field of the last event that has these fields."""
    def apply(events):
        event = [e for e in events if all(str(e.get(k, "")).startswith(v) for k, v in where.items())][-1]
        event[key] = value(event[key])
    return apply


def lose(events):
    del events[[i for i, e in enumerate(events) if e["fn"] == "cuLaunchKernel"][1]]


def swap(events):
    launches = [e for e in events if e["fn"] == "cuLaunchKernel"]
    copies = [e for e in events if e["fn"].startswith("cuMemcpyHtoD")]
    launches[0]["fn"], copies[0]["fn"] = copies[0]["fn"], launches[0]["fn"]


def late(events):
    for event in events:
        event["t1"] += 10**9


H2D, LAUNCH = {"fn": "cuMemcpyHtoD"}, {"fn": "cuLaunchKernel"}
cases = {
    "nothing": (lambda events: None, 0),
    "a call lost": (lose, 1),
    "order": (swap, 1),
    "thread": (change("tid", lambda tid: tid + 1, **LAUNCH), 1),
    "times": (late, 1),
    "result": (change("rc", lambda rc: 1, **LAUNCH), 1),
    "bytes": (change("bytes", lambda n: n + 1, **H2D), 1),
    "direction": (change("dir", lambda d: "D2H", **H2D), 1),
    "pinned": (change("host", lambda h: {"pageable": "pinned", "pinned": "pageable"}[h], **H2D), 1),
    "kernel": (change("kernel", lambda name: name + "2", **LAUNCH), 1),
    "stream": (change("stream", lambda s: 1, **LAUNCH), 1),
}
for what, (how, expected) in cases.items():
    if (differences(how) > 0) != expected:
        sys.exit(f"FAILED: {what}: {common.failures} differences found")
for key, value in (("grid", lambda g: [g[0] + 1, *g[1:]]), ("block", lambda b: [b[0] + 1, *b[1:]])):
    if not differences(change(key, value, kind="kernel"), ops_too=True):
        sys.exit(f"FAILED: {key}: no difference found")
