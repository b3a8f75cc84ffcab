"""What tests share that look at jobs while they run: client_loop under `tfhook run`, waiting, packages. Not a test."""
import os
import signal
import subprocess
import sys
import time

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL, LOOP = BUILD + "/bin/tfhook", BUILD + "/tests/jobs/client_loop"


def begin():
    """In the test's own folder."""
    if os.environ.get("TFH_SAN") in ("address", "thread") or not os.path.exists(LOOP):
        print("needs client_loop, and a recorder that can be preloaded into ordinary programs")
        sys.exit(77)
    os.chdir(TMP)


def sim(**more):
    return dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", **more)


def start(out, *command, **more):
    return subprocess.Popen([TOOL, "run", "-q", "-o", out, "--", *map(str, command)], env=sim(**more), stdout=subprocess.DEVNULL)


def loop(out, steps, *args, **more):
    """Steps of some milliseconds, each with a copy and a kernel."""
    return start(out, LOOP, "--steps", steps, "--h2d", 1000, "--spin", 1000, *args, **more)


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(n) for n in f.read().split()]


def end(run):
    """Kills the job, also a stopped one, and waits for `tfhook run`."""
    for pid in children(run.pid):
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGKILL)
    run.wait()


def eventually(what, seconds=100):
    """What `what` returns once that is something."""
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.1)
    return found


def is_seen(run):
    return os.path.isdir(run) and subprocess.run([TOOL, "top", "--once", run], capture_output=True).returncode == 0


def with_packages(name, main):
    """Runs main with a python that has the packages of tests/requirements/NAME.txt; skips the test where none can be made."""
    python = subprocess.run([SRC + "/scripts/python-env", name], stdout=subprocess.PIPE, text=True).stdout.strip()
    if not python:
        print("the environment `%s` could not be made" % name)
        sys.exit(77)
    if os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(python))):
        os.execv(python, [python, *sys.argv])
    sys.exit(main())
