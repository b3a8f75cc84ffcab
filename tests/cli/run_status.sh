#!/usr/bin/env bash
# The job's end is tfhook's end: its exit code, its signal, signals passed on to it; end.json and run.json tell it, and
# secrets on the command line do not get into them.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

expect 7 "$tfhook" run sh -c 'exit 7'
expect_signal 9 "$tfhook" run sh -c 'kill -9 $$'
expect_signal 11 "$tfhook" run sh -c 'kill -SEGV $$'
# Output and input are the job's own.
[[ $(echo in | "$tfhook" run -q sh -c 'cat; echo out') == $'in\nout' ]] || fail 'stdin or stdout was touched'

# Nobody reads our messages: the job runs all the same; and it gets SIGPIPE as it would have.
[[ $({ "$tfhook" run sh -c 'echo ran >alive; exit 7'; echo $? >.code; } 2>&1 | true; cat .code alive) == $'7\nran' ]] || fail 'SIGPIPE'
[[ $("$tfhook" run -q bash -c 'yes | head -1; echo "${PIPESTATUS[0]}"') == $'y\n141' ]] || fail 'SIGPIPE is ignored in the job'

# Started without descriptors 0 to 2, the job has none either, and no message gets into a file of the recording.
"$tfhook" run -o bare sh -c 'for fd in 0 1 2; do [ ! -e /proc/self/fd/$fd ] || exit 9; done; exit 7' <&- >&- 2>&-
[[ $? == 7 ]] || fail 'without descriptors'
LD_LIBRARY_PATH=$TFH_BUILD/sim "$tfhook" run -o closed "$job" --steps 30 --h2d 1000 --spin 10 <&- >&- 2>&-
[[ $? == 0 ]] || fail 'without descriptors'
expect 0 "$tfhook" verify closed
expect 0 "$tfhook" report closed
! grep -rlq '^tfhook: ' closed || fail 'a message is in the recording'
"$tfhook" report closed >&- 2>.err
[[ $? == 3 ]] || fail 'no place for the report'

# A signal for tfhook reaches the job, which may handle it.
"$tfhook" run -q bash -c 'trap "echo caught; exit 5" TERM; echo ready; while :; do sleep 0.05; done' >.out 2>.err &
pid=$!
for _ in $(seq 100); do grep -q ready .out && break; sleep 0.05; done
kill -TERM $pid
wait $pid
[[ $? == 5 ]] || fail 'the signal did not reach the job'
prints caught

expect 0 on_gpu "$tfhook" run -o rec env API_TOKEN=abc "$job" --steps 3 --h2d 1000 --spin 10
says_not 'abc'
grep -q '"API_TOKEN=<redacted>"' rec/run.json || fail "$(cat rec/run.json)"
! grep -rq 'API_TOKEN=abc' rec || fail 'a secret is in the recording'
grep -q '"how": "exit"' rec/end.json && grep -q '"code": 0' rec/end.json || fail "$(cat rec/end.json)"

# A command of more than readers take of run.json costs the command's end, and nothing else.
expect 0 on_gpu "$tfhook" run -q -o long sh -c 'exec "$0" --steps 3 --h2d 1000 --spin 10' "$job" $(printf "%01000d " $(seq 1200))
expect 0 "$tfhook" info long
prints "^host  *$(uname -n)"
prints '^start  *20'

# Killed in the middle: what was recorded is saved at once, and the report says how it ended.
LD_LIBRARY_PATH=$TFH_BUILD/sim "$tfhook" run -q -o killed "$job" --steps 100000 --h2d 1000 --spin 2000 >.out 2>.err &
pid=$!
for _ in $(seq 200); do "$tfhook" ctl killed flush >/dev/null 2>&1 && break; sleep 0.05; done
sleep 0.7
kill -KILL $(children $pid)
wait $pid
[[ $? == 137 ]] || fail 'does not die of the job'"'"'s signal'
ls killed/*.tft >/dev/null 2>&1 || fail "nothing was saved: $(ls killed)"
[[ -z $(ls killed/*.journal 2>/dev/null) ]] || fail 'the journal is still there'
grep -q '"signal": 9' killed/end.json || fail "$(cat killed/end.json)"
expect 0 "$tfhook" report killed
prints 'ENDED BY SIGNAL 9'
