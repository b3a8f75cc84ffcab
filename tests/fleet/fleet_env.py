"""What the tests of this folder share: the command with the Python package of this tree, and an environment to run it in."""
import math
import os
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402, F401

build, tmp, src = os.environ["TFH_BUILD"], os.environ["TFH_TMP"], os.environ["TFH_SRC"]


def python_of(name):
    done = subprocess.run([src + "/scripts/python-env", name], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print("no environment: scripts/python-env " + name)
        sys.exit(77)
    return done.stdout.split()[-1]


def continue_in(name):
    """Starts this test again in an environment, where it is not in it."""
    python = python_of(name)
    if os.environ.get("TFH_FLEET_ENV") != name:
        os.execve(python, [python, *sys.argv], dict(os.environ, TFH_FLEET_ENV=name))
    sys.path.insert(0, src + "/lib/python")
    os.environ.update(PYTHONPATH=src + "/lib/python", PATH=os.path.dirname(python) + ":" + os.environ["PATH"])
    return python


def alike(a, b):
    """The same but for the order in which numbers were added up."""
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    return a == b


def tfhook(*args, status=0, **more):
    """Its two outputs."""
    env = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", TFHOOK_CUPTI_LIB=build + "/sim/libcupti.so.13", **more)
    r = subprocess.run([build + "/bin/tfhook", *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    check(r.returncode == status, args, "ended with", r.returncode, "not", status, r.stdout[-2000:], r.stderr[-2000:])
    return r.stdout, r.stderr
