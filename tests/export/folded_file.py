#!/usr/bin/env python3
"""`export --to folded` writes the lines of `report --folded`: of a job in Python a stack, a blank and a number in each, which add up to the same;
without a line of Python there is nothing to export (exit code 5), and parts of a run have none of their own (2)."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

run = runs.record()
said = runs.tfhook("export", "--to", "folded", "-o", runs.TMP + "/none", run, status=5).stderr.decode()
assert "no line of Python" in said and not os.path.exists(runs.TMP + "/none"), said
job = [sys.executable, runs.SRC + "/tests/jobs/client_cb.py", "--steps", "150", "--sleep", "8", "--spin", "300"]
env = dict(runs.ENV, TFHOOK_STACKS="on")
if not os.environ.get("TFH_PY"):
    print("SKIP: no python with the driver's bindings")
    sys.exit(77)
job[0] = os.environ["TFH_PY"]
done = subprocess.run([runs.BUILD + "/bin/tfhook", "run", "-q", "-o", runs.TMP + "/python", *job], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
assert done.returncode == 0, done.stdout[-500:]
want = runs.tfhook("report", "--folded", runs.TMP + "/python").stdout
with open(runs.export("folded", runs.TMP + "/python", runs.TMP + "/out.folded"), "rb") as f:
    got = f.read()
assert got == want and got.count(b"\n") >= 1, (got, want)
for line in got.decode().splitlines():
    stack, number = line.rsplit(" ", 1)
    assert int(number) > 0 and all(stack.split(";")), line
runs.tfhook("export", "--to", "folded", "-o", runs.TMP + "/part", "--steps", "20-29", runs.TMP + "/python", status=2)
print("ok")
