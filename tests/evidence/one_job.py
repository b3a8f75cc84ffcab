"""One job under `tfhook run`, and what `tfhook report` says of it. Not a test."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("TFH_BUILD", "build"))
TOOL = os.path.join(BUILD, "bin", "tfhook")
PYTHON = os.environ.get("TFH_PY") or sys.executable
NOTHING = 5  # the report's exit status where it finds no steps, which is an answer, too


class Failed(Exception):
    """A job or its report did not end as it should."""


def python_of(env):
    """The interpreter of an environment, None: it cannot be made here."""
    if env == "main":
        return PYTHON
    made = subprocess.run([os.path.join(HERE, "..", "..", "scripts", "python-env"), env], capture_output=True, text=True)
    return made.stdout.strip() if made.returncode == 0 else None


def table_of(script):
    """What `script --list` prints: the jobs in the order that they stand in."""
    return json.loads(subprocess.run([PYTHON, script, "--list"], capture_output=True, text=True, check=True).stdout)


def told(command, folder, env, timeout):
    """Runs a job; its last line of output, which is JSON."""
    try:
        done = subprocess.run(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed("does not end") from None
    if done.returncode:
        raise Failed("exit status %d: %s" % (done.returncode, done.stderr[-300:]))
    return json.loads(done.stdout.strip().splitlines()[-1])


def environment(folder, more=()):
    return dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"), TFH_TMP=folder, **dict(more))


def record(place, command, folder, env, timeout=120):
    """Runs a job under the recorder, which writes to `place`; what the job told of itself."""
    return told([TOOL, "run", "-q", "-o", place, "--", *command], folder, env, timeout)


def report(place, *options):
    """What `tfhook report` prints of a recording."""
    done = subprocess.run([TOOL, "report", *options, place], env=dict(os.environ, COLUMNS="80"), capture_output=True, text=True,
                          timeout=300)
    if done.returncode not in (0, NOTHING):
        raise Failed("report: exit status %d: %s" % (done.returncode, done.stderr[-300:]))
    return done.stdout


def lead(report):
    """File, line and function of the place that the verdict names, or nothing."""
    place = (report["verdict"].get("place") or {}) if report.get("verdict") else {}
    return place.get("file"), place.get("line"), place.get("function")
