#!/usr/bin/env python3
"""A process whose threads are having their Python stacks read ends as it would without: with daemon threads inside of calls
while the interpreter is taken apart, by os._exit, an exception, exec, and in a forked child. On the oldest and the newest
interpreter of this machine; with TFH_ENDINGS=n on every one, n times each."""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import interpreters  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
CODES = {"daemons": 0, "_exit": 3, "raise": 1, "fork": 0, "exec": 4}
failures = runs = 0
times, found = int(os.environ.get("TFH_ENDINGS", "0")), interpreters.every()
for version, path in found if times else dict.fromkeys([found[0], found[-1]]):
    for how, code in CODES.items():
        for _ in range(times or 1):
            runs += 1
            env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_STACKS": "copy", "TFHOOK_CUPTI": "off"}
            done = subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", f"{tmp}/{runs}", "--", path,
                                   f"{here}/jobs/endings.py", how], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=60)
            if done.returncode != code or ("Fatal" in done.stdout or "Segmentation" in done.stdout):
                failures += 1
                print("FAIL", version, path, how, done.returncode, done.stdout[-1500:])
print(runs, "endings,", failures, "wrong")
sys.exit(bool(failures))
