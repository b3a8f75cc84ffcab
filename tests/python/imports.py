#!/usr/bin/env python3
"""What a job does before its first recorded call is seen by `tfhook run` from outside: the report names the lines of Python, with
the module that one imports, in about the shares that the job counts itself; through a shell that starts it, too. A program
without Python has what it waited for; other users' processes may be hidden (hidepid); a process that may not be read has a note
that says so; nothing is left behind where nothing is recorded, and a damaged start.json is no harm."""
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
tfhook, job = f"{build}/bin/tfhook", f"{here}/jobs/imports.py"
SECONDS = 1
OFF, ENOUGH = 0.3, 20  # of a share, wide: a busy machine's clock is no evidence; looks
# The text names lines with as many looks and such a share (VERDICT_LINE_SAMPLES, REPORT_NAMED_SHARE of lib/judge/numbers.def).
NAMED, NAMED_SHARE = 5, 0.1
package = f"{tmp}/lib/python3/site-packages/heavy"
os.makedirs(package)
with open(f"{package}/__init__.py", "w") as f:
    f.write("from heavy import core\n")
lazily = f"{os.path.dirname(package)}/lazy"  # imports when it is first used, as PyTorch's optimizers do
os.makedirs(lazily)
with open(f"{lazily}/__init__.py", "w") as f:
    f.write("def begin():\n    from lazy import core\n")
for folder in package, lazily:
    with open(f"{folder}/core.py", "w") as f:
        f.write("import os, time\nend = time.monotonic() + 2 * float(os.environ['IMPORT_SECONDS'])\n"
                "while time.monotonic() < end:\n    sum(range(100))\n")


def line_of(text):
    with open(job) as f:
        return next(i for i, line in enumerate(f, 1) if text in line)


def run(name, *command, before=(), code=0):
    """What the job printed, the report as JSON and as one line of text."""
    directory = f"{tmp}/{name}"
    done = subprocess.run([*before, tfhook, "run", "-q", "-o", directory, "--", *command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim"}, timeout=100)
    check(done.returncode == code, name, done.returncode, done.stderr)

    def report(*flags):
        return subprocess.run([tfhook, "report", *flags, directory], stdout=subprocess.PIPE, text=True).stdout

    text = report("--color", "never", "-w", "--all")
    return done.stdout, json.loads(report("--json") or "{}"), " ".join(text.split())


def right(name, out, told, text):
    before = told["start"][0]
    spent, wall = json.loads(out.splitlines()[-1]), before["wall_s"]
    print(name, round(wall, 2), before["samples"], [(x["line"], round(x["share"], 2)) for x in before["lines"][:3]], spent)
    check(before["part"] == "before" and before["why"] is None, name, before)
    if before["samples"] < ENOUGH:
        print("too few looks on this machine")
        return
    for part, line, imports, words in (("heavy", line_of("import heavy"), f"{package}/__init__.py", "besides imports"),
                                       ("lazy", line_of("# imports then"), f"{lazily}/core.py", "besides imports"),
                                       ("vocabulary", line_of("# read"), None, "at imports.py:%d" % line_of("# read"))):
        seen = [x for x in before["lines"] if os.path.basename(x["file"]) == "imports.py" and x["line"] == line]
        check(seen and seen[0]["imports"] == imports, name, part, before["lines"])
        check(seen and abs(seen[0]["share"] - spent[part] / wall) < OFF, name, part, seen, spent[part] / wall)
        check(seen and (seen[0]["samples"] < NAMED or seen[0]["share"] < NAMED_SHARE or words in text), name, words, seen, text)


found = interpreters.every()
for version, python in dict.fromkeys([found[0], found[len(found) // 2], found[-1]]):
    right(version, *run(version, python, job, tmp, str(SECONDS)))
python = found[-1][1]
right("shell", *run("shell", "sh", "-c", "sleep 0.1; true | \"$@\" && true", "sh", python, job, tmp, str(SECONDS)))

out, told, text = run("native", f"{build}/tests/jobs/client_loop")
check(told["start"] and not told["start"][0]["lines"], "native", told["start"])

NO_TRACE = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace", "--"]
if os.getuid() or subprocess.run([*NO_TRACE, "true"], stderr=subprocess.DEVNULL).returncode:
    NO_TRACE = []  # without the right to read all processes anyway
HIDDEN = "import ctypes, runpy, sys; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
out, told, text = run("hidden", python, "-c", HIDDEN, job, tmp, "0.4", before=NO_TRACE)
check(told["start"][0]["why"] and "no lines of Python were seen: " in text, "hidden", told["start"], text[:900])
print("hidden:", told["start"][0]["why"])

UNSEEN = ["unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c", 'mount -o remount,hidepid=2 /proc && exec "$@"', "sh", *NO_TRACE]
if NO_TRACE and not subprocess.run([*UNSEEN, "true"], stderr=subprocess.DEVNULL).returncode:
    right("hidepid", *run("hidepid", python, job, tmp, str(SECONDS), before=UNSEEN))

run("nothing", python, "-c", "import time; time.sleep(0.3)")
check(not os.path.exists(f"{tmp}/nothing"), "nothing was recorded, and", os.listdir(tmp))

with open(f"{tmp}/shell/start.json") as f:
    whole = f.read()
for i, broken in enumerate(("", "{", "[]", whole[:len(whole) // 2], whole.replace("[1,", "[9999,"), whole.replace('"looks"', '"x"'), whole * 2)):
    with open(f"{tmp}/shell/start.json", "w") as f:
        f.write(broken)
    done = subprocess.run([tfhook, "report", f"{tmp}/shell"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(done.returncode == 0, "damaged", i, done.returncode, done.stderr)
sys.exit(failed())
