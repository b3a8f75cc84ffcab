#!/usr/bin/env python3
"""What must hold: where the main thread waits for batches that other threads of the job make, the report names what those do, by
line, and the cause is that of what they do, also behind a queue in C (queue.SimpleQueue); a start-up that lasts long and has deep stacks leaves enough looks to the steps."""
import os
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, tmp, here = os.environ["TFH_BUILD"], os.environ["TFH_TMP"], os.path.dirname(os.path.abspath(__file__))
tfhook, job = f"{build}/bin/tfhook", f"{here}/jobs/producers.py"
LINES = {mark: i for i, line in enumerate(open(job), 1) for mark in ("inflates", "reads", "prepares") if line.rstrip().endswith("# " + mark)}


def run(name):
    out = f"{tmp}/{name}"
    done = subprocess.run([tfhook, "run", "-q", "-o", out, "--", sys.executable, job, name], text=True, capture_output=True,
                          env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFH_TMP": tmp})
    check(done.returncode == 0, name, done.stderr)
    verdict = report_of(out)["verdict"]
    print(name, verdict["cause"], verdict["place"], verdict["workers"])
    return verdict


if sys.version_info >= (3, 11):
    for name, line, causes in (("inflates", "inflates", ("input.map", "host.gil")), ("reads", "reads", ("input.unknown", "host.gil")),
                               ("inflates-simple", "inflates", ("input.map", "host.gil")),
                               ("reads-simple", "reads", ("input.unknown", "host.gil"))):
        verdict = run(name)
        check(verdict["cause"] in causes, name, verdict["cause"])
        workers = verdict["workers"]
        if not workers or workers["samples"] < 20:
            print("too few looks on this machine")
            continue
        check(workers["threads"] >= 1 and not workers["processes"], workers)
        check(workers["place"] and workers["place"]["line"] == LINES[line], workers["place"])
        check("other thread" in " ".join(verdict["evidence"]), verdict["evidence"])
verdict = run("prepares")
check(verdict["place"] and verdict["place"]["line"] == LINES["prepares"] and verdict["place"]["samples"] >= 10, verdict["place"])
sys.exit(failed())
