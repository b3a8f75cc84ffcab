#!/usr/bin/env bash
# What must hold: the fuzzers' seeds, and every input that once did harm, are read to the end of every report
# within a second for each megabyte and within a bound of memory, without a crash. A seed that is a whole recording or trace is
# not refused: it would lead nowhere.
set -u
status=0
for program in "$TFH_BUILD"/tests/fuzz/replay_*; do
	[[ -x $program && $program != *.d ]] || continue
	name=${program##*/replay_}
	for kind in seeds found; do
		inputs=$TFH_SRC/tests/fuzz/$kind/fuzz_$name
		[[ -d $inputs ]] || continue
		report=()
		[[ $kind != seeds || $name == @(digest|listen|symbols|text) ]] || report=(-r)
		"$program" "${report[@]}" "$inputs" >"$TFH_TMP/log" 2>&1 && continue
		tail -n 20 "$TFH_TMP/log"
		echo "FAIL: $name, $kind"
		status=1
	done
done
exit $status
