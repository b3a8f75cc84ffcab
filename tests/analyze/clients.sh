#!/bin/sh
# What a real client of the driver does, seen from the host only, is judged right, on the simulated GPU: large pageable
# copies, long kernels, thousands of launches, a slow loader that nobody sees, results fetched; steps are counted exactly;
# of a job that was killed in a wait, or hangs in one now, the steps, the verdict and the call in flight are reported.
set -u
judge=$TFH_BUILD/tests/analyze/judge
client=$TFH_BUILD/tests/jobs/client_loop
if [ -n "${TFH_SAN:-}" ] || [ ! -x "$client" ] || [ ! -e "$TFH_BUILD/lib/libtfhook.so" ]; then
	echo "needs the recorder and the simulated GPU, without sanitizers"
	exit 77
fi
failed=0

record() { # name, arguments of the client
	run=$TFH_TMP/$1
	shift
	# The simulated device is a thread, too: where other programs take its CPU, the job is another one.
	for _ in 1 2 3 4; do
		rm -rf "$run"
		mkdir -p "$run"
		env TFHOOK_CUPTI=off TFHOOK_RUN="$run" LD_PRELOAD="$TFH_BUILD/lib/libtfhook.so" LD_LIBRARY_PATH="$TFH_BUILD/sim" \
			"$client" "$@" \
			>"$run.out" 2>&1
		"$judge" "$run" | grep -q "waited for a CPU" || return 0
	done
}

expect() { # name, what the first line must hold ...
	told=$("$judge" "$TFH_TMP/$1")
	name=$1
	shift
	for word in "$@"; do
		case $told in
		*"$word"*) ;;
		*)
			echo "$name: no \"$word\" in:"
			echo "$told"
			failed=1
			;;
		esac
	done
}

record copies --steps 40 --h2d 30e6 --spin 300
expect copies class=transfer-bound cause=transfer.h2d-pageable "total=40 " clock=period

record kernels --steps 40 --h2d 1e4 --spin 15000
expect kernels class=compute-bound cause=compute.dense "total=40 " tier=C

record launches --steps 30 --h2d 1e4 --launches 3000 --spin 0.5
expect launches class=host-bound cause=host.launch "total=30 "

record loader --steps 30 --h2d 1e4 --sleep 20 --spin 500
expect loader class=host-bound cause=host.sleep "total=30 "

record fetch --steps 30 --h2d 1e4 --d2h 30e6 --copy sync --spin 300
expect fetch class=transfer-bound cause=transfer.d2h

# Hangs in the wait of its 20th step: looked at while it lives, and after it was killed.
run=$TFH_TMP/hang
mkdir -p "$run"
env TFHOOK_CUPTI=off TFHOOK_RUN="$run" LD_PRELOAD="$TFH_BUILD/lib/libtfhook.so" LD_LIBRARY_PATH="$TFH_BUILD/sim" SIM_HANG_AFTER=20 \
	"$client" --steps 40 --h2d 1e4 --spin 5000 >"$run.out" 2>&1 &
pid=$!
sleep 2
expect hang "total=20 " end=running "in-flight cuCtxSynchronize" class=compute-bound
kill -9 $pid
wait $pid 2>/dev/null
expect hang "total=20 " end=killed "in-flight cuCtxSynchronize" class=compute-bound
exit $failed
