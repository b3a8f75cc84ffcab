#!/bin/sh
# Clients of the driver with device times, from the simulated profiling interface: tier A, the class and cause that the job was
# made with, and the step predicted without its defect near that of the job run without it.
set -u
judge=$TFH_BUILD/tests/analyze/judge
client=$TFH_BUILD/tests/jobs/client_loop
if [ -n "${TFH_SAN:-}" ] || [ ! -x "$client" ] || [ ! -e "$TFH_BUILD/lib/libtfhook.so" ] ||
	[ ! -e "$TFH_BUILD/sim/libcupti.so.13" ]; then
	echo "needs the recorder and the simulated GPU, without sanitizers"
	exit 77
fi
failed=0

record() { # name, arguments of the client
	run=$TFH_TMP/$1
	shift
	mkdir -p "$run"
	env TFHOOK_CUPTI=on TFHOOK_RUN="$run" LD_PRELOAD="$TFH_BUILD/lib/libtfhook.so" LD_LIBRARY_PATH="$TFH_BUILD/sim" \
		"$client" "$@" >"$run.out" 2>&1
}

holds() { # name, what must be said ...
	told=$("$judge" "$TFH_TMP/$1")
	shift
	for word in "$@"; do
		case $told in
		*"$word"*) ;;
		*)
			missing=$word
			return 1
			;;
		esac
	done
}

# A machine that is busy with other things makes every job wait: what is not found is tried again.
expect() { # name, arguments of the client, what must be said ...
	name=$1
	arguments=$2
	shift 2
	for turn in 1 2 3 4 5; do
		rm -rf "${TFH_TMP:?}/$name"
		# shellcheck disable=SC2086
		record "$name" $arguments
		holds "$name" "$@" && return
	done
	echo "$name: no \"$missing\" in:"
	echo "$told"
	failed=1
}

expect copies "--steps 40 --h2d 30e6 --spin 300" tier=A class=transfer-bound cause=transfer.h2d-pageable "total=40 " \
	"whatif remove=transfer" decoded=2.0
expect kernels "--steps 40 --h2d 1e4 --spin 15000" tier=A class=compute-bound cause=compute.underfilled "total=40 "
expect launches "--steps 30 --h2d 1e4 --launches 3000 --spin 0.5" tier=A class=host-bound cause=host.launch "total=30 "
expect fetch "--steps 30 --h2d 1e4 --d2h 30e6 --copy sync --spin 300" tier=A class=transfer-bound cause=transfer.d2h
# 5 ms of kernels remain of this step; the bounds are wide, as a timing proves nothing here.
expect loader "--steps 40 --h2d 1e4 --sleep 12 --spin 5000" tier=A class=host-bound cause=host.sleep \
	"total=40 " "whatif remove=host step=0.00"

# Hangs in the wait of its 20th step, and is killed: the report names the call, its stream and the kernel.
run=$TFH_TMP/hang
mkdir -p "$run"
env TFHOOK_CUPTI=on TFHOOK_RUN="$run" LD_PRELOAD="$TFH_BUILD/lib/libtfhook.so" LD_LIBRARY_PATH="$TFH_BUILD/sim" \
	SIM_HANG_AFTER=20 "$client" --steps 40 --h2d 1e4 --spin 5000 --stream own --sync stream >"$run.out" 2>&1 &
pid=$!
sleep 2
kill -9 $pid
wait $pid 2>/dev/null
"$TFH_BUILD/bin/tfhook" report --all "$run" >"$run.txt" 2>&1
grep -q "in flight: cuStreamSynchronize stream [0-9]* .*" "$run.txt" && tr '\n' ' ' <"$run.txt" | grep -q "last  *kernel  *spin" || {
	echo "hang:"
	cat "$run.txt"
	failed=1
}
exit $failed
