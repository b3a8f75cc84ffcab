#!/usr/bin/env python3
"""Question 12: a PyTorch job on a GPU that is watched, told to record device times of some steps, and killed: `tfhook top` names
what holds it back while it runs, `ctl gpu on --steps` gives device times of these steps, and after SIGKILL the report knows the
steps up to the end."""
import json
import os
import signal
import subprocess
import sys
import time

import gpu
from gpu import HERE, PY, build, check, failed, has, need_gpu, report

need_gpu("that a job on a GPU can be watched, commanded and killed (question 12)")
if gpu.DRIVER or not has("torch"):
    print("no torch here")
    sys.exit(77)
TFHOOK = f"{build}/bin/tfhook"


def tfhook(*words):
    done = subprocess.run([TFHOOK, *words], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, words[0], "ended with", done.returncode, done.stdout[-300:], done.stderr[-300:])
    return done.stdout


run = f"{gpu.tmp}/run"
job = subprocess.Popen([TFHOOK, "run", "-o", run, "--", PY, f"{HERE}/jobs.py", "python", "--steps", "100000"],
                       env={**os.environ, "TFHOOK_CUPTI": "off"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
end = time.time() + 60
while time.time() < end and not [f for f in (os.listdir(run) if os.path.isdir(run) else []) if f.endswith(".journal")]:
    time.sleep(0.2)
time.sleep(10)
top = tfhook("top", "--once", run)
check("HOST-BOUND" in top and "python" in top, "top", top)
said = tfhook("ctl", run, "gpu", "on", "--steps", "100")
time.sleep(4)
pids = [int(f.split(".")[-2]) for f in os.listdir(run) if f.endswith(".journal")]
for pid in pids:
    os.kill(pid, signal.SIGKILL)
errors = job.communicate(timeout=60)[1]
told = json.loads(tfhook("report", "--json", run))
check(told["steps"]["total"] > 300, "steps", told["steps"])
check(told["verdict"]["cause"] == "host.python", "verdict", told["verdict"])
report(question=12, top=top.splitlines()[:6], ctl=said.strip(), steps=told["steps"]["total"], gpu_times=told["quality"]["gpu_times"],
       verdict=[told["verdict"][k] for k in ("class", "cause", "confidence")], end=told["end"], said=errors.splitlines()[:4])
sys.exit(failed())
