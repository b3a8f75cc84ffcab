#!/usr/bin/env bash
# What must hold: however a process lives (forks, many short threads, signal handlers, a hang) its trace holds exactly
# the calls it made, and a process that never copies, launches or steps leaves nothing behind.
set -u
life=$TFH_BUILD/tests/record/life tally=$TFH_BUILD/tests/record/tally
status=0
export TFHOOK_RUN=$TFH_TMP/run

# Under a sanitizer making a thread takes milliseconds; and TSan allows no thread in a child of a process with threads.
many=10000 forks=1
[[ ${TFH_SAN:-} =~ address|thread ]] && many=1000
[[ ${TFH_SAN:-} == thread ]] && forks=
# A forked child does not free its parent's writer, whose thread may have held the heap's lock.
export ASAN_OPTIONS=detect_leaks=0

live() { # NAME: runs it; $out is what it printed, $got one line per trace file
	rm -rf "$TFHOOK_RUN"
	out=$("$life" "$1" $many 2>&1)
	rc=$?
	got=$([[ -d $TFHOOK_RUN ]] && "$tally" -s "$TFHOOK_RUN")
}
fail() {
	echo "$*"
	echo "rc $rc, output: $out"
	echo "$got" | head -5
	status=1
}
sum() { grep -oE "\b$1=[0-9]+" <<<"$got" | awk -F= '{ n += $2 } END { print n + 0 }'; }
expect() { # NAME FILES CALLS
	live "$1"
	((rc == 0)) || fail "$1: exit code"
	[[ -z $out || $1 == signal ]] || fail "$1: output"
	(($(wc -l <<<"$got") == $2)) || fail "$1: $2 files expected"
	# A machine that keeps the flusher from its processor may cost records; they are counted then.
	(($(sum call) + $(sum lost) == $3)) || fail "$1: $3 calls expected"
	(($(grep -c clean=1 <<<"$got") == $2)) || fail "$1: clean ends expected"
	[[ -z $(find "$TFHOOK_RUN" -name '*.journal') ]] || fail "$1: journal left"
}

live cold
[[ $rc == 0 && ! -e $TFHOOK_RUN ]] || fail "calls before any launch left something"
expect warm 1 110
[[ $forks ]] && expect fork 4 74
[[ $forks ]] && expect inside 2 16 # the child does not record the call that it did not begin
expect vfork 1 20
expect threads 1 $many
expect late 1 8
expect execs 21 21

if [[ $forks ]]; then
	live storm
	((rc == 0 && $(wc -l <<<"$got") == 51)) || fail "storm: 51 files expected"
	(($(grep -c ' call=3 .*clean=1' <<<"$got") == 50)) || fail "storm: every second child made 3 calls"
fi
live exit
((rc == 0 && $(grep -c clean=1 <<<"$got") == 1)) || fail "exit beside recording threads"
if [[ $forks ]]; then
	live exit_first
	((rc == 0 && $(grep -c clean=0 <<<"$got") == 0)) || fail "exit_first: exit code, clean ends"
	[[ -z $(find "$TFHOOK_RUN" -name '*.journal*') ]] || fail "exit_first: journal left"
	((files = $(wc -l <<<"$got"), files > 0 && $(sum call) + $(sum lost) <= files)) || fail "exit_first: a call each"
fi
live signal
((rc == 0 && $(sum call) + $(sum lost) == out)) || fail "signal: calls and losses together must be $out"
live hang
((rc == 137)) || fail "hang: killed"
(($(sum call) == 3 && $(sum open) == 2)) || fail "hang: seen once by the flusher, once by the salvage"

live unhooked
((rc == 137 && $(sum notes) == 2)) || fail "unhooked: a note before the kill"

# A program that makes names up as it goes: kernels and streams find an id all the same, further texts are told apart without
# their numbers, and the report tells.
live texts
((rc == 0)) || fail "texts: a kernel and a stream without an id, or further texts that are not told apart"
(($(sum unnamed) == 140004 - 65536 + 140000 - 16384)) || fail "texts: what found no id is counted"
"$TFH_BUILD/bin/tfhook" report --json "$TFHOOK_RUN" | grep -qE '"unnamed": ?198084' || fail "texts: not in the report"

# Segments: first and newest stay, names and allocations are repeated, the rest is there as sketches.
TFHOOK_MAX_SIZE=4M live names
((rc == 0)) || fail "names"
(($(wc -l <<<"$got") >= 2 && $(sum digests) >= 1)) || fail "names: several segments expected"
(($(tail -1 <<<"$got" | grep -oE 'repeat=[0-9]+' | cut -d= -f2) >= 2000)) || fail "names: tables repeated"
(($(du -sb "$TFHOOK_RUN" | cut -f1) < 7000000)) || fail "names: over TFHOOK_MAX_SIZE"

# Windows and filters
TFHOOK_WINDOW=steps:100-200 live steps
(($(sum call) >= 600 && $(sum call) <= 900)) || fail "steps 100 to 200 of 400, six calls each"
TFHOOK_WINDOW=time:300ms+500ms live busy
(($(sum call) > 0 && $(sum call) < 5000)) || fail "half a second out of two"
TFHOOK_RANKS=1-3 RANK=0 WORLD_SIZE=4 live warm
[[ ! -e $TFHOOK_RUN ]] || fail "rank 0 is not recorded"
TFHOOK_RANKS=1-3 RANK=3 WORLD_SIZE=4 live warm
[[ $(grep -c rank=3 <<<"$got") == 1 && -e $(echo "$TFHOOK_RUN"/r3.*.0.tft) ]] || fail "rank 3 is recorded"
expect rank 1 20
[[ $(grep -c 'rank=2' <<<"$got") == 1 ]] || fail "a rank that was set before anything was written"
live rank_late
(($(sum call) == 30 && $(wc -l <<<"$got") == 2)) || fail "rank_late: a segment without and one with the rank"
[[ $(grep -c 'rank=2' <<<"$got") == 1 && $(head -1 <<<"$got") == *rank=-1* ]] || fail "a rank that was set later"
TFHOOK_SKIP='/life$' live warm
[[ ! -e $TFHOOK_RUN ]] || fail "skipped"
TFHOOK=0 live warm
[[ ! -e $TFHOOK_RUN ]] || fail "off"
exit $status
