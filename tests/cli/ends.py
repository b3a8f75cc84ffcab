#!/usr/bin/env python3
"""What must hold: `tfhook run` knows how a process ended that it did not start itself (a rank of a launcher), also if the process ends right after
its first recorded calls; of processes that record nothing it keeps no end. Needs Linux 6.15."""
import json
import os
import subprocess
import sys

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
LOOP = BUILD + "/tests/jobs/client_loop"
if os.environ.get("TFH_SAN") or not os.path.exists(LOOP):
    print("needs client_loop, and a recorder that can be preloaded into ordinary programs")
    sys.exit(77)


def ends(name, *args):
    """Of a rank that its launcher starts, and that makes its first recorded call only after a while."""
    launcher = 'sh -c \'sleep 2; exec "$@"\' sh "$@" & sleep 1; echo $!; wait $!; sleep 0'
    done = subprocess.run([BUILD + "/bin/tfhook", "run", "-q", "-o", f"{TMP}/{name}", "sh", "-c", launcher, "sh", LOOP, *args],
                          env=dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim"), stdout=subprocess.PIPE, text=True, check=True)
    with open(f"{TMP}/{name}/end.json") as f:
        return int(done.stdout.split()[0]), [(pid, status) for pid, _, status in json.load(f)["processes"]]


pid, known = ends("long", "--steps", "1000000", "--seconds", "3")
if not known:
    print("this kernel does not report ends")
    sys.exit(77)
assert known == [(pid, 0)], (pid, known)
pid, known = ends("short", "--steps", "3", "--spin", "1")
assert known == [(pid, 0)], (pid, known)
