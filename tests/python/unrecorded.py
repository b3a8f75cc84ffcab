#!/usr/bin/env python3
"""What must hold: of a job that records nothing, `tfhook run` still says which lines of its program the main thread was at, in about
the shares that the job counts itself, also under a launcher that only waits; and what a framework that marks no steps lacks. With
-q, or where looks are switched off, it says nothing of that; what the job prints and its exit code are its own."""
import json
import os
import re
import subprocess
import sys

if os.environ.get("TFH_SAN"):
    sys.exit(77)
TOOL, TMP = os.path.join(os.environ["TFH_BUILD"], "bin", "tfhook"), os.environ["TFH_TMP"]
SECONDS = 1.5
OFF = 0.25  # of a share: wide, as a busy machine's clock is no evidence
JOB = """
import json, sys, time
from jax._src import core
def walk(n):
    return walk(n - 1) if n else sum(range(200))
def main():
    spent, end = {"works": 0, "core": 0}, time.perf_counter() + %s
    while time.perf_counter() < end:
        t = time.perf_counter()
        for _ in range(1000): walk(8)  # works
        spent["works"] += time.perf_counter() - t
        t = time.perf_counter()
        core.wait()  # core
        spent["core"] += time.perf_counter() - t
    print(json.dumps(spent))
main()
sys.exit(3)
""" % SECONDS
WALK = str(1 + JOB.splitlines().index("    return walk(n - 1) if n else sum(range(200))"))
os.makedirs(os.path.join(TMP, "site-packages", "jax", "_src"))
with open(os.path.join(TMP, "site-packages", "jax", "_src", "core.py"), "w") as f:
    f.write("import time\ndef wait():\n    time.sleep(0.005)\n")
with open(os.path.join(TMP, "job.py"), "w") as f:
    f.write(JOB)


def run(*flags, before=(), **env):
    done = subprocess.run([TOOL, "run", *flags, "-o", os.path.join(TMP, "out"), "--", *before, sys.executable, os.path.join(TMP, "job.py")],
                          env=dict(os.environ, PYTHONPATH=os.path.join(TMP, "site-packages"), **env), capture_output=True, text=True)
    assert done.returncode == 3, done
    assert not os.path.exists(os.path.join(TMP, "out")), "left behind"
    return json.loads(done.stdout), done.stderr


for before in (), ("sh", "-c", '"$@"; exit 3', "sh"):
    spent, err = run(before=before)
    print(spent, err)
    assert "JAX on the CPU does not show its steps" in err, err
    looks = re.search(r"samples of its main thread \((\d+)\): (.*)", err)
    assert looks, err
    assert err.index(looks.group()) < err.index("tfhook doctor"), "what was seen comes first"
    share = {line: int(percent) / 100 for percent, line in re.findall(r"(\d+) % at job.py:(\d+)", looks.group(2))}
    for line, text in enumerate(JOB.splitlines(), 1):
        part = text.rpartition("# ")[2]
        if part in spent and int(looks.group(1)) > 60:
            seen = share.get(str(line), 0) + (share.get(WALK, 0) if part == "works" else 0)
            assert abs(seen - spent[part] / SECONDS) < OFF, (part, seen, spent)
for flags, env in ((("-q",), {}), ((), {"TFHOOK_SAMPLES": "0"})):
    assert "from outside" not in run(*flags, **env)[1]
