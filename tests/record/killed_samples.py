#!/usr/bin/env python3
"""What must hold: samples of the machine reach the file within six seconds or so, so that a job which is killed leaves what
shows why: how much memory there was, up to shortly before its end."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of  # noqa: E402

build, run = os.environ["TFH_BUILD"], os.environ["TFH_TMP"] + "/run"
JOB = [f"{build}/tests/jobs/client_loop", "--steps", "100000", "--launches", "3", "--spin", "2000", "--sync", "ctx"]


def machine():
    """Seconds of the run at which the line of the free memory begins and ends; None: there is none."""
    for line in report_of(run)["machine"]:
        if line["name"] == "memory.available":
            return line["start_s"], line["start_s"] + line["width_s"] * len(line["line"])
    return None


if os.environ.get("TFH_SAN") or not os.path.exists(f"{build}/sim/libcuda.so.1"):
    sys.exit(77)
env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_RUN": run, "LD_PRELOAD": f"{build}/lib/libtfhook.so"}
job = subprocess.Popen(JOB, env=env, stdout=subprocess.DEVNULL)
began = time.monotonic()
time.sleep(13)
job.send_signal(signal.SIGKILL)
job.wait()
lasted = time.monotonic() - began
seen = machine()
# On a busy machine the recorder's thread may have its turns late.
if check(seen, "no samples of the machine") and lasted < 15:
    check(seen[0] < 3 and lasted - 8 < seen[1] < lasted + 1, "samples from", *seen, "of", lasted)
sys.exit(failed())
