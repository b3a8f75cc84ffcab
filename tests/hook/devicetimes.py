"""What tests of device times share: runs under the recorder, what the model says of them, and the simulated driver's
log to compare with."""
import json
import os
import statistics
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
KIND = {1: "kernel", 2: "copy", 3: "memset", 5: "graph"}
DIR = {1: "H2D", 2: "D2H", 3: "D2D", 4: "H2H", 5: "P2P"}


def start(name, *command, lib="libcupti.so.13", preload=True, **env):
    run, truth = f"{tmp}/{name}", f"{tmp}/{name}.truth"
    full = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "SIM_TRUTH": truth, "TFHOOK_RUN": run,
            "TFHOOK_CUPTI_LIB": f"{build}/sim/{lib}" if lib else "/nonexistent/libcupti.so",
            "LD_PRELOAD": f"{build}/lib/libtfhook.so" if preload else "", **env}
    return run, truth, subprocess.Popen(command, env={k: v for k, v in full.items() if v != ""},
                                        stdout=subprocess.DEVNULL)


def read(run, begun=True):
    """begun: there must be something to read."""
    out = subprocess.run([f"{build}/tests/hook/ops", run], stdout=subprocess.PIPE, text=True,
                         stderr=None if begun else subprocess.DEVNULL)
    lines = [json.loads(line) for line in out.stdout.splitlines()]
    check(out.returncode == 0 and lines or not begun, run, "is not readable")
    infos = [x for x in lines if "pid" in x]
    return [x for x in lines if "pid" not in x], infos[0] if infos else {"why": "", "spans": [], "ops": 0}


def read_truth(path):
    with open(path) as f:
        lines = [json.loads(line) for line in f if line.endswith("\n")]  # a job that is killed may be writing its last one
    return ([x for x in lines if x["ev"] == "op" and x["kind"] in KIND.values()],
            {x["n"]: x for x in lines if x["ev"] == "call"})


def record(name, *command, **env):
    run, truth, process = start(name, *command, **env)
    check(process.wait() == 0, name, "ended with", process.returncode)
    return (*read(run), *read_truth(truth))


def shift_of(ops, calls):
    """The run's axis against the log's, from the calls: both read the clock around the same one. The log of a job that was
    ended may lack the last ones."""
    return statistics.median([op["issue0"] - calls[op["correlation"]]["t0"] for op in ops
                              if op["call"] >= 0 and op["correlation"] in calls])


def compare(name, ops, info, truth, calls, lost=0, issued=True, exact=True):
    """Every op of the log is there once, or as many as `lost` are missing."""
    left = {}
    for op in ops:
        left.setdefault((op["correlation"], op["node"] if op["graph"] else 0), []).append(op)
    if not ops:
        check(not truth, name, "has no ops of", len(truth))
        return
    shift = shift_of(ops, calls) if any(op["call"] >= 0 for op in ops) else None
    missing, far = 0, 0
    for t in truth:
        found = left.get((t["n"], t.get("node", 0) if t.get("graph") else 0))
        op = found.pop(0) if found else None
        if not op:
            missing += 1
            continue
        check(KIND[op["kind"]] == t["kind"] and op["device"] == t["dev"] and op["stream"] == t["stream"], name, op, t)
        check(abs((op["t1"] - op["t0"]) - (t["end"] - t["start"])) < 2000, name, "lasts", op, t)
        if shift is not None:
            far += abs(op["t0"] - shift - t["start"]) > 200000
        if t["kind"] == "kernel":
            check(op["name"] == t["name"], name, op, t)
        else:
            check(op["bytes"] == t["bytes"], name, op, t)
        if t["kind"] == "copy":
            check(DIR.get(op["dir"]) == t["dir"] and bool(op["pageable"]) == bool(t["pageable"]), name, op, t)
        call = calls[t["n"]]
        # A call that was under way when device times were turned on has an op and no record of its own.
        begun = op["call"] < 0 and shift is not None and any(call["t0"] + shift < a <= op["t0"] for a, _, _ in info["spans"])
        if issued and not begun and check(op["call"] >= 0, name, "no call", op, t):
            check(op["tid"] == call["tid"], name, "thread", op, call)
            check(op["issue0"] - shift <= call["t0"] + 1000 and op["issue1"] - shift >= call["t1"] - 1000, name,
                  "another call", op, call, shift)
    check(missing == lost, name, "lacks", missing, "and not", lost)
    check(not exact or not any(left.values()), name, "has more", [x for v in left.values() for x in v][:3])
    check(far <= len(truth) // 50, name, far, "of", len(truth), "are more than 200 us off")
    starts = [op["t0"] for op in ops]
    check(starts == sorted(starts), name, "order")
    if not lost:
        inside = sum(any(a <= op["t0"] and op["t1"] <= b for a, b, _ in info["spans"]) for op in ops)
        check(inside == len(ops), name, inside, "of", len(ops), "lie in spans", info["spans"])


LOOP = [f"{build}/tests/jobs/client_loop", "--steps", "30", "--h2d", "300000", "--d2h", "1000", "--launches", "10",
        "--spin", "50", "--stream", "own", "--sync", "stream"]
GRAPHS = [f"{build}/tests/sim/graphs"]
