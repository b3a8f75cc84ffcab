#!/usr/bin/env bash
# The older driver lacks what came later, the newer one has names and versions that nobody knows and two names for one
# function; both work. A driver that looks itself up at its start finds itself, also under the preload.
set -u
prog=$TFH_BUILD/tests/sim/variants
status=0

# shows DIR VERSION LINE...: each line must be printed.
shows() {
	local dir=$1 version=$2 line
	shift 2
	if ! LD_LIBRARY_PATH=$TFH_BUILD/$dir timeout 30 "$prog" "$version" >"$TFH_TMP/out" 2>&1; then
		echo "FAILED: $dir"
		cat "$TFH_TMP/out"
		status=1
	fi
	for line; do
		grep -qxF -- "$line" "$TFH_TMP/out" || { echo "FAILED: $dir should say '$line'"; cat "$TFH_TMP/out"; status=1; }
	done
}
shows sim 13000 'version 13000' 'dlsym cuGetProcAddress_v2: there' 'getproc cuLaunchKernel: 0 cuLaunchKernel' \
	'dlsym cuFutureOperation: none' 'destroy alias: 0'
shows sim/old 11080 'version 11080' 'dlsym cuGetProcAddress_v2: none' 'dlsym cuLaunchKernelEx: there' \
	'dlsym cuGraphAddNode: none' 'getproc cuGraphAddNode: 0 none' 'getproc cuLaunchKernel: 0 cuLaunchKernel'
shows sim/old 12000 'getproc cuLaunchKernel: 1 none'
shows sim/future 14000 'version 14000' 'getproc cuLaunchKernel: 0 cuLaunchKernel_v2' \
	'getproc cuEventCreate: 0 cuEventCreate_v2' 'dlsym cuFutureOperation: there' 'destroy alias: 1'
shows sim/future 13000 'getproc cuLaunchKernel: 0 cuLaunchKernel' 'getproc cuEventCreate: 0 cuEventCreate'

# self PRELOAD: how many names the driver finds in another library.
self() {
	rm -f "$TFH_TMP/truth"
	env SIM_SELF_LOOKUP=1 SIM_TRUTH="$TFH_TMP/truth" LD_LIBRARY_PATH="$TFH_BUILD/sim" TFHOOK_OUT="$TFH_TMP/run" \
		${1:+LD_PRELOAD=$1} timeout 30 "$prog" 13000 >/dev/null || { echo "FAILED: self lookup $1"; status=1; }
	grep -o 'self lookup: [^"]*' "$TFH_TMP/truth" || { echo 'FAILED: no self lookup'; status=1; }
}
[[ $(self '') == *' 0 absent, 0 of another library, version 13000' ]] || { echo 'FAILED: the driver does not find itself'; status=1; }
[[ -n $TFH_SAN ]] || [[ $(self "$TFH_BUILD/lib/libtfhook.so") == *' 0 absent, '*', version 13000' ]] ||
	{ echo 'FAILED: under the preload the driver misses its own names'; status=1; }
exit $status
