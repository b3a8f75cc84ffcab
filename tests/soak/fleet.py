#!/usr/bin/env python3
"""Jobs run and a third of them is killed, while a follower keeps their digests, `tfhook collect` takes them up and `tfhook prune` drops their
segments, all at once. No job fails that was not killed; in the end the lake has each run once, with the steps that its digest has, and what
was not killed has all steps that it made; the follower's memory and descriptors have not grown. SECONDS=60"""
import glob
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["TFH_SRC"], "tests/fleet"))
if os.environ.get("TFH_SAN") in ("address", "thread"):
    sys.exit(77)  # such a recorder cannot be preloaded into ordinary programs
import fleet_env
from fleet_env import build, check, continue_in, tfhook, tmp

continue_in("fleet")
import pyarrow.parquet as pq

SECONDS = float(os.environ.get("SECONDS", "60"))
TOOL, runs, lake = build + "/bin/tfhook", tmp + "/runs", tmp + "/lake"
env = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", TFHOOK_CUPTI_LIB=build + "/sim/libcupti.so.13")
os.mkdir(runs)
until = time.monotonic() + SECONDS


def again(codes, *args):
    """Runs a command over and over; each time it ends with one of these codes."""
    while time.monotonic() < until:
        done = subprocess.run([TOOL, *args], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        check(done.returncode in codes, args, "ended with", done.returncode, done.stderr[-500:])
        time.sleep(1)


def job(number):
    """Its steps, and whether it was killed."""
    steps, killed = random.randint(200, 600), number % 3 == 0
    made = subprocess.Popen([TOOL, "run", "-q", "-o", f"{runs}/{number}", "--", build + "/tests/jobs/client_loop", "--steps", str(steps), "--h2d",
                             "1000", "--spin", "2000"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if killed:
        time.sleep(0.5 + random.random())
        with open(f"/proc/{made.pid}/task/{made.pid}/children") as f:
            for pid in f.read().split():
                os.kill(int(pid), signal.SIGKILL)
    _, err = made.communicate()
    check(killed or made.returncode == 0, "job", number, "ended with", made.returncode, err[-300:])
    return steps, killed


def state(pid):
    with open(f"/proc/{pid}/status") as f:
        rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    return rss, len(os.listdir(f"/proc/{pid}/fd"))


follower = subprocess.Popen([TOOL, "digest", "--follow", runs], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
beside = [threading.Thread(target=again, args=args) for args in (
    ((0, 3, 4, 5), "collect", "-o", lake, runs), ((0, 5), "prune", "--older", "5s", "--delete", runs))]
for one in beside:
    one.start()
jobs, first = {}, None
while time.monotonic() < until:
    number = len(jobs)
    jobs[number] = job(number)
    if not first and time.monotonic() > until - 0.7 * SECONDS:
        first = state(follower.pid)
for one in beside:
    one.join()
last = state(follower.pid)
follower.terminate()
check(follower.wait() == 0, "the follower ended with", follower.returncode)
check(first and last[0] < first[0] + 16384 and last[1] <= first[1] + 2, "the follower grows (KiB, descriptors)", first, last)
left = [number for number in jobs if glob.glob(f"{runs}/{number}/p.*.tft")]
for number in left:
    tfhook("digest", f"{runs}/{number}")
tfhook("collect", "-o", lake, runs)
newest = {}
for path in glob.glob(lake + "/runs/*/*.parquet"):
    for row in pq.read_table(path, partitioning=None).to_pylist():
        if row["run"] not in newest or row["collected"] > newest[row["run"]]["collected"]:
            newest[row["run"]] = row
by_path = {os.path.basename(row["path"]): row["steps"] for row in newest.values()}
total = json.loads(tfhook("fleet", "--json", lake)[0])["total"][0]
check(len(newest) == len(jobs) == total["runs"] and len(by_path) == len(jobs), "runs", len(newest), len(jobs), total["runs"])
for number, (steps, killed) in jobs.items():
    said = json.loads(tfhook("report", "--json", f"{runs}/{number}")[0])["steps"]["total"]
    check(by_path.get(str(number)) == said and (killed or abs(said - steps) <= 2), "steps of", number, by_path.get(str(number)), said, steps, killed)
check(len(left) < len(jobs), "nothing was pruned")
print(f"{len(jobs)} jobs in {SECONDS:.0f} s, {sum(killed for _, killed in jobs.values())} killed, {len(jobs) - len(left)} pruned; follower {last[0]} KiB, {last[1]} descriptors")
sys.exit(fleet_env.bad)
