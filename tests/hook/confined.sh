#!/usr/bin/env bash
# What must hold: a job in tight quarters fares as without the library: a sandbox that kills for any other system call
# when nothing is recorded, a first copy on a
# small stack when something is (a thread's, or a coroutine of the main thread), a log file without room, an audit library.
set -u
confined=$TFH_BUILD/tests/hook/confined lib=$TFH_BUILD/lib/libtfhook.so
[[ -n ${TFH_SAN:-} ]] && exit 77 # a sanitizer has its own system calls and frames
status=0
export LD_LIBRARY_PATH=$TFH_BUILD/sim TFHOOK_RUN=$TFH_TMP/run

for way in exit _exit exec; do
	"$confined" "$way"
	plain=$?
	LD_PRELOAD=$lib "$confined" "$way"
	hooked=$?
	((hooked == plain)) || { echo "sandbox, $way: status $hooked, without tfhook $plain" && status=1; }
done
[[ ! -e $TFHOOK_RUN ]] || { echo "sandbox: files" && status=1; }

# With an audit library, which leaves 1.7 KB of static TLS to all preloads.
LD_AUDIT=$TFH_BUILD/tests/hook/libaudit.so LD_PRELOAD=$lib "$confined" stack 65536 || { echo "not with LD_AUDIT" && status=1; }

for how in stack coroutine; do
	for bytes in 24576 32768 65536; do
		rm -rf "$TFHOOK_RUN"
		LD_PRELOAD=$lib TFHOOK_CUPTI=on TFHOOK_STACKS=slow:1us "$confined" $how $bytes
		rc=$?
		((rc == 0)) || { echo "$how of $bytes bytes: status $rc" && status=1; }
		[[ -s $(echo "$TFHOOK_RUN"/*.tft) ]] || { echo "$how of $bytes bytes: no trace" && status=1; }
	done
done

# A log: on such a stack, and in a file that may not grow.
head -c 3000 /dev/zero >"$TFH_TMP/log"
for limit in unlimited 2; do
	rm -rf "$TFHOOK_RUN"
	(
		ulimit -f $limit
		LD_PRELOAD=$lib TFHOOK_LOG=$TFH_TMP/log TFHOOK_VERBOSE=3 TFHOOK_DIR=$TFH_TMP "$confined" stack 20480
	)
	rc=$?
	((rc == 0)) || { echo "log, files limited to $limit: status $rc" && status=1; }
done
(($(stat -c %s "$TFH_TMP/log") > 3000)) || { echo "log: nothing was written" && status=1; }
exit $status
