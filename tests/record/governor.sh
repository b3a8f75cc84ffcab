#!/usr/bin/env bash
# A governor that keeps the processors at their lowest clock is listed among the settings that cost time, and as a note below a
# verdict that it concerns; not where the driver raises the clock by itself, nor any other governor. Needs the right to mount.
set -u
[[ -z ${TFH_SAN:-} && -e $TFH_BUILD/sim/libcuda.so.1 ]] || exit 77
unshare -m true 2>/dev/null && [[ -d /sys/devices/system/cpu/cpu0 ]] || exit 77
cd "$TFH_TMP" || exit 1

told() { # DRIVER GOVERNOR: a host-bound job under these
	rm -rf rec
	unshare -m bash -c 'mount -t tmpfs none /sys/devices/system/cpu/cpu0 && mkdir /sys/devices/system/cpu/cpu0/cpufreq &&
		cd /sys/devices/system/cpu/cpu0/cpufreq && echo "$1" >scaling_driver && echo "$2" >scaling_governor && cd "$TFH_TMP" &&
		LD_LIBRARY_PATH=$TFH_BUILD/sim "$TFH_BUILD/bin/tfhook" run -q -o rec -- "$TFH_BUILD/tests/jobs/client_loop" --sleep 4 --steps 100' \
		told "$1" "$2" >out 2>&1 || { cat out; exit 1; }
	"$TFH_BUILD/bin/tfhook" report --all -w rec >text
	"$TFH_BUILD/bin/tfhook" report --json rec | grep -c '"cpu.governor"'
}

failed=0
[[ $(told acpi-cpufreq powersave) == 1 ]] || { echo "FAIL powersave is not told"; cat text; failed=1; }
grep -q "cpu.governor=powersave: the processors stay" text || { echo "FAIL no note"; cat text; failed=1; }
[[ $(told intel_pstate powersave) == 0 ]] || { echo "FAIL intel_pstate"; failed=1; }
[[ $(told acpi-cpufreq schedutil) == 0 ]] || { echo "FAIL schedutil"; failed=1; }
exit $failed
