#!/usr/bin/env python3
"""`ctl` for all hosts over a file system that behaves like a network's: each of two hosts, and a third without ranks, sees the shared folder
through a mount of its own, which keeps what it knows of names, missing names and sizes for five seconds (bindfs, a FUSE file system). Given
once on the third host, commands reach the ranks of both others, and device times begin at the same step. Where a host's mount hangs, that
host is named and the other one obeys; where that of the command's own host hangs, the command ends with a line that says so.
timeout: 600
"""
import os
import signal
import subprocess
import sys
import time

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL, SHARED, KNOWN_S = f"{BUILD}/bin/tfhook", f"{TMP}/shared", 5
if os.environ.get("TFH_SAN"):
    sys.exit(77)
APART = ["unshare", "-u", "-n", "-p", "-f", "-m", "--mount-proc", "--kill-child", "sh", "-c"]
if subprocess.run([*APART, "mount -t tmpfs none /dev/shm"], stderr=subprocess.DEVNULL).returncode:
    print("no right to make namespaces: skipped")
    sys.exit(77)
if subprocess.run([SRC + "/scripts/bootstrap", "lost-mounts"]).returncode or not os.path.exists("/dev/fuse"):
    print("no bindfs: skipped")
    sys.exit(77)
ENV = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/sim", "TFHOOK_CUPTI_LIB": f"{BUILD}/sim/libcupti.so.13", "TFHOOK_CUPTI": "off", "TOOL": TOOL, "LIB": f"{BUILD}/lib/libtfhook.so",
       "LOOP": f"{BUILD}/tests/jobs/client_loop", "TFHOOK_DIR": SHARED, "TFHOOK_JOB": "78", "BEHIND": f"{TMP}/behind", "END": f"{TMP}/end",
       "KNOWN": f"attr_timeout={KNOWN_S},entry_timeout={KNOWN_S},negative_timeout={KNOWN_S}"}
HOST = """
hostname node$RANK && mount -t tmpfs none /dev/shm && mount --bind $BOOT /proc/sys/kernel/random/boot_id || exit 9
bindfs -f -o $KNOWN "$BEHIND" "$TFHOOK_DIR" >&2 &
server=$!
until mountpoint -q "$TFHOOK_DIR"; do kill -0 $server && sleep 0.1 || exit 9; done
if [ $RANK = 2 ]; then
  run=$(echo "$TFHOOK_DIR"/*)
  if [ "$HANGS" ]; then kill -STOP $server; fi
  "$TOOL" ctl "$run" $COMMAND
  code=$?
  kill -KILL $server
  exit $code
fi
LD_PRELOAD=$LIB "$LOOP" --steps 1000000 --seconds 300 --sleep 5 --h2d 1000 --spin 200 --mark 1 >&2 &
job=$!
"$TOOL" digest --follow "$TFHOOK_DIR" >&2 &
follower=$!
hung=
while [ ! -e "$END" ]; do
  if [ -e "$HANG" ] && [ ! "$hung" ]; then hung=1; kill -STOP $server; fi
  if [ ! -e "$HANG" ] && [ "$hung" ]; then hung=; kill -CONT $server; fi
  sleep 0.1
done
kill $job $follower
wait $job $follower
kill $server
"""


def host(rank, command="", hangs=""):
    with open(f"{TMP}/boot{rank}", "w") as f:
        f.write("00000000-0000-4000-8000-00000000000%d\n" % rank)
    return subprocess.Popen([*APART, HOST], env={**ENV, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "BOOT": f"{TMP}/boot{rank}", "COMMAND": command, "HANGS": hangs,
                                                 "HANG": f"{TMP}/hang{rank}"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ctl(command, hangs=""):
    """Exit code, messages, seconds."""
    begin = time.monotonic()
    one = host(2, command, hangs)
    err = one.communicate(timeout=150)[1]
    return one.returncode, err, time.monotonic() - begin


def eventually(command, *lines, code=0):
    """Gives a command until it ends so; what it said."""
    for _ in range(60):
        assert all(h.poll() is None for h in hosts), [h.communicate() for h in hosts if h.poll() is not None]
        said = ctl(command)
        if said[0] == code and all(line in said[1] for line in lines):
            return said
        time.sleep(0.5)
    raise AssertionError((command, said))


os.mkdir(SHARED)
os.mkdir(ENV["BEHIND"])
hosts = [host(rank) for rank in range(2)]
try:
    eventually("flush --wait 30", "host node0: flush: 1 process\n", "host node1: flush: 1 process\n")
    # What each mount knows is older than the command.
    code, err, _ = ctl("gpu on --at-step 3000 --steps 20 --wait 60")
    assert code == 0 and all(f"host node{n}: gpu on: 1 process, from step 3000\n" in err for n in range(2)), (code, err)
    open(f"{TMP}/hang1", "w").close()
    time.sleep(0.5)
    code, err, took = ctl("flush --wait 12")
    assert code == 1 and "host node0: flush: 1 process\n" in err and "no follower answers on host node1" in err and took < 60, (code, err, took)
    os.remove(f"{TMP}/hang1")
    eventually("flush --wait 30", "host node0: flush: 1 process\n", "host node1: flush: 1 process\n")
    code, err, took = ctl("flush --wait 1", hangs="1")
    assert code == 1 and "has not answered" in err and took < 90, (code, err, took)
finally:
    open(ENV["END"], "w").close()
    said = [h.communicate(timeout=100) for h in hosts]
(RUN,) = os.listdir(ENV["BEHIND"])
left = [name for name in os.listdir(f"{ENV['BEHIND']}/{RUN}") if name.endswith((".request", ".part"))]
assert not left, (left, said)
print("ok")
