#!/usr/bin/env bash
# What must hold: a job whose threads run on another memory node than its device, and whose copies matter, is told so, with the share of
# their CPU time; a job on the device's node is not told, nor one whose copies take no time, nor any where all CPUs belong to one node
# (which then has no meter). The machine's nodes are made up. Needs the right to mount.
# timeout: 600
set -u
[[ -z ${TFH_SAN:-} && -e $TFH_BUILD/sim/libcuda.so.1 ]] || exit 77
unshare -m sh -c 'mount -t tmpfs none /sys' 2>/dev/null || exit 77
cd "$TFH_TMP" || exit 1
BUS=0000:01:00.0 # of the simulated device
cpus=$(cat /sys/devices/system/cpu/online)
failed=0

rows() { # RUN: how often the machine was read in it
	"$TFH_BUILD/bin/tfhook" ctl "$1" flush >"$1.err" 2>&1
	"$TFH_BUILD/bin/tfhook" report --json "$1" 2>>"$1.err" | python3 -c 'import json, sys
try:
	print(max((len(m["line"]) for m in json.load(sys.stdin)["machine"] if m["name"] == "cpu.busy"), default=0))
except ValueError:  # nothing to judge yet
	print(0)'
}

# A job of client_loop's, which ends once the machine was read often enough (at most once a second, and the more rarely the more that
# costs): a remark needs two seconds of readings.
told() { # NAME DEVICE'S-NODE CPUS-OF-NODE-0 CPUS-OF-NODE-1 OPTION...
	local job
	unshare -m bash -c 'mount -t tmpfs none /sys && mkdir -p /sys/devices/system/node/node{0,1} /sys/bus/pci/devices || exit 1
		echo "$3" >/sys/devices/system/node/node0/cpulist; echo "$4" >/sys/devices/system/node/node1/cpulist
		device=/sys/devices/pci0000:00/0000:00:01.0/'$BUS'
		mkdir -p $device && echo "$2" >$device/numa_node && ln -s $device /sys/bus/pci/devices/ || exit 1
		LD_LIBRARY_PATH=$TFH_BUILD/sim exec "$TFH_BUILD/bin/tfhook" run -q -o "$1" -- "$TFH_BUILD/tests/jobs/client_loop" "${@:5}" --until "$PWD/$1.enough"' \
		told "$@" >out 2>&1 &
	job=$!
	until (($(rows "$1") >= 6)) || ! kill -0 $job 2>/dev/null; do
		sleep 1
	done
	touch "$1.enough"
	wait $job || { cat out; exit 1; }
	"$TFH_BUILD/bin/tfhook" report --all -w "$1" | tr -s ' \n' ' ' >"$1.text"
	"$TFH_BUILD/bin/tfhook" report --json "$1" >"$1.json"
}

expect() { # NAME remark|none meter|none
	local remark=none meter=none
	grep -q "on other memory nodes than its node" "$1.text" && remark=remark
	grep -q '"threads.cpu.far"' "$1.json" && meter=meter
	[[ $remark == "$2" && $meter == "$3" ]] || { echo "FAIL $1: $remark $meter"; cat "$1.text"; failed=1; }
}

COPIES="--h2d 8000000 --spin 200 --steps 1000000"
none=$((2 ** 11))
told far 1 "$cpus" "$none" $COPIES
expect far remark meter
grep -q "spent 100 % of their CPU time on" far.text || { echo "FAIL the share"; cat far.text; failed=1; }
told near 1 "$none" "$cpus" $COPIES
expect near none meter
told small 1 "$cpus" "$none" --h2d 4 --spin 3000 --steps 1000000
expect small none meter
told one 0 "$cpus" "" $COPIES
expect one none none
told unknown -1 "$cpus" "$none" $COPIES
expect unknown none none
exit $failed
