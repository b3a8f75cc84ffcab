#!/usr/bin/env python3
"""What must hold: of a call that does not return, the report of the running job and, after SIGKILL, that of the dead one name
the line of Python that made it and what its thread waits for, also where it is the thread's first call that lasts, in the
main thread and another one; of a program in C what the thread waits for."""
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
import interpreters  # noqa: E402
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
tfhook, job = f"{build}/bin/tfhook", f"{here}/jobs/hangs.py"
with open(job) as f:
    LINE = next(i for i, line in enumerate(f, 1) if line.rstrip().endswith("# hangs"))
WHERE = f"hangs.py:{LINE} wait_for_all"


def stuck(directory):
    """The call in flight, as the JSON has it; None: there is none yet."""
    told = subprocess.run([tfhook, "report", "--json", directory], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    calls = json.loads(told.stdout)["end"]["in_flight"] if told.stdout else []
    return next((c for c in calls if "Synchronize" in c["fn"]), None)


def hang(name, *command, **env):
    """A job that hangs is looked at alive, killed, looked at dead: the two calls in flight."""
    directory = f"{tmp}/{name}"
    env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", **env}
    run = subprocess.Popen([tfhook, "run", "-q", "-o", directory, "--", *command], env=env, stdout=subprocess.PIPE, text=True)
    pid, alive = int(run.stdout.readline()), None
    for _ in range(40):
        time.sleep(0.25)
        alive = stuck(directory)
        if alive and alive["open_s"] > 1.2:  # what was seen is in the file a second later
            break
    os.kill(pid, signal.SIGKILL)
    run.wait()
    dead = stuck(directory)
    text = subprocess.run([tfhook, "report", "--all", "--color", "never", directory], stdout=subprocess.PIPE, text=True).stdout
    print(name, [(c["where"], c["state"], round(c["open_s"], 1)) for c in (alive, dead) if c])
    check(alive and dead, name, "no call in flight", alive, dead)
    return [c for c in (alive, dead) if c], " ".join(text.split())


found = interpreters.every()
JOBS = [("main", found[0][1], job, "main"), ("thread", found[-1][1], job, "thread"),
        ("native", "sh", "-c", "echo $$; exec $0", f"{build}/tests/jobs/client_loop")]
with concurrent.futures.ThreadPoolExecutor(len(JOBS)) as at_once:
    seen = list(at_once.map(lambda j: hang(*j, **({"SIM_HANG_AFTER": "20"} if j[0] == "native" else {})), JOBS))
for calls, text in seen[:2]:
    for call in calls:
        check(call["where"] == WHERE and call["state"] == "waiting for a lock", call)
        check([f["function"] for f in call["python"]][:2] == ["wait_for_all", "step"], call["python"])
    check(f"at {WHERE}, waiting for a lock" in text, text[:600])
calls, text = seen[2]
for call in calls:
    check(call["where"] is None and call["state"] == "waiting for a lock", call)
check("its thread is waiting for a lock" in text, text[:600])
sys.exit(failed())
