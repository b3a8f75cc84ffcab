#!/usr/bin/env bash
# What must hold: a running recorder obeys its control word: stop, start, flush, and a stop after a number of steps.
set -u
bin=$TFH_BUILD/tests/record
export TFHOOK_RUN=$TFH_TMP/run
stop=1 flush=2
status=0
fail() {
	echo "$*"
	status=1
}
sum() { "$bin/tally" "$TFHOOK_RUN" | grep -oE "\b$1=[0-9]+" | awk -F= '{ n += $2 } END { print n + 0 }'; }
start() { # LIFE
	rm -rf "$TFHOOK_RUN"
	"$bin/life" "$1" &
	job=$!
	for _ in $(seq 100); do
		journal=$(ls "$TFHOOK_RUN"/*.journal /dev/shm/tfhook.*."$job".journal 2>/dev/null | head -1)
		[[ -n $journal && -e $(echo "$TFHOOK_RUN"/*.0.tft) ]] && return
		sleep 0.02
	done
	fail "no journal"
}

# 2,000 rounds of five calls in more than two seconds
start busy
"$bin/control" "$journal" $flush 0 0 || fail flush
sleep 0.3
now=$(sum call)
((now > 0)) || fail "after a flush the file holds what was recorded"
"$bin/control" "$journal" $((stop | flush)) 0 0 || fail stop
sleep 0.3
at_stop=$(sum call)
sleep 0.3
"$bin/control" "$journal" $flush 0 0 || fail flush
sleep 0.3
(($(sum call) <= at_stop + 1000)) || fail "stopped, and still recording: $at_stop, $(sum call)"
"$bin/control" "$journal" 0 $stop 0 || fail start
wait $job
((status || $(sum call) > at_stop)) || fail "started again"
(($(sum call) < 9000)) || fail "everything is there, although it was stopped"

# 400 steps of six calls: an end after 50 of them
start steps
"$bin/control" "$journal" 0 0 50 || fail steps
wait $job
calls=$(sum call)
((calls > 100 && calls < 1800)) || fail "50 steps of six calls and what came before: $calls"
exit $status
