#!/usr/bin/env python3
"""`tfhook digest --follow` keeps digests of runs while they record: they grow with the run, and the last one is of all of it. A folder
is followed until a signal, with the runs that begin later; what cannot be judged, and what began on another host, does not keep it from the
others. One process a folder; it leaves no part of a digest behind, and does nothing in the job.
timeout: 90
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
tool, loop = os.path.join(build, "bin", "tfhook"), os.path.join(build, "tests", "jobs", "client_loop")
os.chdir(tmp)
if os.environ.get("TFH_SAN") in ("address", "thread"):
    print("the recorder with that sanitizer cannot be preloaded into ordinary programs")
    sys.exit(77)


def record(out, steps):
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), TFHOOK_FLUSH="100")
    return subprocess.Popen([tool, "run", "-q", "-o", out, "--", loop, "--steps", str(steps), "--h2d", "1000", "--spin", "1000"], env=env,
                            stdout=subprocess.DEVNULL)


def steps_of(run):
    told = subprocess.run([tool, "info", run + "/digest.tft"], capture_output=True, text=True).stdout
    found = re.search(r"^steps +(\d+)$", told, re.M)
    return int(found[1]) if found else 0


def eventually(what, seconds=40):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.1)


def follow(path):
    return subprocess.Popen([tool, "digest", "--follow", "--interval", "0.2", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def one():
    """A run directory, until its job has ended."""
    job = record("alone", 6000)
    eventually(lambda: os.path.isdir("alone") and any(n.endswith(".tft") for n in os.listdir("alone")))
    follower = follow("alone")
    eventually(lambda: steps_of("alone") > 0)
    first = steps_of("alone")
    eventually(lambda: steps_of("alone") > first)
    assert job.poll() is None, "the job had ended: no digest was made while it ran"
    job.wait()
    out, err = follower.communicate(timeout=40)
    assert follower.returncode == 0 and not err, (follower.returncode, err)
    whole = subprocess.run([tool, "report", "--steps", "--json", "alone"], capture_output=True, check=True).stdout.splitlines()
    assert steps_of("alone") == len(whole), (steps_of("alone"), len(whole))
    assert "up to date" in subprocess.run([tool, "digest", "alone"], capture_output=True, text=True).stdout, out
    # Nothing is left to do.
    again = subprocess.run([tool, "digest", "--follow", "alone"], capture_output=True, text=True, timeout=40)
    assert again.returncode == 0 and "up to date" in again.stdout, again


def folder():
    os.mkdir("runs")
    shutil.copytree("alone", "runs/of-another-host")
    os.remove("runs/of-another-host/digest.tft")
    with open("runs/of-another-host/run.json") as f:
        text = f.read()
    with open("runs/of-another-host/run.json", "w") as f:
        f.write(re.sub(r'"host": "[^"]*"', '"host": "elsewhere"', text))
    os.mkdir("runs/broken")
    for name, what in (("run.json", "{}"), ("end.json", "{}"), ("p.h.1.0.tft", "nothing of the kind")):
        with open("runs/broken/" + name, "w") as f:
            f.write(what)
    os.mkdir("runs/others")
    follower = follow("runs")
    time.sleep(0.5)
    second = subprocess.run([tool, "digest", "--follow", "runs"], capture_output=True, text=True, timeout=20)
    assert second.returncode == 2 and "another" in second.stderr, second
    jobs = [record("runs/a", 500), record("runs/b", 500)]
    for job in jobs:
        job.wait()
    eventually(lambda: all(os.path.exists("runs/%s/digest.tft" % n) and "up to date" in subprocess.run(
        [tool, "digest", "runs/" + n], capture_output=True, text=True).stdout for n in "ab"))
    assert not os.path.exists("runs/of-another-host/digest.tft") and not os.path.exists("runs/broken/digest.tft")
    assert follower.poll() is None, follower.communicate()
    shutil.rmtree("runs/b")
    follower.send_signal(signal.SIGTERM)
    out, err = follower.communicate(timeout=20)
    assert follower.returncode == 0 and err.count("broken") == 1 and "Traceback" not in err, (follower.returncode, err)
    left = [n for d, _, names in os.walk(".") for n in names if n.startswith("digest.tft.")]
    assert not left, left


def messages():
    for args, code, word in ((("--follow", "nothing"), 3, "No such"), (("--follow", loop), 3, "ot a directory"), (("--follow", "a", "b"), 2, "one directory"),
                             (("--follow", "--interval", "x", "."), 2, "needs seconds"), (("--follow", "-o", "x", "."), 2, "no -o")):
        said = subprocess.run([tool, "digest", *args], capture_output=True, text=True, timeout=20)
        assert said.returncode == code and word in said.stderr, (args, said)


if __name__ == "__main__":
    messages()
    one()
    folder()
