#!/usr/bin/env bash
# The simulated driver behaves as its C clients expect, says nothing, and refuses wrong settings clearly.
set -u
tests=$TFH_BUILD/tests/sim
loop=$tests/loop
export LD_LIBRARY_PATH=$TFH_BUILD/sim
export ASAN_OPTIONS=detect_leaks=0 # the clients leave their objects to the end of the process
status=0

for program in driver graphs graphs_capture graphs_nodes interp threads; do
	if ! timeout 60 "$tests/$program" >"$TFH_TMP/out" 2>&1 || [[ -s $TFH_TMP/out ]]; then
		echo "FAILED: $program"
		cat "$TFH_TMP/out"
		status=1
	fi
done

# refused TEXT SETTING...: the client must fail and stderr name the place.
refused() {
	local text=$1
	shift
	if env "$@" "$loop" --steps 1 >"$TFH_TMP/out" 2>&1 || ! grep -qF -- "$text" "$TFH_TMP/out"; then
		echo "FAILED: $* should be refused with '$text'"
		cat "$TFH_TMP/out"
		status=1
	fi
}
printf '# a comment\nh2d_gbps = 2\nkernel = spin* 1ms\n\nd2h_gpbs = 3\n' >"$TFH_TMP/typo"
printf 'devices = many\n' >"$TFH_TMP/number"
printf 'launch_cost = 3\n' >"$TFH_TMP/unit"
printf 'kernel = gemm\n' >"$TFH_TMP/rule"
refused "$TFH_TMP/typo:5: unknown setting 'd2h_gpbs'" "SIM_CONFIG=$TFH_TMP/typo"
refused "$TFH_TMP/number:1: 'many' is not a number" "SIM_CONFIG=$TFH_TMP/number"
refused "$TFH_TMP/unit:1: '3' is not a duration" "SIM_CONFIG=$TFH_TMP/unit"
refused "$TFH_TMP/rule:1: kernel rule" "SIM_CONFIG=$TFH_TMP/rule"
refused "$TFH_TMP/none: cannot be read" "SIM_CONFIG=$TFH_TMP/none"
refused "SIM_QUEUE_DEPTH: 'x' is not a number" SIM_QUEUE_DEPTH=x
refused "SIM_FAIL: 'cuInit' is not of the form" SIM_FAIL=cuInit
refused "/none/truth: No such file" SIM_TRUTH=/none/truth
refused 'error 100' SIM_DEVICES=0

# A kernel that never ends keeps a sync waiting.
SIM_HANG_AFTER=3 timeout 1 "$loop" --steps 5 --spin 1 >"$TFH_TMP/out" 2>&1
[[ $? == 124 ]] || { echo 'FAILED: the hanging kernel did not hang'; status=1; }
exit $status
