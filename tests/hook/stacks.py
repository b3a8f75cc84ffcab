#!/usr/bin/env python3
"""Calls that hurt carry where they were made: under `tfhook run` slow ones, others as TFHOOK_STACKS says; the report
names the program's own functions. Without it no call has a backtrace, and a thread with hardly any stack is let be."""
import json
import os
import subprocess
import sys

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
program, tfhook = f"{build}/tests/hook/stacks", f"{build}/bin/tfhook"
if os.environ.get("TFH_SAN"):
    sys.exit(77)
SLOW = {"SIM_H2D_GBPS": "2"}
failures = 0


def check(condition, *what):
    global failures
    if not condition:
        failures += 1
        print("FAIL", *what)


def run(name, *args, launcher=True, **env):
    directory = f"{tmp}/{name}"
    env = {**os.environ, **SLOW, "LD_LIBRARY_PATH": f"{build}/sim", **env}
    if launcher:
        command = [tfhook, "run", "-q", "-o", directory, "--", program, *args]
    else:
        command = [program, *args]
        env.update(LD_PRELOAD=f"{build}/lib/libtfhook.so", TFHOOK_RUN="", TFHOOK_DIR=directory)
        os.makedirs(directory)
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(done.returncode == 0 and "done" in done.stdout, name, done)
    if not launcher:
        made = os.listdir(directory)
        check(len(made) == 1, name, made)
        directory += "/" + made[0]
    return directory


def report(directory):
    done = subprocess.run([tfhook, "report", "--json", directory], stdout=subprocess.PIPE, text=True)
    return {t["fn"]: t["where"] for t in json.loads(done.stdout)["transfers"]}


slow = report(run("slow"))
check(slow["cuMemcpyHtoD_v2"] == "upload_batch [stacks] < train_step < train", slow)
check(slow["cuMemcpyDtoH_v2"] is None, slow)
for setting in ("copy", "launch"):
    every = report(run(setting, TFHOOK_STACKS=setting))
    check((every["cuMemcpyHtoD_v2"] or "").startswith("upload_batch [stacks] <"), setting, every)
    check((every["cuMemcpyDtoH_v2"] or "").startswith("fetch_result [stacks] <"), setting, every)
for name, env in (("off", {"TFHOOK_STACKS": "off"}), ("preloaded", {"launcher": False}),
                  ("mistyped", {"TFHOOK_STACKS": "slow:1lightyear"}), ("long", {"TFHOOK_STACKS": "slow:10s"})):
    none = report(run(name, **env))
    check(len(none) == 2 and not any(none.values()), name, none)
small = report(run("small", "12", "thread", TFHOOK_STACKS="copy", TFHOOK_CUPTI="off"))
check(len(small) == 2, small)
sys.exit(1 if failures else 0)
