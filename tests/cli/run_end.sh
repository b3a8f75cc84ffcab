#!/usr/bin/env bash
# What must hold: whoever waits for a job does not wait for us. A verdict that takes long, or records of killed processes
# that nobody can save now, are left to `tfhook report`, with one line that says so; SIGTERM ends `tfhook run` meanwhile,
# too, as the job ended; and where nothing could be written, the job is not blamed.
set -u
. "$TFH_SRC/tests/cli/lib.sh"
full=$TFH_BUILD/tests/cli/libfull.so
short=("$job" --steps 30 --h2d 1000 --spin 10)
lines() { [[ $(grep -c '^tfhook: ' .err) == "$1" ]] || fail "$1 lines expected"; }

# The verdict never comes: its files cannot be opened.
expect 7 timeout -s KILL 60 env LD_LIBRARY_PATH="$TFH_BUILD/sim" LD_PRELOAD="$full" FULL_HANGS=1 \
	"$tfhook" run -o slow sh -c '"$@"; exit 7' sh "${short[@]}"
says 'the verdict takes too long to wait for: tfhook report slow'
lines 2
expect 0 "$tfhook" report slow
prints '30 steps'

# Somebody wants the end before that.
env LD_LIBRARY_PATH="$TFH_BUILD/sim" LD_PRELOAD="$full" FULL_HANGS=1 "$tfhook" run -o ended sh -c '"$@"; exit 7' sh "${short[@]}" >.out 2>.err &
pid=$!
for _ in $(seq 400); do [[ -e ended/end.json ]] && break; sleep 0.02; done
sleep 0.1
kill -TERM $pid
(sleep 60; kill -KILL $pid 2>/dev/null) & watch=$!
wait $pid
[[ $? == 7 ]] || fail 'SIGTERM: ends as the job did'
kill $watch
says 'stopped by a signal; the verdict: tfhook report ended|takes too long to wait'

# A process was killed, and another program holds the lock of those who save what it left.
cat >holds.py <<'END'
import fcntl, glob, os, signal, subprocess, sys, time
child = subprocess.Popen(sys.argv[2:])
files = []
while not files:
    time.sleep(0.02)
    files = glob.glob("/dev/shm/tfhook.*.%d.journal" % child.pid) + glob.glob(os.environ["TFHOOK_RUN"] + "/*.%d.journal" % child.pid)
time.sleep(0.3)
ready, told = os.pipe()
if os.fork():
    os.read(ready, 1)
    child.send_signal(signal.SIGKILL)
    child.wait()
    print(files[0], flush=True)
    os._exit(7)
f = open(files[0], "r+b")
fcntl.lockf(f, fcntl.LOCK_EX, 1, 1)
open("holder", "w").write(str(os.getpid()))
os.write(told, b".")
for fd in 0, 1, 2, ready, told:
    os.close(fd)
time.sleep(100)
END
# What others left there is no reason to wait.
littered=()
unshare -m true 2>/dev/null && littered=(unshare -m bash -c 'mount -t tmpfs -o size=300m none /dev/shm &&
	fallocate -l 250M /dev/shm/tfhook.other.1.journal && "$@"' bash)
expect 7 timeout -s KILL 60 "${littered[@]}" env LD_LIBRARY_PATH="$TFH_BUILD/sim" "$tfhook" run -o held python3 holds.py - "$job" --steps 100000 --h2d 1000 --spin 2000
kill "$(cat holder)"
journal=$(tail -1 .out)
says 'saving the records of killed processes takes too long to wait for: tfhook report held'
[[ -e $journal ]] || fail 'the journal is not there any more'
expect 0 "$tfhook" report held
prints 'steps'
rm -f "$journal"

# Nothing could be written: said, and not that the job did nothing.
if unshare -m true 2>/dev/null; then
	mkdir small
	on_full() { unshare -m bash -c 'mount -t tmpfs -o size=64k none small && mount -t tmpfs -o ro,size=4k none /dev/shm && "$@"' bash "$@"; }
	expect 0 on_full env LD_LIBRARY_PATH="$TFH_BUILD/sim" "$tfhook" run -o small/rec "${short[@]}"
	says 'nothing was recorded: the file system of .*small/rec is full'
	says_not 'no process of this job'
fi
