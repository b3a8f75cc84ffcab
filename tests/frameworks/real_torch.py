#!/usr/bin/env python3
"""Training jobs of real PyTorch's: steps and batches are as many as the job counts itself, losses and weights the same bit for bit, its
output too. Verdicts and predictions of many more: tests/frameworks/scenarios.

timeout: 900

A short part where the environment `torch` exists already; all of it, in every version that TFH_TORCH names, in `make
check-frameworks`. TFH_TORCH: pythons that can import torch, separated by colons. Not torch.py: the jobs beside it import that name.
"""
import collections
import json
import os
import re
import socket
import subprocess
import sys

SRC = os.environ.get("TFH_SRC") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SRC, "tests", "tf"))
from tfrun import BUILD, LIBRARY, NAME_STRING, RANGE, SKIP, TMP, Outcome, check  # noqa: E402

FULL = os.environ.get("TFH_FULL")
JOB = os.path.join(SRC, "tests", "frameworks", "torch_jobs.py")
TOOL = os.path.join(BUILD, "bin", "tfhook")
LOADERS = ["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
           "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"]
EVAL_BATCHES = 4
FEWEST_LOOKS = 10
# arguments, whether the workers are enough
MORE = [
    ("workers --steps 120 --workers 1", False), ("workers --steps 120 --workers 2", False), ("collate --steps 120 --workers 1", False),
    ("sleep --steps 60", False), ("compute --steps 60 --workers 1", True), ("pause --steps 60 --workers 2", True),
]
SAME = [
    "plain --steps 20 --epochs 2", "plain --steps 20 --epochs 2 --workers 2", "plain --steps 20 --epochs 2 --workers 4 --persistent",
    "plain --steps 20 --workers 2 --start spawn", "stream --steps 20 --workers 2", "stream --steps 20", "plain --steps 20 --pin",
    "plain --steps 20 --amp", "plain --steps 20 --accumulate 3 --epochs 2 --evaluate", "item --steps 20", "log --steps 20",
    "save --steps 20", "plain --steps 20 --profile",
]


def pythons():
    if os.environ.get("TFH_TORCH"):
        return os.environ["TFH_TORCH"].split(":")
    made = os.path.join(os.environ.get("TFH_VENVS") or os.path.join(SRC, "build", "venv"), "torch", "bin", "python")
    if not FULL and not os.path.exists(made):
        print("no environment `torch`: make check-frameworks makes it")
        sys.exit(SKIP)
    done = subprocess.run([os.path.join(SRC, "scripts", "python-env"), "torch"], stdout=subprocess.PIPE, universal_newlines=True)
    check(done.returncode == 0, "no environment")
    return [done.stdout.strip()]


def value(arguments, name, default):
    found = re.search(r"--%s (\d+)" % name, arguments)
    return int(found.group(1)) if found else default


def same(python, arguments):
    """The job with and without: what it prints, and what is recorded of it."""
    command = [python, JOB] + arguments.split()
    plain, done = Outcome(command, preload=False), Outcome(command)
    check(plain.status == 0, "%s fails by itself: %s" % (arguments, plain.err[-2000:]))
    a, b = plain.result(), done.result()
    for told in (a, b):
        told.pop("seconds"), told.pop("waited"), told.pop("step_ms")
    a.get("keys", {}).pop("[memory]", None), b.get("keys", {}).pop("[memory]", None)
    check(a == b, "%s: %s\n%s" % (arguments, a, b))
    # torch.profiler tells the time and its process.
    check(re.sub(r"\d", "", plain.err) == re.sub(r"\d", "", done.err), "%s: prints %s where it printed %s" % (arguments, done.err, plain.err))
    check(len(done.files) == 1, "%s: %d processes recorded" % (arguments, len(done.files)))
    epochs, tests = value(arguments, "epochs", 1), EVAL_BATCHES + 1 if "--evaluate" in arguments else 0
    gets = done.calls(*LOADERS)
    check(len(gets) == b["batches"] + epochs * (1 + tests), "%s: %d get-nexts, %s" % (arguments, len(gets), b))
    check(len(done.calls("Engine::execute")) == b["backward"], "%s: backward passes" % arguments)
    names = collections.Counter(done.name(r, NAME_STRING, r["w"][0]) for r in done.records if r["kind"] == RANGE)
    check(names["Optimizer.step#AdamW.step"] == b["steps"], "%s: %s" % (arguments, names))
    report = json.loads(subprocess.run([TOOL, "report", "--json", done.files[0]], stdout=subprocess.PIPE, check=True).stdout)
    check(report["steps"]["total"] == b["steps"], "%s: %s steps, %s" % (arguments, report["steps"]["total"], b["steps"]))
    return b


