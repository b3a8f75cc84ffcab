#!/usr/bin/env python3
"""Weeks at an accelerated pace. For SECONDS (60): jobs run one after another and a third of them is killed; one job runs for all of the time in little
room, and takes orders; jobs run on a disk that is full, and on a mount that hangs or goes (`bindfs`, a FUSE file system whose server is
stopped); a follower keeps digests, `tfhook collect` takes them up and `tfhook prune` drops segments, all of them and half of the jobs under a wall
clock that is set back and forth. No job fails that was not killed, nor waits for a lost mount; what is lost is counted; in the end the lake
has each run once, with the steps that its digest has, and what was not killed has all steps that it made; nothing stays in /dev/shm; memory
and descriptors of follower and long job have not grown."""
import glob
import json
import os
import random
import subprocess
import sys
import time

if os.environ.get("TFH_SAN") in ("address", "thread"):
    sys.exit(77)  # such a recorder cannot be preloaded into ordinary programs
# Mounts of its own, /dev/shm among them. Without the right to make them, the full disk and the lost mount are left out.
OWN = os.environ.get("TFH_SOAK_OWN")
if not OWN and not subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode:
    subprocess.run([os.environ["TFH_SRC"] + "/scripts/bootstrap", "lost-mounts"])
    os.environ["TFH_SOAK_OWN"] = "1"
    os.execvp("unshare", ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh", sys.executable, *sys.argv])
sys.path.insert(0, os.path.join(os.environ["TFH_SRC"], "tests/fleet"))
import fleet_env

fleet_env.continue_in("fleet")
from soak_env import ENV, STEPPED, TOOL, Clock, Full, Held, Long, Lost, check, ended, job, kill, over_and_over, report, tmp
import pyarrow.parquet as pq

SECONDS = float(os.environ.get("SECONDS", "60"))
runs, lake = tmp + "/runs", tmp + "/lake"
os.mkdir(runs)
clock, full, lost = Clock(), OWN and Full(), OWN and Lost()
until = time.monotonic() + SECONDS


def command(codes, *args):
    """Each time it ends with one of these codes."""
    def turn():
        done = subprocess.run([TOOL, *args], env=STEPPED, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        check(done.returncode in codes, args, "ended with", done.returncode, done.stderr[-500:])
    return turn


def one_job(number):
    """Its steps, and whether it was killed."""
    steps, killed = random.randint(200, 600), number % 3 == 0
    made = job(f"{runs}/{number}", "--steps", str(steps), env=STEPPED if number % 2 else ENV)
    if killed:
        time.sleep(0.5 + random.random())
        kill(made)
        made.communicate()
    else:
        check(ended(made, number) == steps, "job", number)
    return steps, killed


follower = subprocess.Popen([TOOL, "digest", "--follow", runs], env=STEPPED, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
held, long = Held(follower.pid), Long(SECONDS)
time.sleep(min(10, 0.3 * SECONDS))
beside = [over_and_over(until, turn, pause) for turn, pause in (
    (command((0, 3, 4, 5), "collect", "-o", lake, runs), 1), (command((0, 5), "prune", "--older", "5s", "--delete", runs), 1), (held.look, 1),
    (clock.turn, 7), (long.turn, 3))]
beside += [over_and_over(until, part.turn) for part in (full, lost) if part and part.possible]
jobs = {}
while time.monotonic() < until:
    jobs[len(jobs)] = one_job(len(jobs))
for one in beside:
    one.join()
clock.set(0)
said = [long.end()]
follower.terminate()
check(follower.wait() == 0, "the follower ended with", follower.returncode)
said.append(held.flat("the follower"))
if lost:
    lost.end()
# `tfhook run` removes the directory of a job that was killed before its first record; one that was killed just then may have an empty one.
reports = {number: report(f"{runs}/{number}") if os.path.isdir(f"{runs}/{number}") else None for number in jobs}
never = [number for number, (_, killed) in jobs.items() if killed and not reports[number]]
left = [number for number in jobs if glob.glob(f"{runs}/{number}/p.*.tft")]
for number in left:
    fleet_env.tfhook("digest", f"{runs}/{number}")
fleet_env.tfhook("collect", "-o", lake, runs)
newest = {}
for path in glob.glob(lake + "/runs/*/*.parquet"):
    for row in pq.read_table(path, partitioning=None).to_pylist():
        if row["run"] not in newest or (row["wall_s"], row["collected"]) > (newest[row["run"]]["wall_s"], newest[row["run"]]["collected"]):
            newest[row["run"]] = row
by_path = {os.path.basename(row["path"]): row["steps"] for row in newest.values()}
total = json.loads(fleet_env.tfhook("fleet", "--json", lake)[0])["total"][0]
# A run that was killed before its first step has nothing to report, but may have a digest, and so a row without steps.
without = [number for number in never if str(number) in by_path]
check(len(newest) == len(by_path) == len(jobs) - len(never) + len(without) == total["runs"], "runs", len(newest), len(by_path), len(jobs), len(never), len(without), total["runs"])
for number, (steps, killed) in jobs.items():
    of_report = reports[number]["steps"]["total"] if reports[number] else 0
    check((by_path.get(str(number)) or 0) == of_report and (killed or abs(of_report - steps) <= 2), "steps of", number, by_path.get(str(number)), of_report, steps, killed)
check(len(left) < len(jobs), "nothing was pruned")
if OWN:
    stay = os.listdir("/dev/shm")
    check(not [name for name in stay if "tfhook" in name], "in /dev/shm stay", stay)
said.insert(0, f"{len(jobs)} jobs in {SECONDS:.0f} s, {sum(killed for _, killed in jobs.values())} killed, {len(jobs) - len(left)} pruned; the clock set {clock.steps} times")
if full and full.possible:
    said.append(f"{full.jobs} jobs on a disk that was full for a while; {full.partly} recordings lack steps and say so ({full.dropped:,} records)")
if lost and lost.possible:
    said.append(f"{lost.jobs} jobs on a mount that hung, {lost.gone} times for good; {lost.partly} recordings lack steps and say so; {lost.none} made a few steps and have none; {lost.left} journals stayed in memory "
                f"and were repaired; a job took {lost.longest:.1f} s more at most, start-up included")
print(*said, sep="\n")
sys.exit(fleet_env.failed())
