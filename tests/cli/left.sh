#!/usr/bin/env bash
# What must hold: what killed processes left in this machine's memory goes into their run directories when `repair --left`
# is called, and nowhere else; journals of others, of living processes and other files stay.
set -u
. "$TFH_SRC/tests/cli/lib.sh"
[[ $(id -u) == 0 ]] && unshare -m true 2>/dev/null || { echo "needs a /dev/shm of its own"; exit 77; }

LD_LIBRARY_PATH=$TFH_BUILD/sim LD_PRELOAD=$TFH_BUILD/lib/libtfhook.so TFHOOK_RUN=$PWD/left "$job" --steps 100000 --h2d 1000 --spin 100 >/dev/null 2>&1 &
pid=$!
for ((i = 0; i < 100; i++)); do
	ls left/*.tft >/dev/null 2>&1 && break
	sleep 0.05
done
sleep 0.2
kill -9 $pid
wait $pid 2>/dev/null
journal=$(ls left/*.journal 2>/dev/null) || { echo "the journal lies elsewhere"; exit 77; }
cat >inner <<'SH'
mount -t tmpfs none /dev/shm || exit 77
cp "$2" /dev/shm/tfhook.0.a.journal
cp "$2" /dev/shm/tfhook.0.other.journal && chown 65534 /dev/shm/tfhook.0.other.journal
cp "$2" /dev/shm/unrelated.journal
"$1" repair --left && ls /dev/shm
SH
expect 0 unshare -m bash inner "$tfhook" "$journal"
rm "$journal"
prints 'a.journal: [0-9]+ events saved to .*/left/p.*.1.tft'
[[ $(tail -2 .out | tr '\n' ' ') == "tfhook.0.other.journal unrelated.journal " ]] || fail 'what stays in /dev/shm'
expect 0 "$tfhook" verify left
