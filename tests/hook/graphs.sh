#!/usr/bin/env bash
# However many executable graphs a job makes and destroys, each launch cites a version of its own graph. Where a graph without copies
# is changed or updated, the driver is not asked for its nodes again: nothing that is recorded of it can have changed.
set -u
tests=$TFH_BUILD/tests/hook
status=0
[[ -n ${TFH_SAN:-} ]] && exit 77

mkdir "$TFH_TMP/driver"
cp "$tests/libgraphcuda.so" "$TFH_TMP/driver/libcuda.so.1"
export TFHOOK_DIR=$TFH_TMP
LD_LIBRARY_PATH=$TFH_TMP/driver LD_PRELOAD=$TFH_BUILD/lib/libtfhook.so "$tests/graphs_made" 9000 || { echo "exit $?"; status=1; }
"$tests/show" "$TFH_TMP"/tfhook-*/*.tft >"$TFH_TMP/shown"
# w = [handle, version, kernels]
versions=$(grep '"fn":"cuGraphLaunch"' "$TFH_TMP/shown" | sed 's/.*"w":\[[0-9]*,\([0-9]*\),.*/\1/')
made=$(grep -c '"kind":10,' "$TFH_TMP/shown")
[[ $(wc -l <<<"$versions") -eq 9000 && $made -eq 9000 ]] || { echo "$(wc -l <<<"$versions") launches, $made versions"; status=1; }
[[ $(sort -u <<<"$versions" | grep -cv '^0$') -eq 9000 ]] || { echo "$(grep -c '^0$' <<<"$versions") launches without a version"; status=1; }

LD_LIBRARY_PATH=$TFH_BUILD/sim SIM_TRUTH=$TFH_TMP/truth TFHOOK_RUN=$TFH_TMP/changed LD_PRELOAD=$TFH_BUILD/lib/libtfhook.so \
	"$tests/graphs_changed" 100 || { echo "graphs_changed: exit $?"; status=1; }
asked=$(grep -c '"fn":"cuGraphGetNodes"' "$TFH_TMP/truth")
launches=$("$tests/show" "$TFH_TMP"/changed/*.tft | grep '"fn":"cuGraphLaunch"' | grep -vc '"w":\[[0-9]*,0,')
[[ $asked -gt 0 && $asked -le 8 && $launches -eq 100 ]] || { echo "nodes asked for $asked times, $launches launches of a known graph"; status=1; }
exit $status
