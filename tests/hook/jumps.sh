#!/usr/bin/env bash
# A hooked call that is left without a return (longjmp, as an exception or a cancellation would) is no reason to treat
# later ones of its thread otherwise: they reach whom they would reach without tfhook, and are recorded.
set -u
tests=$TFH_BUILD/tests/hook
status=0
[[ -n ${TFH_SAN:-} ]] && exit 77

# go HOW: what the program says; its recording is in $TFH_TMP/HOW.
go() {
	mkdir -p "$TFH_TMP/$1"
	TFHOOK_DIR=$TFH_TMP/$1 LD_PRELOAD=$TFH_BUILD/lib/libtfhook.so "$tests/jumps" "$tests/libjumps.so" "$1" 20
}

# Without a driver calls go on to the library's own function.
said=$(go init)
[[ $said == 20 ]] || { echo "of 20 calls of cuInit $said arrived"; status=1; }
said=$(go reduce)
[[ $said == 20 ]] || { echo "of 20 calls of ncclAllReduce $said arrived"; status=1; }
recorded=$("$tests/show" "$TFH_TMP"/reduce/tfhook-*/*.tft | grep -c '"fn": *"ncclAllReduce"')
[[ $recorded -ge 20 && $recorded -le 40 ]] || { echo "of 20 calls of ncclAllReduce $recorded were recorded"; status=1; }
exit $status
