#!/usr/bin/env python3
"""Question 9: jobs of known truth on a real GPU. The class and the cause that the job's defect has, every step counted, and the
program says the same as without tfhook; what fixing the defect is predicted to gain beside what it gains in the twin, and what
recording costs the loop, are reported. TFH_GPU_JOBS names some of the jobs of jobs.py and strangers.py, TFH_GPU_LANES is how many are
prepared side by side (with TFH_GPU_ALONE=1 they only import side by side), and with TFH_GPU_QUICK each runs only once, with tfhook;
TFH_GPU_PLAIN=0 leaves out the run without tfhook alone.
timeout: 1800"""
import concurrent.futures
import json
import os
import subprocess
import sys

import gpu
from gpu import HERE, PY, build, check, failed, has, need_gpu, part, report, run

need_gpu("that jobs of known truth get the right class, cause and steps, and what their repair gains (question 9)")
if gpu.DRIVER:
    sys.exit(77)
sys.path.insert(0, HERE)
import jobs  # noqa: E402
import strangers  # noqa: E402

JOBS = {**jobs.JOBS, **strangers.JOBS}
LIMIT = int(os.environ.get("TFH_GPU_LIMIT", "60"))
PLAIN = os.environ.get("TFH_GPU_PLAIN") != "0"
QUICK = bool(os.environ.get("TFH_GPU_QUICK"))
KEEP = os.environ.get("TFH_GPU_KEEP")
ONLY = os.environ.get("TFH_GPU_JOBS", "").split()
TURN = f"{gpu.tmp}/turn"


def seconds(done):
    return json.loads(done[1].strip().splitlines()[-1])


def verdict(place):
    told = subprocess.run([f"{build}/bin/tfhook", "report", "--json", place], capture_output=True, text=True)
    check(told.returncode == 0, "report", place, told.stderr[-300:])
    return json.loads(told.stdout)


def needs(name):
    return strangers.NEEDS[name].split(",") if name in strangers.JOBS else ["jax" if name.startswith("jax") else "torch"]


def one(name):
    steps, cls, causes = JOBS[name]
    stranger = name in strangers.JOBS
    command = [PY, f"{HERE}/{'strangers' if stranger else 'jobs'}.py", name]
    settings = dict({"TFH_GPU_ALONE" if os.environ.get("TFH_GPU_ALONE") else "TFH_GPU_TURN": TURN}, timeout=LIMIT + 60 if stranger else 600)
    plain = twin = None
    if not QUICK:
        if PLAIN:
            plain, _, _ = run(name + "-plain", command, **settings)
            if not check(plain[0] == 0, name, "without tfhook", plain[2][-400:]):
                return
        if not stranger or name in strangers.TWINS:
            twin, _, _ = run(name + "-twin", command + ["--fixed"], **settings)
            check(twin[0] == 0, name, "twin", twin[2][-400:])
    # As a user would: the tool's own settings, device times where it takes them.
    got, runs, place = run(name, [f"{build}/bin/tfhook", "run", "--", *command], **settings)
    if not check(got[0] == 0 and len(runs) == 1, name, "with tfhook", got[0], got[2][-600:], runs):
        return
    if KEEP:
        subprocess.run(["cp", "-r", runs[0], f"{KEEP}/{name}"])
        with open(f"{KEEP}/{name}.said", "w") as out:
            out.write(got[2])
    told = verdict(runs[0])
    alone, with_us = plain and seconds(plain), seconds(got)
    mended = seconds(twin) if twin and twin[0] == 0 else None
    said = told["verdict"]
    # No class: two are defensible.
    right = (cls is None or said["class"] == cls) and (not causes or said["cause"] in causes)
    check(right, name, "is", cls, causes, "and was called", said["class"], said["cause"], said.get("confidence"))
    report(question=9, job=name, right=right, said=[said["class"], said["cause"], said.get("confidence")],
           truth=[cls, *causes], steps=[steps, told["steps"]["total"], told["steps"]["count"]],
           median_s=told["steps"]["median_s"],
           whatif=[(w["remove"], w["step_s"], w["floor_s"], w["no_bound"]) for w in told["whatif"][:4]],
           quality={k: told["quality"][k] for k in ("gpu_times", "dropped", "unhooked", "unattributed_share", "overhead_share")},
           loop_s=[alone and alone["seconds"], with_us["seconds"]], twin_s=mended and mended["seconds"],
           loss=[alone and alone["loss"], with_us["loss"]])


lanes = int(os.environ.get("TFH_GPU_LANES", "3"))
unknown = [n for n in ONLY if n not in JOBS]
check(not unknown, "no such jobs:", unknown)
names = [n for n in ONLY if n in JOBS] or list(JOBS)
with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
    modules = sorted({m for n in names for m in needs(n)})
    there = dict(zip(modules, pool.map(has, modules)))
    print("not there:", [m for m in modules if not there[m]], flush=True)
    list(pool.map(lambda name: part(name, one, name), [n for n in names if all(there[m] for m in needs(n))]))
sys.exit(failed())
