#!/bin/sh
# The same clients with device times, from the simulated profiling interface: tier A, the class and cause that the job was
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

expect() { # name, what must be said ...
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
expect copies tier=A class=transfer-bound cause=transfer.h2d-pageable "total=40 " "whatif remove=transfer"

record kernels --steps 40 --h2d 1e4 --spin 15000
expect kernels tier=A class=compute-bound cause=compute.underfilled "total=40 "

record launches --steps 30 --h2d 1e4 --launches 3000 --spin 0.5
expect launches tier=A class=host-bound cause=host.launch "total=30 "

record loader --steps 40 --h2d 1e4 --sleep 12 --spin 5000
expect loader tier=A class=host-bound cause=host.unknown "no input pipeline was visible" "total=40 "

record fetch --steps 30 --h2d 1e4 --d2h 30e6 --copy sync --spin 300
expect fetch tier=A class=transfer-bound cause=transfer.d2h

# 5 ms of kernels remain of the loader's step; the bounds are wide, as a timing proves nothing here.
without=$("$judge" "$TFH_TMP/loader" | sed -n 's/^whatif remove=host .*step=\([0-9.]*\).*/\1/p')
case $without in
0.00[4-9]*) ;;
*)
	echo "loader: predicted without host code: '$without' s, expected about 0.005"
	"$judge" "$TFH_TMP/loader"
	failed=1
	;;
esac
# Hangs in the wait of its 20th step, and is killed: the report names the call, its stream and the kernel.
run=$TFH_TMP/hang
mkdir -p "$run"
env TFHOOK_CUPTI=on TFHOOK_RUN="$run" LD_PRELOAD="$TFH_BUILD/lib/libtfhook.so" LD_LIBRARY_PATH="$TFH_BUILD/sim" \
	SIM_HANG_AFTER=20 "$client" --steps 40 --h2d 1e4 --spin 5000 --stream own --sync stream >"$run.out" 2>&1 &
pid=$!
sleep 1.5
kill -9 $pid
wait $pid 2>/dev/null
"$TFH_BUILD/bin/tfhook" report "$run" >"$run.txt" 2>&1
grep -q "in flight: cuStreamSynchronize stream [0-9]* .*" "$run.txt" && tr '\n' ' ' <"$run.txt" | grep -q "last  *kernel  *spin" || {
	echo "hang:"
	cat "$run.txt"
	failed=1
}
exit $failed
