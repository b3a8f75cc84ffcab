#!/usr/bin/env bash
# What must hold: whatever the disk does, the job ends as without tfhook and no record that was published is lost as long as
# there is a place for it. Where there is none (a full file system or quota, what a run may write on a host), one line
# says so and what helps.
set -u
job=$TFH_BUILD/tests/record/hostile place=$TFH_TMP/own
. "$TFH_SRC/tests/record/lib.sh"
faults=$TFH_BUILD/tests/record/libfaults.so

failing() { # FAULT [ENV...]
	go plain LD_PRELOAD="$lib:$faults" FAULT="$1" "${@:2}"
	((rc == 7)) || fail "$*: as without tfhook"
	(($(sum mark) == 100)) || fail "$*: 100 steps"
}
silent() { failing "$@" && [[ -z $out ]] || fail "$*: nothing is said"; }
said() { # PATTERN FAULT [ENV...]: one line
	failing "${@:2}"
	[[ $(wc -l <<<"$out") == 1 && $out =~ $1 ]] || fail "${*:2}: one line that says $1"
}

# errno 5: EIO, 28: ENOSPC, 122: EDQUOT
for error in 5 28 122; do
	silent write:$error:0:0 # at once, and then no more
	said 'paused: .*; (free some space|set TFHOOK_DIR).*tries again' write:$error:0:1000000
	said 'paused: .*tries again' write:$error:1:1000000 # after HEAD
	silent populate:$error:0:1000000 # then the rings lie in memory
	silent populate:$error:1:1000000
	silent ftruncate:$error:0:1000000
done
failing close:5:0:1000000

# A user's quota: room below it stays, as on a file system.
silent none:0:0:0 FAULT_QUOTA=100000:1000
said "paused: too little would be left of this user's or group's disk quota; free some space" none:0:0:0 FAULT_QUOTA=100000:97999
said "disk quota" none:0:0:0 FAULT_QUOTA=1000:800 # of a small one a quarter stays

# What all processes of a run write on a host: beyond it nothing is written, of whichever of them it is.
other() { # MIB HOST [FILES]
	rm -rf "$TFH_TMP/given"
	mkdir "$TFH_TMP/given"
	fallocate -l "$1M" "$TFH_TMP/given/p.$2.1.0.tft" || exit 77
	(cd "$TFH_TMP/given" && seq -f "p.$2.%.0f.0.tft" 2 "${3:-1}" | xargs -r touch)
	out=$(env LD_PRELOAD="$lib" TFHOOK_RUN="$TFH_TMP/given" TFHOOK_RUN_SIZE=32M "$job" plain "$place" 2>&1)
	rc=$?
	find "$TFH_TMP/given" -name "*.tft" -empty -delete
	rm "$TFH_TMP/given/p.$2.1.0.tft"
	got=$("$tally" -s "$TFH_TMP/given")
	[[ $rc == 7 ]] && (($(sum mark) == 100)) || fail "$*: as without tfhook, 100 steps"
}
other 16 "$(hostname)"
[[ -z $out ]] || fail 'a run within its budget'
other 33 "$(hostname)"
[[ $out =~ 'size limit on this host; raise TFHOOK_RUN_SIZE' ]] || fail 'a run beyond its budget'
other 1 "$(hostname)" 16000 # of processes that have ended and write no more
[[ -z $out ]] || fail 'a run of many processes'
other 33 another
[[ -z $out ]] || fail 'a budget of another host'
exit $status
