#!/usr/bin/env python3
"""Calls that hurt carry where they were made: under `tfhook run` slow ones, others as TFHOOK_STACKS says; the report
names the program's own functions and lines, by libunwind or by what every C++ program has, and of a killed process, too. Pauses have a
place by the calls around them. None of that takes a descriptor of the job's. Without it no call has a backtrace, and a thread with hardly any stack is let be."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of, tool  # noqa: E402

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
program, tfhook = f"{build}/tests/hook/stacks", f"{build}/bin/tfhook"
if os.environ.get("TFH_SAN"):
    sys.exit(77)
SLOW = {"SIM_H2D_GBPS": "2"}


def run(name, *args, launcher=True, tfhook=tfhook, **env):
    directory = f"{tmp}/{name}"
    env = {**os.environ, **SLOW, "LD_LIBRARY_PATH": f"{build}/sim", **env}
    if launcher:
        command = [tfhook, "run", "-q", "-o", directory, "--", program, *args]
    else:
        command = [program, *args]
        env.update(LD_PRELOAD=f"{build}/lib/libtfhook.so", TFHOOK_RUN="", TFHOOK_DIR=directory)
        os.makedirs(directory)
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(done.returncode == 0 and done.stdout == alone, name, done)
    if not launcher:
        made = os.listdir(directory)
        check(len(made) == 1, name, made)
        directory += "/" + made[0]
    return directory


def killed():
    """The report of a process that was killed two seconds after its first copy."""
    directory = f"{tmp}/killed"
    process = subprocess.Popen([tfhook, "run", "-q", "-o", directory, "--", program, "1000000"],
                               env={**os.environ, **SLOW, "LD_LIBRARY_PATH": f"{build}/sim"})
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    begin = time.time()
    while time.time() < begin + 20 and not any(os.path.getsize(os.path.join(directory, f)) > 2000 for f in (
            os.listdir(directory) if os.path.isdir(directory) else []) if f.endswith(".tft")):
        time.sleep(0.1)
    time.sleep(2.5)
    with open(children) as f:
        os.kill(int(f.read().split()[0]), signal.SIGKILL)
    process.wait()
    return report(directory)


def result(directory):
    return report_of(directory)


def report(directory):
    return {t["fn"]: t["where"] for t in result(directory)["transfers"]}


def line_of(function):
    """The only call in it."""
    with open(f"{os.environ['TFH_SRC']}/tests/hook/stacks.c") as f:
        text = f.read().splitlines()
    at = next(i for i, line in enumerate(text) if line.startswith("NOINLINE") and f" {function}(" in line and not line.endswith(";"))
    return next(i + 1 for i, line in enumerate(text[at:], at) if "if (cu_" in line)


UPLOAD = f"stacks.c:{line_of('upload_batch')} upload_batch [stacks] < stacks.c:"
FETCH = f"stacks.c:{line_of('fetch_result')} fetch_result [stacks] < stacks.c:"

alone = subprocess.run([program], env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim"}, stdout=subprocess.PIPE, text=True).stdout
check(alone.startswith("done "), "alone", alone)
slow = report(run("slow"))
place = result(f"{tmp}/slow")["verdict"]["place"]  # the executable's own function in place of a line of Python
check(place and place["function"] == "upload_batch" and place["file"].endswith("/tests/hook/stacks.c") and
      place["line"] == line_of("upload_batch"), "place", place)
check(re.fullmatch(re.escape(UPLOAD) + r"\d+ train_step < stacks\.c:\d+ train", slow["cuMemcpyHtoD_v2"] or ""), slow)
for setting in ("copy", "launch"):
    every = report(run(setting, TFHOOK_STACKS=setting))
    check((every["cuMemcpyHtoD_v2"] or "").startswith(UPLOAD), setting, every)
    check((every["cuMemcpyDtoH_v2"] or "").startswith(FETCH), setting, every)
check((killed().get("cuMemcpyHtoD_v2") or "").startswith(UPLOAD), "killed")
for folder in ("bin", "lib"):
    os.makedirs(f"{tmp}/libgcc/{folder}")
shutil.copy(tfhook, f"{tmp}/libgcc/bin")
shutil.copy(f"{build}/tests/hook/libtfhook-libgcc.so", f"{tmp}/libgcc/lib/libtfhook.so")
other = report(run("other", "100", tfhook=f"{tmp}/libgcc/bin/tfhook", TFHOOK_STACKS="copy"))
check((other["cuMemcpyDtoH_v2"] or "").startswith(FETCH), "libgcc", other)
for name, env in (("off", {"TFHOOK_STACKS": "off"}), ("preloaded", {"launcher": False}),
                  ("mistyped", {"launcher": False, "TFHOOK_STACKS": "slow:1lightyear"}),  # as if it were not set
                  ("long", {"TFHOOK_STACKS": "slow:10s"})):
    none = report(run(name, **env))
    check(len(none) == 2 and not any(none.values()), name, none)
for name, mine, env in (("pauses", tfhook, {}), ("pauses-libgcc", f"{tmp}/libgcc/bin/tfhook", {}), ("pauses-off", tfhook, {"TFHOOK_STACKS": "off"})):
    directory = run(name, "50", "code", tfhook=mine, SIM_H2D_GBPS="0.5", **env)
    js = result(directory)
    places = {p["of"]: p for p in js["places"]}
    text = " ".join(tool("report", directory).split())
    if env:
        check(not places, name, places)
    elif js["verdict"]["cause"] == "host.code":  # not if a crowded machine hardly let the copies run
        # The copy behind the code is too short to be slow; only it is known that the pause ends in it, or with a mark there.
        check(places.get("pause", {"where": ""})["where"].startswith(FETCH), name, places, text)
        # That in front of it has a place if it was in time for one of those that short calls may take.
        around = f"lies between cuMemcpyHtoD_v2 at {UPLOAD.split(' [')[0]} and {FETCH}"
        check(f"line most of it {around}" in text or f"line most of it ends at {FETCH}" in text, name, text)
small = report(run("small", "12", "thread", TFHOOK_STACKS="copy", TFHOOK_CUPTI="off"))
check(len(small) == 2, small)
sys.exit(failed())
