#!/usr/bin/env bash
# What must hold: recordings that earlier versions left are read completely, the journals of killed jobs included: report,
# info, verify, repair, export and digest; so are digests. A journal or a file of a version to come is refused by name
# (exit status 3).
set -u
. "$TFH_SRC/tests/cli/lib.sh"

# DATE EVENTS STEPS: as the version that wrote it counts them; the first cannot read a journal that its job no longer holds
old() {
	local run=killed-$1 events=$2 steps=$3 n
	zstd -dcq "$TFH_SRC/tests/golden/$run.tar.zst" | tar -x --no-same-owner || fail "$run cannot be unpacked"
	expect 0 "$tfhook" report --all "$run"
	prints "client_loop   $steps steps"
	prints 'ENDED ABRUPTLY'
	prints 'cuCtxSynchronize'
	expect 0 "$tfhook" info "$run"
	prints "client_loop +${events:0:1},${events:1} +0 "
	expect 0 "$tfhook" digest "$run"
	expect 0 "$tfhook" export --to csv -o "$run.csv" "$run"
	expect 0 "$tfhook" repair "$run"
	expect 0 "$tfhook" verify "$run.repaired"
	n=$(($(sed -n 's/.* \([0-9]*\) events.*/\1/p' .out | paste -sd+)))
	[[ $n == "$events" ]] || fail "$run: $n events in the repaired files, not $events"
}

old 2026-11-21 2581 514
old 2026-11-22 2237 556
old 2026-11-23 2209 549

expect 0 "$tfhook" report "$TFH_SRC/tests/golden/digest-2026-11-23.tft"
prints 'client_loop   549 steps'
prints 'COMPUTE-BOUND \(high\)'
expect 0 "$tfhook" diff "$TFH_SRC/tests/golden/digest-2026-11-23.tft" killed-2026-11-22
prints '547 steps'
prints '554 steps'

# The header's version is at offset 8.
cp -r killed-2026-11-23 later && rm later/*.tft && journal=$(echo later/*.journal)
printf '\2' | dd of="$journal" bs=1 seek=8 conv=notrunc status=none
expect 3 "$tfhook" repair "$journal"
prints 'a journal of version 2, this tfhook reads versions up to 1: use a newer tfhook'
expect 0 "$tfhook" report --all killed-2026-11-23
