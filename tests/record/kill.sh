#!/usr/bin/env bash
# What must hold: after SIGKILL at any moment every record that was published is read back exactly once, and losses are
# counted exactly; with producers paced at half the rate that the flusher reached, nothing is lost at all.
#
# usage: kill.sh [THREADS EVENTS RUNS_PER_SERIES LONGEST_MS]; the default is a small version for `make check`.
set -u
threads=${1:-8} events=${2:-10000000} runs=${3:-5} longest=${4:-700}
each=$((events / threads)) status=0
bin=$TFH_BUILD/tests/record
export TFHOOK_RUN=$TFH_TMP/run

run() { # RATE MS: records, kills after MS (0: lets it end), reads back into $line
	rm -rf "$TFH_TMP/run" "$TFH_TMP/page"
	local killed=
	"$bin/synth" "$threads" "$each" "$1" "$TFH_TMP/page" >/dev/null &
	local job=$!
	if (($2)); then
		sleep "$(printf '%d.%03d' $(($2 / 1000)) $(($2 % 1000)))"
		kill -9 $job 2>/dev/null && killed=-k
	fi
	wait $job 2>/dev/null
	line=$("$bin/readback" $killed "$TFH_TMP/page" "$TFH_TMP/run" 2>&1) || {
		echo "rate $1, killed after $2 ms: $line"
		status=1
	}
}
value() { sed -n "s/.*$1 \([0-9]*\).*/\1/p" <<<"$line" | tail -1; }

# Flat out to an end of its own: what the flusher can do beside all producers.
before=$(date +%s%N)
run 0 "$longest"
rate=$(($(value read) * 1000000000 / ($(date +%s%N) - before) / 2))
total=0
for ((i = 0; i < runs; i++)); do
	run 0 $((RANDOM * longest / 32768 + 5))
	total=$((total + $(value read)))
done
echo "flat out: $runs kills, $total records read back, half the flusher's rate is $rate/s"
total=0 lost=0
for ((i = 0; i < runs; i++)); do
	run "$rate" $((RANDOM * longest / 32768 + 5))
	total=$((total + $(value read))) lost=$((lost + $(value lost)))
done
echo "paced: $runs kills, $total records read back, $lost lost"
# A shared machine may keep the flusher from its processor for long; then drops are right, as long as they are counted.
exit $status
