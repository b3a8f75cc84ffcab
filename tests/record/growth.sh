#!/usr/bin/env bash
# What must hold: where a thread's ring becomes larger, none of its calls waits for the new ring's 257 pages: the recorder's
# thread has made them. No record is lost.
set -u
job=$TFH_BUILD/tests/record/growth place=$TFH_TMP
. "$TFH_SRC/tests/record/lib.sh"

go -
((rc == 0 && out < 100)) || fail "a call touched $out pages"
(($(sum mark) == 2401 && $(sum dropped) == 0)) || fail "2401 steps expected"
exit $status
