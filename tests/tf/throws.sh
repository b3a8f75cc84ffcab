#!/usr/bin/env bash
# An exception passes through a wrapper above whose frame a longjmp has left another one's remains: nothing of those is
# read, and each call that ended is recorded once.
set -u
tests=$TFH_BUILD/tests
status=0
[[ -n ${TFH_SAN:-} ]] && exit 77

said=$(TFHOOK_DIR=$TFH_TMP LD_PRELOAD=$TFH_BUILD/lib/libtfhook.so "$tests/tf/throws" "$tests/tf/libthrows.so") || { echo "exit $?"; status=1; }
[[ $said == "200 returned, 100 caught" ]] || { echo "$said"; status=1; }
calls=$("$tests/tf/trace" "$TFH_TMP"/tfhook-*/*.tft | grep -c tf_data_iterator_get_next)
[[ $calls -eq 300 ]] || { echo "$calls calls in the trace"; status=1; }
exit $status
