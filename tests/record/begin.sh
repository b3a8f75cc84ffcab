#!/usr/bin/env bash
# What must hold: the call that begins the recording waits at most a second for the thread that makes it (beside 150 ms for that thread's
# start), whether a file system does not answer, the thread gets no processor for seconds, or both. What is counted is the time for which waits
# were asked for that expired: on a busy machine, too, the sum is the same.
set -u
job=$TFH_BUILD/tests/record/begin place=$TFH_TMP
. "$TFH_SRC/tests/record/lib.sh"

for how in call signal; do
	for late in '' "$TFH_BUILD/tests/record/liblate.so "; do
		go $how LD_PRELOAD="$late$lib"
		[[ $rc == 0 && $out =~ ^[0-9]+$ ]] || fail "$how ${late:+late}: it did not run"
		((out >= 100 && out <= 1150)) || fail "$how ${late:+late}: waits of $out ms expired"
	done
done
exit $status
