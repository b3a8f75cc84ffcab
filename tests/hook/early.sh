#!/usr/bin/env bash
# The first dlsym of a process comes before anything is set up, and is answered without any function of libc that
# somebody else may have taken over and not made ready: a library that owns some of them and traps when called early sees
# no call.
set -u
tests=$TFH_BUILD/tests/hook
status=0
[[ -n ${TFH_SAN:-} ]] && exit 77

for lib in '' libtfhook.so libtfhook-noexport.so; do
	for on in 1 0; do
		for preload in "$tests/libnotready.so ${lib:+$TFH_BUILD/lib/$lib}" "${lib:+$TFH_BUILD/lib/$lib} $tests/libnotready.so"; do
			TFHOOK=$on LD_PRELOAD=$preload "$tests/early" >"$TFH_TMP/out" 2>&1
			rc=$?
			[[ $rc -eq 3 ]] && continue
			echo "FAILED with $rc: TFHOOK=$on under '$preload'"
			cat "$TFH_TMP/out"
			status=1
		done
	done
done

# The library has its own; what it does not have is taken from whoever owns it.
wrong=$(nm -D -u "$TFH_BUILD/lib/libtfhook.so" | grep -oE ' (mem[a-z]+|str(n?cmp|n?len|r?chr|c?spn|str|ncpy|n?casecmp|cpy|cat))\b' | tr '\n' ' ')
[[ -z $wrong ]] || { echo "libtfhook.so takes from others:$wrong"; status=1; }
"$tests/string_functions" || status=1
exit $status
