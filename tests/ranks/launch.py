#!/usr/bin/env python3
"""A launcher: launch.py torchrun|slurm HOSTS RANKS_PER_HOST LIMIT_S STEPS [PLAN...] starts the ranks of job.py, each host in a namespace of its
own name. If a rank fails, it kills the others, as torchrun does, and ends with that rank's code; with a plan `again=`, it starts all of them
again, as often as that says, with a plan `shrink=` one host less each time. After LIMIT_S it kills all of them and ends with 9."""
import os
import shutil
import subprocess
import sys
import time

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "job.py")


def variables(kind, rank, ranks, local, per_host):
    if kind == "slurm":
        return {"SLURM_PROCID": rank, "SLURM_NTASKS": ranks, "SLURM_LOCALID": local, "SLURM_JOB_ID": 77, "SLURM_STEP_ID": 0}
    return {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": per_host, "GROUP_RANK": rank // per_host}


def start(kind, hosts, per_host, named, rendezvous, words):
    shutil.rmtree(rendezvous + "/id", ignore_errors=True)
    if os.path.exists(rendezvous + "/id"):
        os.remove(rendezvous + "/id")
    all_of = []
    for rank in range(hosts * per_host):
        more = {k: str(v) for k, v in variables(kind, rank, hosts * per_host, rank % per_host, per_host).items()}
        command = [sys.executable, JOB, rendezvous, *words]
        if named:
            command = ["unshare", "-u", "sh", "-c", 'hostname "$0" && exec "$@"', "node%d" % (rank // per_host), *command]
        all_of.append(subprocess.Popen(command, env={**os.environ, **more}))
    return all_of


def wait(all_of, until):
    """The first code other than 0; 0: all ended; None: the time is over."""
    while time.monotonic() < until:
        codes = [p.poll() for p in all_of]
        failed = [c for c in codes if c]
        if failed:
            return failed[0]
        if None not in codes:
            return 0
        time.sleep(0.05)
    return None


def main():
    kind, hosts, per_host, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    words, rendezvous = sys.argv[5:], os.path.abspath("rendezvous")
    shutil.rmtree(rendezvous, ignore_errors=True)
    os.mkdir(rendezvous)
    turns = 1 + sum(int(w.split(":")[2]) for w in words if w.startswith("again="))
    code, named = None, hosts > 1
    for _ in range(turns):
        all_of = start(kind, hosts, per_host, named, rendezvous, words)
        code = wait(all_of, time.monotonic() + limit)
        if code:
            time.sleep(1)
        for p in all_of:
            if p.poll() is None:
                p.kill()
            p.wait()
        if not code:
            break
        hosts -= any(w.startswith("shrink=") for w in words)
    sys.exit(9 if code is None else code if code >= 0 else 128 - code)


main()
