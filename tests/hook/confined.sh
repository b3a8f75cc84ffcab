#!/usr/bin/env bash
# What must hold: a job in tight quarters fares as without the library: a sandbox that kills for any other system call
# when nothing is recorded, a first copy on a thread with a small stack when something is, an audit library.
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
	((hooked == plain)) || { echo "sandbox, $way: status $hooked, without us $plain" && status=1; }
done
[[ ! -e $TFHOOK_RUN ]] || { echo "sandbox: files" && status=1; }

# With an audit library, which leaves 1.7 KB of static TLS to all preloads.
LD_AUDIT=$TFH_BUILD/tests/hook/libaudit.so LD_PRELOAD=$lib "$confined" stack 65536 || { echo "not with LD_AUDIT" && status=1; }

for bytes in 24576 32768 65536; do
	rm -rf "$TFHOOK_RUN"
	LD_PRELOAD=$lib "$confined" stack $bytes
	rc=$?
	((rc == 0)) || { echo "stack of $bytes bytes: status $rc" && status=1; }
	[[ -s $(echo "$TFHOOK_RUN"/*.tft) ]] || { echo "stack of $bytes bytes: no trace" && status=1; }
done
exit $status
