#!/usr/bin/env python3
"""`tfhook digest --follow` keeps digests of runs while they record: they grow with the run, and the last one is of all of it. A folder
is followed until a signal, with the runs that begin later; what cannot be judged, and what began on another host, does not keep it from the
others. One process a folder; it leaves no part of a digest behind, and does nothing in the job.
timeout: 1800
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TFH_SRC"], "tests/jobs"))
from looped import BUILD, LOOP, TOOL, begin, eventually, loop  # noqa: E402


def steps_of(run):
    told = subprocess.run([TOOL, "info", run + "/digest.tft"], capture_output=True, text=True).stdout
    found = re.search(r"^steps +(\d+)$", told, re.M)
    return int(found[1]) if found else 0


def follow(path, **more):
    return subprocess.Popen([TOOL, "digest", "--follow", "--interval", "0.2", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=dict(os.environ, **more))


def one():
    """A run directory, until its job has ended, which it does once two digests have been made of it."""
    job = loop("alone", 10**9, "--until", os.path.abspath("enough"))
    eventually(lambda: os.path.isdir("alone") and any(n.endswith(".tft") for n in os.listdir("alone")))
    follower = follow("alone")
    eventually(lambda: steps_of("alone") > 0)
    first = steps_of("alone")
    eventually(lambda: steps_of("alone") > first)
    assert job.poll() is None, job.returncode
    open("enough", "w").close()
    job.wait()
    out, err = follower.communicate(timeout=100)
    assert follower.returncode == 0 and not err, (follower.returncode, err)
    whole = subprocess.run([TOOL, "report", "--steps", "--json", "alone"], capture_output=True, check=True).stdout.splitlines()
    assert steps_of("alone") == len(whole), (steps_of("alone"), len(whole))
    assert "up to date" in subprocess.run([TOOL, "digest", "alone"], capture_output=True, text=True).stdout, out
    # Nothing is left to do.
    again = subprocess.run([TOOL, "digest", "--follow", "alone"], capture_output=True, text=True, timeout=100)
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
    folder_of = os.stat("runs")
    name = "@tfhook.digest.%d.%x.%x" % (os.geteuid(), folder_of.st_dev, folder_of.st_ino)
    eventually(lambda: name in open("/proc/net/unix").read())
    second = subprocess.run([TOOL, "digest", "--follow", "runs"], capture_output=True, text=True, timeout=20)
    assert second.returncode == 2 and "another" in second.stderr, second
    jobs = [loop("runs/a", 500), loop("runs/b", 500)]
    for job in jobs:
        job.wait()
    eventually(lambda: all(os.path.exists("runs/%s/digest.tft" % n) and "up to date" in subprocess.run(
        [TOOL, "digest", "runs/" + n], capture_output=True, text=True).stdout for n in "ab"))
    assert not os.path.exists("runs/of-another-host/digest.tft") and not os.path.exists("runs/broken/digest.tft")
    assert follower.poll() is None, follower.communicate()
    shutil.rmtree("runs/b")
    follower.send_signal(signal.SIGTERM)
    out, err = follower.communicate(timeout=20)
    assert follower.returncode == 0 and err.count("broken") == 1 and "Traceback" not in err, (follower.returncode, err)
    left = [n for d, _, names in os.walk(".") for n in names if n.startswith("digest.tft.")]
    assert not left, left


def many():
    """A folder of 20,000 runs: a new one among them is found, and no run is compared with every other."""
    os.mkdir("many")
    for i in range(20000):
        os.mkdir("many/run%05d" % i)
        with open("many/run%05d/run.json" % i, "w") as f:
            f.write("{}")
        os.utime("many/run%05d/run.json" % i, (1, 1))
    shutil.copytree("alone", "many/that-one")
    os.remove("many/that-one/digest.tft")
    follower = follow("many", LD_PRELOAD=BUILD + "/tests/digest/libcompares.so", COMPARES=os.path.abspath("compares"))
    # It lets all others go first, so on a crowded machine only its processor time says something.
    while not os.path.exists("many/that-one/digest.tft"):
        with open("/proc/%d/stat" % follower.pid) as f:
            spent = f.read().rpartition(")")[2].split()
        assert follower.poll() is None and (int(spent[11]) + int(spent[12])) / os.sysconf("SC_CLK_TCK") < 60, spent
        time.sleep(0.5)
    follower.send_signal(signal.SIGTERM)
    out, err = follower.communicate(timeout=100)
    assert follower.returncode == 0 and not err and out.count("that-one") == 1, (follower.returncode, out, err)
    with open("compares") as f:
        compares = int(f.read())
    print("%d comparisons of texts for a run" % (compares / 20000))
    assert 20000 < compares < 1000 * 20000, compares


def messages():
    for args, code, word in ((("--follow", "nothing"), 3, "No such"), (("--follow", LOOP), 3, "ot a directory"), (("--follow", "a", "b"), 2, "one directory"),
                             (("--follow", "--interval", "x", "."), 2, "needs seconds"), (("--follow", "-o", "x", "."), 2, "no -o")):
        said = subprocess.run([TOOL, "digest", *args], capture_output=True, text=True, timeout=20)
        assert said.returncode == code and word in said.stderr, (args, said)


if __name__ == "__main__":
    begin()
    messages()
    one()
    folder()
    many()
