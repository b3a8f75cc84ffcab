#!/usr/bin/env python3
"""uv installs the wheel into an environment however it links files there, as a tool of its own, and for one command; a job under
the environment's Python is recorded and named right, and uninstalling leaves no file."""
# timeout: 900
import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.environ["TFH_SRC"], "tests/package"))
import installed
from installed import check, failed, files, record, run, src, tmp

done = subprocess.run([src + "/scripts/python-env", "package"], stdout=subprocess.PIPE, text=True)
if done.returncode:
    sys.exit(77)
uv = os.path.dirname(done.stdout.split()[-1]) + "/uv"
wheel = installed.wheel()
env = dict(os.environ, UV_OFFLINE="1", UV_NO_INDEX="1", UV_CACHE_DIR=tmp + "/cache", UV_TOOL_DIR=tmp + "/tools",
           UV_TOOL_BIN_DIR=tmp + "/bin", UV_PYTHON=os.path.realpath(sys.executable))
CLASSES = ("input-bound", "host-bound")  # the latter where other work lets no samples through

for mode in ("copy", "hardlink", "symlink"):
    place = f"{tmp}/{mode}"
    run(uv, "venv", place, env=env)
    empty = files(place)
    run(uv, "pip", "install", "--python", place + "/bin/python", "--link-mode", mode, wheel, env=env)
    verdict = record(place + "/bin", f"{tmp}/run-{mode}")["verdict"]
    check(verdict["class"] in CLASSES, mode, verdict)
    run(uv, "pip", "uninstall", "--python", place + "/bin/python", "tfhook", env=env)
    left = set(files(place)) - set(empty) - {place + "/.lock"}  # uv's own
    check(not left, mode, "left behind", left)

# As a tool it records programs of any environment.
run(uv, "tool", "install", wheel, env=env)
run(f"{tmp}/bin/tfhook", "run", "-q", "-o", f"{tmp}/run-tool", "--", f"{tmp}/copy/bin/python", f"{src}/tests/evidence/jobs.py", "queue_of_sleeper",
    "--steps", "60", env=dict(env, LD_LIBRARY_PATH=f"{tmp}/tools/tfhook/lib/tfhook/sim"))
verdict = json.loads(run(f"{tmp}/bin/tfhook", "report", "--json", f"{tmp}/run-tool").stdout)["verdict"]
check(verdict["class"] in CLASSES, "tool", verdict)
for command in (["run", "--no-project", "--with", wheel], ["tool", "run", "--from", wheel]):
    check(run(uv, *command, "tfhook", "version", env=env).stdout.startswith("tfhook "), command)
sys.exit(failed())
