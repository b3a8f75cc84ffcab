#!/usr/bin/env bash
# Virtual time is exact and the same in each run; concurrent kernels, priorities and waits for values; settings that
# are nearly right are refused with what was meant; starting can be slow, and a host function can abort the process.
set -u
tests=$TFH_BUILD/tests/sim
export LD_LIBRARY_PATH=$TFH_BUILD/sim
export ASAN_OPTIONS=detect_leaks=0 # the clients leave their objects to the end of the process
status=0

for how in '' one real; do
	if ! timeout 60 "$tests/engine" $how >"$TFH_TMP/out" 2>&1 || [[ -s $TFH_TMP/out ]]; then
		echo "FAILED: engine $how"
		cat "$TFH_TMP/out"
		status=1
	fi
done

# Two runs of one program write the same log, but for the ids of process and thread.
log() {
	SIM_TIME=virtual SIM_TRUTH=$TFH_TMP/$1 timeout 30 "$tests/loop" --steps 50 --h2d 1e6 --spin 300 >"$TFH_TMP/said" || status=1
	sed -E 's/"(pid|tid)":[0-9]+/"\1":0/g' "$TFH_TMP/$1"
}
[[ $(log first) == "$(log second)" ]] || { echo 'FAILED: virtual time differs between two runs'; status=1; }
grep -q '"time":"virtual"' "$TFH_TMP/first" || { echo 'FAILED: the log does not say which clock it has'; status=1; }

# refused TEXT SETTING...
refused() {
	local text=$1
	shift
	if env "$@" "$tests/loop" --steps 1 >"$TFH_TMP/out" 2>&1 || ! grep -qF -- "$text" "$TFH_TMP/out"; then
		echo "FAILED: $* should be refused with '$text'"
		cat "$TFH_TMP/out"
		status=1
	fi
}
printf 'while_cuont = 2\n' >"$TFH_TMP/near"
printf '\nrubbish = 2\n' >"$TFH_TMP/far"
refused "$TFH_TMP/near:1: unknown setting 'while_cuont': did you mean 'while_count'?" "SIM_CONFIG=$TFH_TMP/near"
refused "$TFH_TMP/far:2: unknown setting 'rubbish'" "SIM_CONFIG=$TFH_TMP/far"
refused "unknown setting 'SIM_TIMES': did you mean 'time'?" SIM_TIMES=virtual
refused "SIM_TIME: 'fast' is neither real nor virtual" SIM_TIME=fast
refused "SIM_CONCURRENT_KERNELS: '0' is not a number from 1 to" SIM_CONCURRENT_KERNELS=0
SIM_SOMETHING=else "$tests/loop" --steps 1 >"$TFH_TMP/out" 2>&1 || { echo 'FAILED: a variable of others'; status=1; }

# cuInit that takes a while; on the virtual clock it takes that time too.
SIM_TIME=virtual SIM_INIT_DELAY=3s SIM_TRUTH=$TFH_TMP/slow "$tests/loop" --steps 1 >"$TFH_TMP/out" || status=1
grep -qE '"fn":"cuInit".*"t0":[0-9]+,"t1":40[0-9]{8},' "$TFH_TMP/slow" || { echo 'FAILED: cuInit took no time'; cat "$TFH_TMP/slow"; status=1; }

# The first host function aborts.
(ulimit -c 0; SIM_ABORT_AFTER=1 timeout 10 "$tests/engine" >"$TFH_TMP/out" 2>&1) 2>/dev/null
[[ $? == 134 ]] || { echo 'FAILED: no abort in the host function'; status=1; }
exit $status
