#!/usr/bin/env python3
"""What must hold: an upgrade under a running job loses nothing. A job records with an earlier version, which is then replaced where
it is installed. The newer command shows, controls and reports the running job; after SIGKILL, what it salvages from the older
journal has every call of the driver's log. A program that the same job starts after the upgrade records with the newer library, into
the same run directory. Run by `make check-upgrade`, which builds the earlier versions from this repository's history."""
# timeout: 3600
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, src, tmp = (os.environ[k] for k in ("TFH_BUILD", "TFH_SRC", "TFH_TMP"))
COMMITS = ("12d4fc6", "a748db3", "603d844")  # those of tests/golden/README.md
PARTS = ("bin/tfhook", "lib/libtfhook.so", "lib/libtfhook-noexport.so")
hooked = set(re.findall(r"^CUDA_FN(?:_HOST|_LAUNCH)?\((\w+)", open(f"{src}/lib/base/cuda_api.def").read(), re.M))


def older(commit):
    """The build of a commit, made once."""
    at = f"{build}/older/{commit}"
    if not os.path.exists(f"{at}/ready"):
        shutil.rmtree(at, ignore_errors=True)
        os.makedirs(at)
        subprocess.run(f"git -C '{src}' archive {commit} | tar -x -C '{at}'", shell=True, check=True)
        subprocess.run(["make", "-s", "-C", at, *[f"build/{part}" for part in PARTS]], check=True, stdout=subprocess.DEVNULL,
                       env={k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "TFH"))})
        open(f"{at}/ready", "w").close()
    return f"{at}/build"


def install(from_build, at):
    """As package managers do: by new files, so that running programs keep theirs."""
    for part in PARTS:
        os.makedirs(os.path.dirname(f"{at}/{part}"), exist_ok=True)
        shutil.copy(f"{from_build}/{part}", f"{at}/{part}.new")
        os.replace(f"{at}/{part}.new", f"{at}/{part}")


def wait_for(what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    sys.exit("nothing recorded within %d s" % seconds)


def calls(path, pid=None):
    """Calls by function in a run directory's files, or in the driver's log."""
    n = {}
    if pid is None:
        rows = [json.loads(line) for line in open(path) if line.endswith("}\n")]
        rows = [row for row in rows if row["ev"] == "call"]
    else:
        files = sorted(glob.glob(f"{path}/*.{pid}.*.tft"))
        rows = map(json.loads, subprocess.run([f"{build}/tests/hook/show", *files], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines())
        rows = [row for row in rows if row["kind"] in (1, 9)]
    for row in rows:
        if row["fn"] in hooked:
            n[row["fn"]] = n.get(row["fn"], 0) + 1
    return n


def try_with(commit):
    at, place = f"{tmp}/{commit}/installed", f"{tmp}/{commit}"
    run, client = f"{place}/run", f"{build}/tests/jobs/client_loop"
    install(older(commit), at)
    os.mkfifo(f"{place}/go")
    job = f"""SIM_TRUTH={place}/first {client} --steps 1000000 --h2d 1000 --spin 500 & echo $! >{place}/pid
              read line <{place}/go; {client} --steps 300 --h2d 1000 --spin 500 & echo $! >{place}/second; wait"""
    env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim"}
    running = subprocess.Popen([f"{at}/bin/tfhook", "run", "-q", "-o", run, "--", "bash", "-c", job], env=env, stdout=subprocess.DEVNULL)
    wait_for(lambda: glob.glob(f"{run}/*.tft"))
    pid = int(open(f"{place}/pid").read())
    install(build, at)
    with open(f"{place}/go", "w") as f:
        f.write("go\n")

    def newer(*args):
        done = subprocess.run([f"{at}/bin/tfhook", *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(done.returncode == 0, commit, args, "ended with", done.returncode, done.stdout[-500:])
        return done.stdout

    wait_for(lambda: os.path.exists(f"{place}/second") and open(f"{place}/second").read())
    time.sleep(1.5)
    check(re.search(f"pid {pid}, recording", newer("top", "--once", str(pid))), commit, "top")
    check("1 process" in newer("ctl", str(pid), "flush"), commit, "flush")
    check("STILL RUNNING" in newer("report", "--all", run), commit, "report of the running job")
    # With `tfhook run`, which would salvage at the job's end.
    running.kill()
    running.wait()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"))
    newer("report", "--all", run)
    newer("repair", run)
    files = run + ".repaired"
    ours, logged = calls(files, pid), calls(f"{place}/first")
    # The call that was killed is in one of them or in neither.
    missing = {fn: (n, ours.get(fn, 0)) for fn, n in logged.items() if ours.get(fn, 0) < n - (fn == "cuCtxSynchronize")}
    check(sum(logged.values()) > 1000 and not missing, commit, "calls in the log and in the recording", missing, logged)
    second = calls(files, int(open(f"{place}/second").read()))
    check(second.get("cuLaunchKernel") == 300, commit, "the program started after the upgrade", second)
    print(f"{commit}: {sum(ours.values())} calls of the killed process, {sum(logged.values())} in the driver's log")


if subprocess.run(["git", "-C", src, "cat-file", "-e", COMMITS[0]], stderr=subprocess.DEVNULL).returncode:
    print("this repository's history is not here")
    sys.exit(77)
for commit in COMMITS:
    try_with(commit)
sys.exit(failed())
