#!/usr/bin/env python3
"""A job on the simulated GPU, recorded by the AArch64 build under qemu, gets the class and the cause that the x86-64 build's recording
of the same job gets; each build's command reads the other's recording, and says the same of it."""
# timeout: 900
import json
import os
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, host, tmp = (os.environ[k] for k in ("TFH_BUILD", "TFH_HOST", "TFH_TMP"))


def run(*command, **settings):
    done = subprocess.run(command, env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(done.returncode == 0, command, "ended with", done.returncode, done.stderr[-500:])
    return done.stdout


def judged(by, path):
    return json.loads(run(f"{by}/bin/tfhook", "report", "--json", path))


def verdict(by, name, options):
    """Class and cause, from a recording of the job by one build. It is made again while other programs take the CPUs."""
    for attempt in range(5):
        path = f"{tmp}/{name}-{os.path.basename(by)}-{attempt}"
        run(f"{by}/bin/tfhook", "run", "-q", "-o", path, "--", f"{by}/tests/jobs/client_loop", "--steps", "120", *options.split(),
            LD_LIBRARY_PATH=f"{by}/sim")
        ours, theirs = judged(build, path), judged(host, path)
        check(ours["verdict"] == theirs["verdict"] and ours["steps"] == theirs["steps"], name, "read by both", ours["verdict"], theirs["verdict"])
        check(ours["quality"]["dropped"] == 0 and ours["steps"]["total"] == 120, name, "steps", ours["steps"])
        if ours["verdict"]["cause"] != "host.cpu-contention":
            break
    return ours["verdict"]["class"], ours["verdict"]["cause"]


for name, options in (("compute", "--spin 20000"), ("host", "--spin 500 --sleep 10"), ("transfer", "--h2d 40000000 --spin 1000")):
    ours, theirs = verdict(build, name, options), verdict(host, name, options)
    # What a thread waits for outside the driver is read from /proc, where qemu's own system calls are.
    check(ours[0] == theirs[0] and (name == "host" or ours == theirs), name, "verdicts", ours, theirs)
    print(name, ours, theirs)
sys.exit(failed())
