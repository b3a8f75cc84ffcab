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
expect 0 "$tfhook" report rec
prints 'STILL RUNNING'
