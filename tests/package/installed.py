"""A wheel that was just built, in an environment of its own: what the tests of this folder share."""
import glob
import json
import os
import re
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, src, tmp = (os.environ[name] for name in ("TFH_BUILD", "TFH_SRC", "TFH_TMP"))


def run(*command, want=0, **more):
    """The finished process; ends the test where its status is another than `want`."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=more.pop("cwd", tmp), **more)
    if want is not None and done.returncode != want:
        sys.exit("FAILED: status %d, not %d: %s\n%s%s" % (done.returncode, want, " ".join(command), done.stdout, done.stderr))
    return done


def wheel():
    """The wheel's path. -o: what is built stays as it is."""
    run("make", "-s", "-C", src, "O=" + build, "-o", "all", "wheel", "DIST=%s/dist" % tmp)
    found = glob.glob(tmp + "/dist/tfhook-*.whl")
    check(len(found) == 1, "one wheel", found)
    return found[0]


def files(folder):
    return sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if "__pycache__" not in root)


def environment(python=sys.executable):
    """A virtual environment's bin folder, with nothing but pip in it."""
    run(python, "-m", "venv", tmp + "/env")
    return tmp + "/env/bin"


def check_backtraces(report):
    """Of tests/hook/stacks, recorded with TFHOOK_STACKS=copy: the functions that copy."""
    where = {copy["fn"]: copy["where"] for copy in json.loads(report)["transfers"]}
    check(re.match(r"stacks\.c:\d+ upload_batch \[stacks\] < stacks\.c:\d+ train_step", where.get("cuMemcpyHtoD_v2") or ""), "backtraces", where)


def record(bin, out, job="queue_of_sleeper", steps=60):
    """A job on the simulated GPU that the wheel brings, and its report."""
    sim = os.path.join(os.path.dirname(bin), "lib/tfhook/sim")
    run(bin + "/tfhook", "run", "-q", "-o", out, "--", bin + "/python", f"{src}/tests/evidence/jobs.py", job, "--steps", str(steps),
        env=dict(os.environ, LD_LIBRARY_PATH=sim))
    return json.loads(run(bin + "/tfhook", "report", "--json", out).stdout)
