#!/usr/bin/env bash
# tfhook ctl steers a running job: flush makes what was recorded visible at once, stop ends recording, start goes on;
# without a recording process it says so.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

mkdir empty
expect 5 "$tfhook" ctl empty flush
says 'no process of empty is recording on this host'
expect 2 "$tfhook" ctl nosuchthing flush
says 'neither a run directory nor a process id'
expect 2 "$tfhook" ctl empty flush --steps 3
expect 2 "$tfhook" ctl empty start --steps nought
says "a number of at least 1, not 'nought'"
expect 2 "$tfhook" ctl empty explode
expect 2 "$tfhook" ctl empty stop --at-step 3
expect 2 "$tfhook" ctl empty gpu off --at-step 3 --steps 3
expect 2 "$tfhook" ctl empty gpu on --at-step 0
says "--at-step needs a number of at least 1, not '0'"
expect 5 "$tfhook" ctl empty gpu on --at-step 3

LD_LIBRARY_PATH=$TFH_BUILD/sim "$tfhook" run -q -o rec "$job" --steps 100000 --h2d 1000 --spin 1000 >job.out 2>job.err &
run=$!
trap 'kill -KILL $(children $run); wait $run' EXIT
events() { "$tfhook" verify rec 2>/dev/null | sed -n 's/.* \([0-9]*\) events.*/\1/p'; }
for _ in $(seq 200); do
	"$tfhook" ctl rec flush >.out 2>.err && [[ $(events || true) -gt 0 ]] && break
	sleep 0.05
done
says 'flush: 1 process'
first=$(events)
[[ $first -gt 0 ]] || fail 'nothing was written by flush'

expect 0 "$tfhook" ctl rec stop
says 'stop: 1 process'
sleep 0.4
expect 0 "$tfhook" ctl rec flush
stopped=$(events)
sleep 0.3
expect 0 "$tfhook" ctl rec flush
[[ $(($(events) - stopped)) -lt 40 ]] || fail "still recording: $stopped, then $(events)"

pid=$(children $run | cut -d' ' -f1)
expect 0 "$tfhook" ctl "$pid" start
sleep 0.5
expect 0 "$tfhook" ctl "$pid" flush
[[ $(($(events) - stopped)) -gt 100 ]] || fail "not recording again: $stopped, then $(events)"
expect 0 "$tfhook" report --all rec
prints 'STILL RUNNING'

# As root: what a process has mapped is controlled if it is a journal of its own user's which names it, and nothing else.
[[ $(id -u) == 0 ]] || exit 0
journal=$(find rec /dev/shm -name '*.journal' -user 0 2>/dev/null | head -1)
cat >maps.py <<'PY'
import mmap, os, struct, sys, time
base, kept = bytearray(open(sys.argv[1], "rb").read(16384)), []
start = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
for name, uid, pid in (("roots", 0, 1), ("others", 12345, os.getpid()), ("another", 65534, 1), ("own", 65534, os.getpid())):
    struct.pack_into("<I", base, 40, pid)
    struct.pack_into("<QI", base, 48, start, 0)  # no locks: alive by its heartbeat
    struct.pack_into("<Q", base, 128, 0)
    struct.pack_into("<Q", base, 200, time.monotonic_ns())
    with open(name + ".journal", "w+b") as f:
        f.write(base)
        f.flush()
        os.fchown(f.fileno(), uid, uid)
        kept.append(mmap.mmap(f.fileno(), 4096))
os.setresuid(65534, 65534, 65534)
print("there", flush=True)
time.sleep(60)
PY
"$TFH_PY" maps.py "$journal" >there &
maps=$!
for _ in $(seq 200); do [[ -s there ]] && break; sleep 0.05; done
expect 0 "$tfhook" ctl $maps stop
says 'stop: 1 process$'
kill $maps
for name in roots others another own; do
	word=$(od -An -tu8 -j128 -N8 $name.journal | tr -d ' ')
	[[ $word == 0 && $name != own || $word != 0 && $name == own ]] || fail "$name.journal: $word"
done
