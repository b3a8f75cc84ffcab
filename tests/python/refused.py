#!/usr/bin/env python3
"""What must hold: where Python's stacks may not be read (several interpreters up to 3.11; a build without the GIL, which `doctor` names, too), the job ends as it would, the rest
of the report is there, and no line is named; a process that is not dumpable ends as it would, and keeps what it can say."""
import json
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
import interpreters  # noqa: E402
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
tfhook, job = f"{build}/bin/tfhook", f"{here}/jobs/refused.py"


def run(python, how):
    directory = f"{tmp}/{how}"
    done = subprocess.run([tfhook, "run", "-q", "-o", directory, "--", python, job, how], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "SIM_H2D_GBPS": "2"})
    check((done.returncode, done.stdout) == (0, "done\n"), how, done.returncode, done.stdout)
    told = subprocess.run([tfhook, "report", "--json", directory], stdout=subprocess.PIPE, text=True).stdout
    return json.loads(told) if told else None


version, python = interpreters.every()[0]
if tuple(int(n) for n in version.split(".")[:2]) <= (3, 11):
    told = run(python, "interpreters")
    check(told and told["transfers"], "no transfers")
    check(all(not t["python"] for t in told["transfers"]) and not told["verdict"]["place"], told["transfers"])
for version, python in interpreters.every(gil=False):
    told = run(python, "plain")
    print(version, "without the GIL:", [text for text in told["remarks"] if "GIL" in text])
    check(told["transfers"] and all(not t["python"] for t in told["transfers"]) and not told["verdict"]["place"], told["transfers"])
    check(any("no lines of Python" in text and "without the GIL" in text for text in told["remarks"]), told["remarks"])
    doctor = subprocess.run([tfhook, "doctor", python], capture_output=True, text=True).stdout
    check("lines of Python will not be seen" in doctor and "without the GIL" in doctor, doctor)
told = run(sys.executable, "hidden")
check(told and any("refused.py" in f["file"] for t in told["transfers"] for f in t["python"]), told and told["transfers"])
sys.exit(failed())
