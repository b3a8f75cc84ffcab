#!/usr/bin/env python3
"""One order for all hosts of a job, given on each of them: two hosts (namespaces of names, processes, networks and mounts, each with a /dev/shm and a boot id
of its own) share nothing but a folder, into which the preloaded ranks record under the job's name. `ctl DIR gpu on --at-step N` reaches the ranks of its host alone and says so; both ranks have device times
of exactly the steps N to N + 19; a host without a process of the job is told that it has none, while one given in
another container of the first host reaches that host's rank. No journal is left in the folder.
timeout: 300
"""
import json
import os
import subprocess
import sys

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TOOL, SHARED, FIRST = f"{BUILD}/bin/tfhook", f"{TMP}/shared", 1200
if os.environ.get("TFH_SAN"):
    sys.exit(77)
APART = ["unshare", "-u", "-n", "-p", "-f", "-m", "--mount-proc", "--kill-child", "sh", "-c"]
if subprocess.run([*APART, "mount -t tmpfs none /dev/shm"], stderr=subprocess.DEVNULL).returncode:
    print("no right to make namespaces: skipped")
    sys.exit(77)
ENV = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/sim", "TFHOOK_CUPTI_LIB": f"{BUILD}/sim/libcupti.so.13", "TFHOOK_CUPTI": "off", "TOOL": TOOL, "LIB": f"{BUILD}/lib/libtfhook.so",
       "LOOP": f"{BUILD}/tests/jobs/client_loop", "FIRST": str(FIRST), "TFHOOK_DIR": SHARED, "TFHOOK_JOB": "77"}
# Steps are 5 ms at least, so the order is given seconds ahead. It is given once the rank has counted steps.
HOST = """
hostname node$RANK && mount -t tmpfs none /dev/shm && mount --bind $BOOT /proc/sys/kernel/random/boot_id || exit 9
if [ $RANK = 2 ]; then "$TOOL" ctl "$TFHOOK_DIR"/* gpu on --at-step $FIRST --steps 20; exit; fi
LD_PRELOAD=$LIB "$LOOP" --steps 1500 --sleep 5 --h2d 1000 --spin 200 --mark 1 &
for i in $(seq 100); do "$TOOL" ctl "$TFHOOK_DIR"/* flush >/dev/null 2>&1 && break; sleep 0.1; done
"$TOOL" ctl "$TFHOOK_DIR"/* gpu on --at-step $FIRST --steps 20
wait $!
"""


def host(rank, boot):
    with open(f"{TMP}/boot{boot}", "w") as f:
        f.write("00000000-0000-4000-8000-00000000000%d\n" % boot)
    return subprocess.Popen([*APART, HOST], env={**ENV, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "BOOT": f"{TMP}/boot{boot}"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)




def timed_steps(segments):
    """Their numbers, from 1."""
    lines = subprocess.check_output([TOOL, "export", "--to", "otlp", "-o", "-", *segments], text=True).splitlines()
    spans = [s for line in lines for of in json.loads(line)["resourceSpans"] for s in of["scopeSpans"][0]["spans"] if s["name"] == "step"]
    said = [{a["key"]: next(iter(a["value"].values())) for a in s["attributes"]} for s in spans]
    return sorted(int(a["tfhook.step"]) + 1 for a in said if a.get("tfhook.tier") == "A")


os.mkdir(SHARED)
hosts = [host(rank, rank) for rank in range(2)]
container, err = None, ""
while container is None or container.returncode in (2, 5) and hosts[0].poll() is None:  # until the rank records
    container = host(2, 0)
    err = container.communicate(timeout=60)[1]
assert container.returncode == 0 and "(rank 0)" in err and "(rank 1)" not in err, (container.returncode, err)
said = [h.communicate(timeout=250)[1] for h in hosts]
(RUN,) = (f"{SHARED}/{name}" for name in os.listdir(SHARED))
for rank, h in enumerate(hosts):
    assert h.returncode == 0, (rank, h.returncode, said[rank])
    assert f"(rank {rank}): device times from step {FIRST} to {FIRST + 19}" in said[rank] and f"rank {1 - rank}" not in said[rank], said[rank]
    assert "gpu on: 1 process\n" in said[rank], said[rank]
    segments = [f"{RUN}/{name}" for name in os.listdir(RUN) if name.startswith(f"r{rank}.node{rank}.") and name.endswith(".tft")]
    assert segments, os.listdir(RUN)
    timed = timed_steps(segments)
    assert timed == list(range(FIRST, FIRST + 20)), (rank, timed)
third = host(2, 2)
err = third.communicate(timeout=60)[1]
assert third.returncode == 5 and "recording on this host" in err, (third.returncode, err)
assert sorted(name for name in os.listdir(RUN) if name.endswith(".journal")) == [], os.listdir(RUN)
print("ok")
