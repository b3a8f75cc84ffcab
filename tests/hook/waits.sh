#!/usr/bin/env bash
# No thread waits for another one inside a hook: not for one that waits for the loader, and not for one that a fork left
# behind. Each case runs with and without the preload and ends in the same way.
set -u
tests=$TFH_BUILD/tests/hook
status=0
[[ -n ${TFH_SAN:-} ]] && exit 77

mkdir "$TFH_TMP/driver"
cp "$tests/libslowcuda.so" "$TFH_TMP/driver/libcuda.so.1"
export TFHOOK_DIR=$TFH_TMP
for case in join both fork first; do
	driver=$TFH_TMP/driver
	[[ $case == first ]] && driver=$TFH_BUILD/sim
	[[ -d $driver ]] || continue
	for preload in '' "$TFH_BUILD/lib/libtfhook.so" "$TFH_BUILD/lib/libtfhook-noexport.so"; do
		if ! TFHOOK_CUPTI=on LD_LIBRARY_PATH=$driver LD_PRELOAD=$preload "$tests/waits" $case "$tests/libconstructor.so" \
			${preload:+hooked} >"$TFH_TMP/out" 2>&1; then
			echo "FAILED: $case under '$preload'"
			cat "$TFH_TMP/out"
			status=1
		fi
	done
done
exit $status
