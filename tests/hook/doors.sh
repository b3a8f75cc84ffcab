#!/usr/bin/env bash
# The doors into the driver answer as they would without tfhook, but with our wrappers for hooked names: in every way of
# looking names up, next to other preloads in either order, with trampolines that a library defines itself, and with no
# driver at all.
set -u
tests=$TFH_BUILD/tests/hook
hook=${TFH_HOOK:-$TFH_BUILD/lib/libtfhook.so}
noexport=${TFH_HOOK_NOEXPORT:-$TFH_BUILD/lib/libtfhook-noexport.so}
status=0
[[ -n ${TFH_SAN:-} ]] && exit 77
[[ -f $hook ]] || { echo "no $hook"; exit 1; }

mkdir "$TFH_TMP/driver"
cp "$tests/libfakecuda.so" "$TFH_TMP/driver/libcuda.so.1"
export TFHOOK_DIR=$TFH_TMP

# try NAME PRELOADS COMMAND...: with the driver; the command must succeed.
try() {
	local name=$1 preload=$2
	shift 2
	if ! LD_LIBRARY_PATH=$TFH_TMP/driver LD_PRELOAD=$preload "$@" >"$TFH_TMP/out" 2>&1; then
		echo "FAILED: $name"
		cat "$TFH_TMP/out"
		status=1
	fi
}

try 'plain' '' "$tests/routes"
try 'hooked' "$hook" "$tests/routes" hooked
try 'hooked, no exported names' "$noexport" "$tests/routes" hooked
try 'switched off' "$hook" env TFHOOK=0 "$tests/routes" hooked
try 'before a dlsym wrapper' "$hook $tests/libwrapsdlsym.so" "$tests/routes" hooked
try 'after a dlsym wrapper' "$tests/libwrapsdlsym.so $hook" "$tests/routes" hooked behind
try 'before a limiting preload' "$hook $tests/libwrapsdlsym.so" env OTHER_LIMITS=1 "$tests/scopes" limited
try 'after a limiting preload' "$tests/libwrapsdlsym.so $hook" env OTHER_LIMITS=1 "$tests/scopes" limited
try 'before a preload with RTLD_NEXT' "$hook $tests/librtldnext.so" "$tests/scopes" two
try 'after a preload with RTLD_NEXT' "$tests/librtldnext.so $hook" "$tests/scopes" two
try 'RTLD_DEFAULT in a local library' "$hook" "$tests/scopes" local "$tests/liblocal.so"

# A driver of another name.
cp "$tests/libfakecuda.so" "$TFH_TMP/driver/libother.so"
# Trampolines: what comes out is the same with and without tfhook, with and without a driver.
for driver in "$TFH_TMP/driver" /nonexistent; do
	for preload in '' "$hook" "$noexport"; do
		LD_LIBRARY_PATH=$driver LD_PRELOAD=$preload "$tests/scopes" trampolines \
			"$tests/libtrampolines.so" >"$TFH_TMP/result" 2>&1
		[[ -z $preload ]] && cp "$TFH_TMP/result" "$TFH_TMP/expected"
		if ! cmp -s "$TFH_TMP/result" "$TFH_TMP/expected"; then
			echo "FAILED: trampolines with driver in $driver under '$preload'"
			diff "$TFH_TMP/expected" "$TFH_TMP/result"
			status=1
		fi
	done
done
grep -q 'init 303' "$TFH_TMP/expected" || { echo "no driver should mean 303"; status=1; }
LD_LIBRARY_PATH=/nonexistent LD_PRELOAD=$hook "$tests/scopes" bare || { echo "FAILED: bare"; status=1; }
exit $status
