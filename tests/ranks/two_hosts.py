#!/usr/bin/env python3
"""One command for all hosts of a job: two hosts (namespaces of names, processes, networks and mounts, each with a /dev/shm and a boot id
of its own) share nothing but a folder, into which the preloaded ranks record under the job's name. `ctl DIR gpu on --at-step N`, given
once, in another container of the first host, reaches the rank of that host itself, and the other one through the follower there; both
ranks have device times of exactly the steps N to N + 19, and the first host's follower does not give the command again. Before there
are followers, and after the job, the hosts that do not obey are named. No journal, request or answer is left in the folder.
timeout: 300
"""
import json
import os
import subprocess
import sys
import time

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TOOL, SHARED, FIRST = f"{BUILD}/bin/tfhook", f"{TMP}/shared", 4000
if os.environ.get("TFH_SAN"):
    sys.exit(77)
APART = ["unshare", "-u", "-n", "-p", "-f", "-m", "--mount-proc", "--kill-child", "sh", "-c"]
if subprocess.run([*APART, "mount -t tmpfs none /dev/shm"], stderr=subprocess.DEVNULL).returncode:
    print("no right to make namespaces: skipped")
    sys.exit(77)
ENV = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/sim", "TFHOOK_CUPTI_LIB": f"{BUILD}/sim/libcupti.so.13", "TFHOOK_CUPTI": "off", "TOOL": TOOL, "LIB": f"{BUILD}/lib/libtfhook.so",
       "container": "oci",  # so that a rank's journal is in the folder, not in the /dev/shm of its own
       "LOOP": f"{BUILD}/tests/jobs/client_loop", "TFHOOK_DIR": SHARED, "TFHOOK_JOB": "77", "FOLLOW": f"{TMP}/follow"}
# Steps are 5 ms at least, so the command is given seconds ahead.
HOST = """
hostname node$RANK && mount -t tmpfs none /dev/shm && mount --bind $BOOT /proc/sys/kernel/random/boot_id || exit 9
if [ $RANK = 2 ]; then exec "$TOOL" ctl "$TFHOOK_DIR"/* $COMMAND; fi
LD_PRELOAD=$LIB "$LOOP" --steps 4400 --sleep 5 --h2d 1000 --spin 200 --mark 1 &
job=$!
while [ ! -e "$FOLLOW" ] && kill -0 $job; do sleep 0.1; done
"$TOOL" digest --follow "$TFHOOK_DIR" >&2 &
follower=$!
wait $job
code=$?
kill $follower
wait $follower
exit $code
"""


def host(rank, boot, command=""):
    with open(f"{TMP}/boot{boot}", "w") as f:
        f.write("00000000-0000-4000-8000-00000000000%d\n" % boot)
    return subprocess.Popen([*APART, HOST], env={**ENV, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "BOOT": f"{TMP}/boot{boot}", "COMMAND": command}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ctl(command, boot=0):
    """In another container of the first host. Exit code, messages."""
    container = host(2, boot, command)
    err = container.communicate(timeout=100)[1]
    return container.returncode, err


def timed_steps(segments):
    """Their numbers, from 1."""
    lines = subprocess.check_output([TOOL, "export", "--to", "otlp", "-o", "-", *segments], text=True).splitlines()
    spans = [s for line in lines for of in json.loads(line)["resourceSpans"] for s in of["scopeSpans"][0]["spans"] if s["name"] == "step"]
    said = [{a["key"]: next(iter(a["value"].values())) for a in s["attributes"]} for s in spans]
    return sorted(int(a["tfhook.step"]) + 1 for a in said if a.get("tfhook.tier") == "A")


os.mkdir(SHARED)
hosts = [host(rank, rank) for rank in range(2)]
code, err = 0, ""
while "no follower answers on host node1: run `tfhook digest --follow` there" not in err or code != 1:  # until both ranks record
    assert hosts[0].poll() is None, (code, err, hosts[0].communicate())
    time.sleep(0.2)
    code, err = ctl("flush --wait 0.5")
assert "flush: 1 process\n" in err and "node0" not in err, err
open(ENV["FOLLOW"], "w").close()
code, err = ctl("flush --wait 60")
assert code == 0 and "host node1: flush: 1 process\n" in err, (code, err)
code, err = ctl(f"gpu on --at-step {FIRST} --steps 20 --wait 60")
assert code == 0 and f"(rank 0): device times from step {FIRST} to {FIRST + 19}\n" in err and "(rank 1)" not in err, (code, err)
assert f"host node1: gpu on: 1 process, from step {FIRST}\n" in err and "gpu on: 1 process\n" in err, err
said = [h.communicate(timeout=250)[1] for h in hosts]
(RUN,) = (f"{SHARED}/{name}" for name in os.listdir(SHARED))
for rank, h in enumerate(hosts):
    assert h.returncode == 0, (rank, h.returncode, said[rank])
    assert said[rank].count("(rank 1): device times from step") == rank and "(rank 0)" not in said[rank], said[rank]
    segments = [f"{RUN}/{name}" for name in os.listdir(RUN) if name.startswith(f"r{rank}.node{rank}.") and name.endswith(".tft")]
    assert segments, os.listdir(RUN)
    timed = timed_steps(segments)
    assert timed == list(range(FIRST, FIRST + 20)), (rank, timed)
code, err = ctl("flush --wait 1", boot=2)
assert code == 5 and "recording on this host" in err and all(f"no follower answers on host node{n}" in err for n in range(2)), (code, err)
code, err = ctl("flush --wait 0", boot=2)
assert code == 5 and "node" not in err, (code, err)
left = [name for name in os.listdir(RUN) if name.endswith(".journal") or name.startswith("ctl-")]
assert not left, left
print("ok")
