#!/usr/bin/env bash
# Of ranks that did not all end well the report says which was silent first, how long before the others, and which
# ended by itself.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

# Rank 1 is killed early, rank 2 leaves by itself early, rank 0 goes on for seconds and is killed, too. The job runs for
# as long as it is let, whatever the machine does meanwhile.
cat >ranks.sh <<'EOF'
export WORLD_SIZE=3
RANK=0 timeout -s KILL 5 "$1" --steps 1000000 --h2d 1000 --spin 1000 &
RANK=1 timeout -s KILL 1.5 "$1" --steps 1000000 --h2d 1000 --spin 1000 &
RANK=2 "$1" --steps 30 --h2d 1000 --spin 1000 &
wait
exit 9
EOF
expect 9 env LD_LIBRARY_PATH="$TFH_BUILD/sim" "$tfhook" run -q -o rec bash ranks.sh "$job"
expect 0 "$tfhook" report --json rec
field() { awk -v rank="$1" -v key="\"$2\":" '/"ranks": \[/ { on = 1 }
	on && /"rank":/ { at = $2 + 0 }
	on && at == rank && $1 == key { gsub(",", "", $2); print $2; exit }' .out; }
[[ $(field 0 silent_s) == 0 ]] || fail "rank 0 was silent for $(field 0 silent_s)"
awk -v a="$(field 1 silent_s)" 'BEGIN { exit !(a > 2 && a < 60) }' || fail "rank 1 was silent for $(field 1 silent_s)"
[[ $(field 0 closed) == false && $(field 1 closed) == false && $(field 2 closed) == true ]] || fail 'who ended by itself'
expect 0 "$tfhook" report --all rec
prints 'rank 1 (stopped first|died of SIGKILL, [0-9.]+ s before the last rank stopped)'