def judged(python, arguments):
    """What the job says of itself, and the report of it."""
    folder = os.path.join(TMP, re.sub(r"\W+", "_", arguments + python))
    if not os.path.exists(folder):
        done = subprocess.run([TOOL, "run", "-q", "-o", folder, "--", python, JOB] + arguments.split(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, stdin=subprocess.DEVNULL)
        check(done.returncode == 0, "%s: %s" % (arguments, done.stderr[-2000:]))
        with open(folder + ".told", "w") as f:
            f.write(done.stdout.splitlines()[-1])
    with open(folder + ".told") as f:
        told = json.load(f)
    return told, json.loads(subprocess.run([TOOL, "report", "--json", folder], stdout=subprocess.PIPE, check=True).stdout)


def verdict(python, arguments, cls, cause):
    """Class, cause and line are those of the defect."""
    told, report = judged(python, arguments)
    check("PyTorch" in {s["name"] for s in report["software"]}, "%s: software %s" % (arguments, report["software"]))
    got, place = report["verdict"], report["verdict"].get("place") or {}
    check((got["class"], got["cause"]) == (cls, cause), "%s: %s" % (arguments, got))
    check(os.path.basename(place.get("file") or "") == os.path.basename(JOB) and place["line"] == told["line"], "%s: %s" % (arguments, place))
    check(any("%s:%s" % (os.path.basename(JOB), told["line"]) in text for text in got["evidence"]), "%s: %s" % (arguments, got["evidence"]))
    check(report["steps"]["total"] == told["steps"], "%s: %s steps" % (arguments, report["steps"]["total"]))


def step_of(report):
    return sum(part["s_per_step"] for part in report["breakdown"])


def more(python, arguments, enough):
    """The report says how many workers would keep up where too few do, and nowhere else; so many are run, and what a step takes then is
    printed beside what was said."""
    shown = []
    for run in (arguments, None):
        run = run or "%s --workers %d" % (re.sub(r" --workers \d+", "", arguments), shown[0]["to"])
        report = judged(python, run)[1]
        shown.append(report["verdict"]["more_workers"])
        print("workers: %s: %.2f ms a step, %s" % (run, 1e3 * step_of(report), shown[-1]), flush=True)
        if not shown[0]:
            break
    seen = report["verdict"]["workers"] or {"samples": 0}
    if not shown[0] and not enough and seen["samples"] < FEWEST_LOOKS:
        print("workers: only %d samples at them on this busy machine" % seen["samples"])
        return
    check(bool(shown[0]) == (not enough), "%s: %s" % (arguments, shown[0]))
    if not enough:
        had = value(arguments, "workers", 0)
        check(shown[0]["from"] == had < shown[0]["to"], "%s: %s" % (arguments, shown[0]))
        check(not had or 0 < shown[0]["low_s"] < shown[0]["high_s"], "%s: %s" % (arguments, shown[0]))


def parts(python):
    """Each worker would yield a whole IterableDataset, unless the data set gives it a part: the advice says so, for such data sets only."""
    for job, splits in (("trickle", True), ("sleep", False)):
        advice = judged(python, "%s --steps 60" % job)[1]["advice"][0]["do"]
        check("num_workers=" in advice and ("get_worker_info" in advice) == splits, "%s: %s" % (job, advice))


def ddp(python):
    """Two processes that exchange gradients: both record, and both have the same weights as without."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    told = []
    for preload in ("", LIBRARY):
        env = dict(os.environ, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TFHOOK_DIR=os.path.join(TMP, "ddp"))
        env.pop("TFHOOK_RUN", None)
        os.makedirs(env["TFHOOK_DIR"], exist_ok=True)
        if preload:
            env["LD_PRELOAD"] = preload
        ranks = [subprocess.Popen([python, JOB, "plain", "--steps", "20", "--ddp"], env=dict(env, RANK=str(r)),
                                  stdout=subprocess.PIPE, universal_newlines=True) for r in range(2)]
        out = [r.communicate(timeout=300)[0] for r in ranks]
        check([r.returncode for r in ranks] == [0, 0], "DDP: %s" % out)
        told.append([json.loads(o.splitlines()[-1])["hash"] for o in out])
        port += 1
    check(told[0] == told[1], "DDP: weights %s" % told)


for python in pythons():
    if not FULL:
        same(python, "plain --steps 20 --accumulate 3 --epochs 2 --evaluate --workers 2")
        verdict(python, "sleep --steps 60 --epochs 2 --evaluate", "input-bound", "input.map")
        more(python, "workers --steps 160 --workers 1", False)
        parts(python)
        continue
    for arguments in SAME:
        told = same(python, arguments)
        print("same: torch %s %s" % (told["torch"], arguments), flush=True)
    ddp(python)
    for arguments, enough in MORE:
        more(python, arguments, enough)
