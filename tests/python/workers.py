#!/usr/bin/env python3
"""What must hold: where a job waits for worker processes that make its batches, forked, started anew or by a fork server, the
report names the line of Python that they spend their time in, in about the shares that they count themselves; workers that
may not be read are no harm, and a note says so. A pool that each step makes anew is named with its line, and its processes, which
live for a fraction of a second, are found, and counted as those that live at once."""
import glob
import json
import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
import interpreters  # noqa: E402
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, tool  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
tfhook, job = f"{build}/bin/tfhook", f"{here}/jobs/workers.py"
SECONDS = sys.argv[1] if len(sys.argv) > 1 else "1.3"
OFF, ENOUGH = 0.25, 25  # of a share, wide: a busy machine's clock is no evidence; looks
with open(job) as f:
    LINE = next(i for i, line in enumerate(f, 1) if "perf_counter() < end: pass" in line)
    f.seek(0)
    MADE = next(i for i, line in enumerate(f, 1) if "multiprocessing.Pool(2)" in line)


def run(name, *command):
    directory = f"{tmp}/{name}"
    done = subprocess.run([*command[:-1], tfhook, "run", "-q", "-o", directory, "--", *command[-1]], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim"})
    check(done.returncode == 0, name, done.stdout)

    def report(*flags):
        return tool("report", *flags, directory)

    return done.stdout, json.loads(report("--json"))["verdict"], report("--folded"), report("--all", "--color", "never")


def right(name, out, verdict, folded, text):
    workers = verdict["workers"]
    print(name, verdict["cause"], workers)
    if not workers or workers["samples"] < ENOUGH:
        print("too few looks on this machine")
        return
    check(not verdict["cause"].startswith("input.") or re.search(r"2 worker processes, \d+ % (busy|waiting)", text), text[:800])
    spent, seen, place = json.loads(out.splitlines()[-1]), {}, workers["place"] or {"function": None, "line": None}
    # On a crowded machine who looks gets a processor while the workers sleep rather than while they run. Where the report itself says
    # that processors were short, shares show when there was one to look with.
    if verdict["cause"] == "host.cpu-contention":
        print("no processor to look with")
        check(workers["processes"] == 2 and place["function"] in spent, workers)
        return
    waited, total = spent.pop("waited"), sum(spent.values())
    wide = OFF + waited / total
    check(workers["processes"] == 2 and workers["busy"] > 0.75 - wide, workers)
    check((place["function"], place["line"]) == ("augment", LINE) or spent["augment"] - spent["decode"] < 2 * wide * total, place)
    for line in folded.splitlines():
        stack, us = line.rsplit(" ", 1)
        part = next((p.split("_(")[0] for p in stack.split(";") if p.split("_(")[0] in spent), None)
        if stack.startswith("(workers);") and part:
            seen[part] = seen.get(part, 0) + int(us)
    for part in spent:
        off = seen.get(part, 0) / sum(seen.values()) - spent[part] / total
        check(abs(off) < wide, name, part, off)


found = interpreters.every()
JOBS = [("fork", [found[0][1], job, "fork", SECONDS]), ("spawn", [found[-1][1], job, "spawn", SECONDS]),
        ("forkserver", [sys.executable, job, "forkserver", SECONDS]),
        ("hidden", "setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace", "--",
         [sys.executable, job, "fork", "0.7", "hidden"])]
if os.getuid() or subprocess.run([*JOBS[-1][1:-1], "true"], stderr=subprocess.DEVNULL).returncode:
    JOBS[-1] = ("hidden", JOBS[-1][-1])  # without the right to read all processes anyway
# The first look for children may miss all of them, and the next one comes a second later: on a busy machine a run may have few looks.
for attempt in range(3):
    told = run(f"anew{attempt}", [sys.executable, job, "fork", "3", "anew"])
    anew, workers = told[1]["new_pool"], told[1]["workers"]
    print("anew", told[1]["cause"], anew, workers)
    check(not workers or workers["processes"] <= 2, workers)
    if anew and workers and workers["samples"] >= ENOUGH:
        break
check(anew and anew["line"] == MADE and "a pool is made anew again and again" in told[3], anew, told[3][:800])
check(workers and workers["samples"] >= ENOUGH, workers)
for name, *command in JOBS:
    told = run(name, *command)
    if name != "hidden":
        right(name, *told)
        continue
    check(told[1]["workers"] is None, told[1]["workers"])
    notes = b"".join(subprocess.run(["zstd", "-dcq", f], stdout=subprocess.PIPE).stdout for f in glob.glob(f"{tmp}/hidden/*.tft"))
    check(b"looks.children=/proc/PID/" in notes, "no note")
sys.exit(failed())
