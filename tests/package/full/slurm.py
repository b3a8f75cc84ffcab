#!/usr/bin/env python3
"""A real Slurm with one node (Debian's slurmctld, slurmd and munge): with what `tfhook env --format slurm` prints, `srun` starts four ranks
that record into one run directory with Slurm's numbers of ranks, and so do those of `tfhook run srun`. Those of `srun tfhook run` have a directory
each, and the report on all of these is one of four ranks. Exit codes and output are the job's own, also where a rank is killed. A program that
uses no GPU leaves nothing. What `tfhook collect` takes from Slurm (name, partition) is recorded. As root."""
# timeout: 300
import glob
import json
import os
import shlex
import socket
import subprocess
import sys
import time

src, tmp = os.environ["TFH_SRC"], os.environ["TFH_TMP"]
sys.path.append(src + "/tests/package")
from installed import build, check, failed, run

HOST = socket.gethostname().split(".")[0]
PORT = 20000 + os.getpid() % 20000
CONFIGURATION = f"""ClusterName=test
SlurmctldHost={HOST}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={tmp}/munge
SlurmctldPort={PORT}
SlurmdPort={PORT + 1}
StateSaveLocation={tmp}/state
SlurmdSpoolDir={tmp}/spool
SlurmctldPidFile={tmp}/slurmctld.pid
SlurmdPidFile={tmp}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/linear
NodeName={HOST} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=h100 Nodes={HOST} Default=YES MaxTime=10 State=UP
"""
ENV = {**os.environ, "LD_LIBRARY_PATH": build + "/sim", "TFHOOK_CUPTI_LIB": build + "/sim/libcupti.so.13", "SLURM_CONF": tmp + "/slurm.conf",
       "PATH": build + "/bin:" + os.environ["PATH"]}
JOB = [sys.executable, src + "/tests/ranks/job.py"]
RANKS = 4


def start(name, *command):
    """A daemon, in the foreground of its own."""
    with open(f"{tmp}/{name}.out", "w") as out:
        return subprocess.Popen([name, *command], env={**os.environ, "SLURM_CONF": ENV["SLURM_CONF"]}, stdout=out, stderr=subprocess.STDOUT)


def srun(name, *words, want=(0,), ranks=RANKS, before=()):
    """What a job said, in a folder of its own, which is empty."""
    folder = f"{tmp}/{name}"
    os.makedirs(folder + "/rendezvous")
    done = subprocess.run([*before, "srun", "-J", name, "-n", str(ranks), "--overcommit", "--kill-on-bad-exit", *words], env=ENV, cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)
    check(done.returncode in want, name, "ended with", done.returncode, done.stderr[-1000:])
    return done.stdout


def check_ranks(name, directories=1):
    found = glob.glob(f"{tmp}/{name}/tfhook-*")
    check(len(found) == directories, name, "run directories", found)
    said = json.loads(run(build + "/bin/tfhook", "report", "--json", *found).stdout)
    check(sorted(r["rank"] for r in said["ranks"]) == list(range(RANKS)) and said["world"]["ranks"] == RANKS, name, said["world"], said["ranks"])
    check(said["steps"]["total"] >= 55, name, "steps", said["steps"])


def recorded():
    given = shlex.split(run(build + "/bin/tfhook", "env", "--format", "slurm", env=ENV).stdout)
    srun("preloaded", *given, *JOB, "rendezvous", "60")
    check_ranks("preloaded")
    srun("started", "tfhook", "run", *JOB, "rendezvous", "60")
    check_ranks("started", RANKS)
    srun("around", *JOB, "rendezvous", "60", before=("tfhook", "run", "-q"))
    check_ranks("around")
    # The killed rank's status or that of those which Slurm ends with it, whichever it hears of first.
    srun("failing", *given, *JOB, "rendezvous", "60", "kill=1:30", want=(137, 143))
    check(glob.glob(tmp + "/failing/tfhook-*"), "a job that failed has a recording")
    said = srun("plain", *given, "sh", "-c", "echo $SLURM_PROCID; exit 3", want=(3,), ranks=1)
    check(said == "0\n" and not glob.glob(tmp + "/plain/tfhook-*"), "a program without a GPU", said, os.listdir(tmp + "/plain"))
    facts, = glob.glob(tmp + "/preloaded/tfhook-*/run.json")
    with open(facts) as f:
        recorded = json.load(f)["env"]
    check(recorded.get("SLURM_JOB_NAME") == "preloaded" and recorded.get("SLURM_JOB_PARTITION") == "h100", "variables", recorded)


if os.geteuid():
    sys.exit("the daemons want to be root: sudo make check-install")
run(src + "/scripts/bootstrap", "slurm")
for folder in ("state", "spool"):
    os.mkdir(f"{tmp}/{folder}")
with open(tmp + "/slurm.conf", "w") as f:
    f.write(CONFIGURATION)
with open(tmp + "/key", "wb") as f:
    os.fchmod(f.fileno(), 0o400)
    f.write(os.urandom(128))
daemons = [start("munged", "--foreground", "--force", *(f"--{what}={tmp}/{file}" for what, file in (
    ("key-file", "key"), ("socket", "munge"), ("pid-file", "munged.pid"), ("seed-file", "seed"), ("log-file", "munged.log"))))]
try:
    while not os.path.exists(tmp + "/munge") and daemons[0].poll() is None:
        time.sleep(0.05)
    daemons += [start("slurmctld", "-D"), start("slurmd", "-D")]
    until = time.monotonic() + 60
    while b"idle" not in subprocess.run(["sinfo"], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout:
        if time.monotonic() > until:
            sys.exit("FAILED: no idle node: " + "".join(open(f"{tmp}/{name}.out").read()[-500:] for name in ("munged", "slurmctld", "slurmd")))
        time.sleep(0.2)
    recorded()
finally:
    for daemon in reversed(daemons):
        daemon.terminate()
        daemon.wait()
sys.exit(failed())
