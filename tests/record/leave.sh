#!/usr/bin/env bash
# What must hold: a job leaves with the same status and output as without tfhook, whatever way it takes, and its trace is
# complete: clean where a process ends by itself, salvageable where it is killed.
set -u
job=$TFH_BUILD/tests/record/leave place=$TFH_TMP
. "$TFH_SRC/tests/record/lib.sh"

expect() { # HOW STATUS MARKS CLEAN_FILES
	go "$1"
	((rc == $2)) || fail "$1: status $2 expected"
	[[ -z $out ]] || fail "$1: output"
	(($(sum mark) == $3)) || fail "$1: $3 steps expected"
	(($(grep -c clean=1 <<<"$got") == $4)) || fail "$1: $4 clean files expected"
}

go nothing
[[ $rc == 7 && -z $out && ! -e $TFHOOK_RUN ]] || fail "a job without a step"
expect return 7 100 1
expect _exit 7 100 1
expect _Exit 7 100 1
expect quick_exit 7 100 1
expect exec 7 100 1
expect noexec 7 150 2 # closed before the exec, begun anew after it
expect spawn 7 150 1
expect vfork 7 150 1
expect fork 7 110 2
expect abort 134 100 0
expect caught 134 100 0
for how in main_first main_first_blocked; do
	go $how
	[[ $rc == 0 && $out == bye ]] || fail "$how: the process ends with its last thread, after its exit handlers"
	(($(sum mark) == 149 && $(grep -c clean=1 <<<"$got") == 1)) || fail "$how: 149 steps expected"
done
go busy
((rc == 7 && $(grep -c clean=1 <<<"$got") == 1)) || fail "exit while a thread records"
go daemon
[[ $rc == 7 && ! -s $TFH_TMP/own ]] || fail "a daemon's own file must stay empty"
(($(sum mark) == 200)) || fail "daemon: 200 steps expected"

# Nothing may be written: the job runs on, one line says why and what helps.
one_line() { # WHAT PATTERN
	((rc == 7 && $(wc -l <<<"$out") == 1)) || fail "$1: one line expected"
	grep -q "$2" <<<"$out" || fail "$1: the line should say $2"
}
go return TFHOOK_RUN=/proc/nowhere
one_line "unwritable" "cannot write to /proc/nowhere.*TFHOOK_DIR"
go return TFHOOK_RUN= TFHOOK_DIR=/dev/null/x
one_line "not a directory" "cannot write to /dev/null/x"
go return RANK=1 WORLD_SIZE=2 TFHOOK_RUN=/proc/nowhere
[[ $rc == 7 && -z $out ]] || fail "only rank 0 speaks"
if mkdir -p "$TFH_TMP/small" && mount -t tmpfs -o size=8m none "$TFH_TMP/small" 2>/dev/null; then
	go return TFHOOK_RUN="$TFH_TMP/small/run"
	one_line "small disk" "paused.*2 GiB"
	umount "$TFH_TMP/small"
fi
# A limit of file sizes below the journal's: memory serves in its place.
rm -rf "$TFH_TMP/run"
out=$( (
	ulimit -f 1024
	LD_PRELOAD=$lib TFHOOK_VERBOSE=1 "$job" limit
) 2>&1)
rc=$?
got=$("$tally" -s "$TFHOOK_RUN")
((rc == 7 && $(sum mark) == 200)) || fail "file size limit"

rm -rf "$TFH_TMP/run"
out=$( (
	ulimit -f 0
	LD_PRELOAD=$lib "$job" return
) 2>&1 | cat)
[[ $out == *"File too large"* ]] || fail "no file may have a byte: $out"
( ulimit -f 0 && LD_PRELOAD=$lib exec "$job" return ) 2>&-
(($? == 7)) || fail "no file may have a byte: status"

# A line of ours that does not fit takes nothing of the room that the job has left in its output.
head -c 1000 /dev/zero >"$TFH_TMP/out"
( ulimit -f 1 && TFHOOK_RUN=/proc/nowhere LD_PRELOAD=$lib exec "$job" return >>"$TFH_TMP/out" 2>&1 )
[[ $? == 7 && $(wc -c <"$TFH_TMP/out") == 1000 ]] || fail "an output that is nearly full: $(wc -c <"$TFH_TMP/out") bytes"

# The job's memory first: under a limit of address space or data nothing is taken from it, and one line says so.
for limit in v d; do
	out=$( (
		ulimit -$limit 61440
		LD_PRELOAD=$lib "$job" space . 40
	) 2>&1)
	rc=$?
	one_line "ulimit -$limit" "no memory for the rings under a limit of 60 MB; raise the limit of address space (ulimit -v"
done

go lowered
((rc == 7)) || fail "a limit of file sizes lowered by the job: status"
(($(sum mark) > 100)) || fail "a limit of file sizes lowered by the job: some steps"

# Under a plain preload all processes of a launch share one directory, and another launch has its own.
cd "$TFH_TMP" || exit 1
unset TFHOOK_RUN
TFHOOK_JOB=job LD_PRELOAD=$lib "$job" fork && fail "fork in a job"
LD_PRELOAD=$lib TFHOOK_JOB=job "$job" return
[[ $(ls tfhook-job/*.tft | wc -l) == 3 ]] || fail "three processes of one job in $(ls -d tfhook-*)"
setsid env LD_PRELOAD="$lib" "$job" return
setsid env LD_PRELOAD="$lib" "$job" return
[[ $(ls -d tfhook-[0-9]* | wc -l) == 2 ]] || fail "two launches, two directories: $(ls -d tfhook-*)"
mkdir tfhook-other && echo '{"launch": "somebody"}' >tfhook-other/run.json
LD_PRELOAD=$lib TFHOOK_JOB=other "$job" return
[[ -e tfhook-other.2/run.json && $(cat tfhook-other/run.json) == *somebody* ]] || fail "a foreign directory"
LD_PRELOAD=$lib TFHOOK_JOB=secret MY_TOKEN=hush TFHOOK_LOG=$TFH_TMP/log "$job" return --api-key=hush --token hush
grep -q hush tfhook-secret/run.json && fail "a secret in run.json"
grep -q 'recording to' "$TFH_TMP/log" || fail "log"

# A start that was killed left its temporary file; a later process of the same pid records nonetheless.
(
	mkdir tfhook-killed && : >"tfhook-killed/.run.json.$(uname -n).$BASHPID"
	exec env LD_PRELOAD="$lib" TFHOOK_JOB=killed "$job" return
)
[[ -s tfhook-killed/run.json ]] || fail "what a killed start left is in the way: $(ls -A tfhook-killed)"

# A log that is not a file is not waited for.
mkfifo "$TFH_TMP/fifo"
ln -s log "$TFH_TMP/link"
for log in fifo link; do
	go return TFHOOK_LOG="$TFH_TMP/$log" TFHOOK_RUN="$TFH_TMP/run"
	one_line "$log as a log" "TFHOOK_LOG is neither a file nor a terminal: .*/$log; name a file"
done
exit $status
