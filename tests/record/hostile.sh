#!/usr/bin/env bash
# What must hold: where descriptors, system calls, memory or the environment are missing, under a storm of signals,
# threads or programs, with another allocator and under a debugger, a job fares as without tfhook and the recording is
# complete; or one line says why not, and what helps.
set -u
job=$TFH_BUILD/tests/record/hostile place=$TFH_TMP/own
. "$TFH_SRC/tests/record/lib.sh"

complete() { # HOW STEPS [ENV...]
	go "$1" "${@:3}"
	((rc == 7)) && [[ -z $out ]] || fail "$*: as without tfhook"
	(($(sum mark) + $(sum lost) == $2)) || fail "$*: $2 steps expected"
}
said() { # HOW PATTERN: one line
	go "$1"
	((rc == 77)) && return # the kernel does not let a test refuse
	((rc == 7)) || fail "$1: as without tfhook"
	[[ $(wc -l <<<"$out") == 1 && $out =~ $2 ]] || fail "$1: one line that says $2"
}

complete plain 100
complete nofds 100
complete closeall 100
complete before_5_14 100
complete no_table 100
complete churn 10000
complete spawns 100
complete noenv 100
complete uploads 100
go unseen
((rc == 77)) || { [[ $rc == 7 && -z $out ]] && (($(sum mark) == 100)); } || fail 'unseen: the job sees descriptors of ours'
go orphan # its journal is dead, and no other process' business
[[ $rc == 7 || $rc == 77 ]] || fail 'orphan: the journal of a dead process is locked'
go ticks
[[ $rc == 7 && -z $out ]] && (($(sum mark) >= 2900)) || fail "ticks"

go fewfds
# A busy machine gives the flusher the last descriptor before the job has it.
[[ $rc == 7 && -z $out ]] || said fewfds 'Too many open files; raise the limit of open files \(ulimit -n\)'
(($(sum mark) == 100)) || fail "fewfds: the journal has the steps"
said nothreads 'raise the limit of processes'
(($(sum mark) == 100)) || fail "nothreads: 100 steps"
said nothreads_full 'raise the limit of processes'
(($(sum mark) == 100)) || fail "nothreads and no room in files: the journal has the steps"
said nofiles 'cannot write to .*: Permission denied; set TFHOOK_DIR'
said nothing_else 'cannot write to .*: Operation not permitted; set TFHOOK_DIR'
go still
((rc == 7)) && (($(sum mark) == 100)) || fail "still: a clock that stands still holds no end up"
said memory 'no memory for the rings.*ulimit -v'
go nofallocate
((rc == 77)) || { [[ $rc == 7 && -z $out ]] && (($(sum mark) == 100)); } || fail "nofallocate"
go nommap
((rc == 77)) || [[ $rc == 7 && -z $out ]] || fail "nommap"
go rooted
if ((rc != 77)); then
	got=$("$tally" -s "$TFH_TMP/own$TFHOOK_RUN" 2>/dev/null) # within the new root
	[[ $rc == 7 && -z $out ]] && (($(sum mark) == 100)) || fail "rooted"
fi

# Names that are no text, and one as long as names get.
odd=$TFH_TMP/$'\xff\xfe odd'
go plain TFHOOK_RUN="$odd"
got=$("$tally" -s "$odd")
[[ $rc == 7 && -z $out ]] && (($(sum mark) == 100)) || fail "a name that is no UTF-8"
python3 -c 'import json, sys; json.load(open(sys.argv[1], encoding="utf-8"))' "$odd/run.json" || fail "run.json is no UTF-8"
go plain TFHOOK_RUN="/$(printf 'x%.0s' {1..4090})"
[[ $rc == 7 && $(wc -l <<<"$out") == 1 && $out =~ 'File name too long' ]] || fail "a name that is too long"

# Other preloads, before us and behind us.
for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2.0 libmimalloc.so.2 libmimalloc.so.3; do
	other=$(ldconfig -p | awk -v n="$name" '$1 == n { print $NF; exit }')
	[[ $other ]] || continue
	complete plain 100 LD_PRELOAD="$lib:$other"
	complete plain 100 LD_PRELOAD="$other:$lib"
done
# One whose functions cannot be called any more once its destructor has run, which is before ours.
for other in /usr/lib/*/faketime/libfaketime.so.1; do
	[[ -e $other ]] && complete plain 100 LD_PRELOAD="$other:$lib" FAKETIME=+1y
done
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	rm -rf "$TFHOOK_RUN"
	out=$(strace -f -o /dev/null -E LD_PRELOAD="$lib" "$job" plain "$TFH_TMP/own" 2>&1)
	rc=$?
	got=$("$tally" -s "$TFHOOK_RUN")
	[[ $rc == 7 && -z $out ]] && (($(sum mark) == 100)) || fail "traced by another process"
fi
exit $status
