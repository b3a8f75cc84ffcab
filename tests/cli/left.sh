#!/usr/bin/env bash
# What killed processes left in this machine's memory goes into their run directories when `repair --left` is called, and
# nowhere else: root does it for every user, with that user's rights. What others put into /dev/shm is not believed when it
# names one's directory. Journals of living processes, other files, and a journal whose directory only others can see stay.
set -u
. "$TFH_SRC/tests/cli/lib.sh"
[[ $(id -u) == 0 ]] && unshare -m true 2>/dev/null || { echo "needs a /dev/shm of its own"; exit 77; }
unset TFHOOK_RUN

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
mv "$journal" base
chmod 711 . # another user's directories are reached through here
mkdir -m 700 theirs roots && chown 65534 theirs
cp base base.journal
mkdir mine
expect 0 "$tfhook" repair base.journal -o mine
# What is saved may be read by whom the journal, the trace file or the run directory may, whatever the umask is.
modes() { (cd "$1" && stat -c %a:%g . * | sort -u | tr '\n' ' '); }
umask 0
expect 0 "$tfhook" repair base.journal -o alone
[[ $(modes alone) == "600:0 700:0 " ]] || fail "saved for its owner alone: $(modes alone)"
chmod 640 base.journal && chgrp 12345 base.journal
expect 0 "$tfhook" repair base.journal -o group
[[ $(modes group) == "2750:12345 640:12345 " ]] || fail "saved for a group: $(modes group)"
cp -a group damaged
cp alone/*.tft damaged/alone.tft
for f in damaged/*.tft; do truncate -s -100 "$f"; done
echo '{}' >damaged/run.json && : >damaged/p.none.0.tft
chmod 600 damaged/run.json damaged/p.none.0.tft
expect 0 "$tfhook" repair damaged
[[ $(cd damaged.repaired && stat -c %a:%n * .) == $(cd damaged && stat -c %a:%n * .) ]] || fail "repaired: $(modes damaged.repaired)"
umask 022
ln -s "$PWD/roots" theirs/link
cat >forge <<'PY'
# FROM TO DIRECTORY [PREFIX]: a journal that names another run directory
import os, sys
b = bytearray(open(sys.argv[1], "rb").read())
def put(at, n, s): b[at:at + n] = s.encode().ljust(n, b"\0")
put(496, 4096, sys.argv[3])
if len(sys.argv) > 4: put(4592, 256, sys.argv[4])
if "lies" in sys.argv[2]: b[40], b[216:220] = b[40] ^ 1, bytes(4) # of another process, without HEAD
if "gone" in sys.argv[2]: b[4856:4864] = os.stat("/proc/self/ns/mnt").st_ino.to_bytes(8, "little")
if "unseen" in sys.argv[2]: b[4856] ^= 1 # another mount namespace
open(sys.argv[2], "wb").write(b)
PY
forge() { "$TFH_PY" forge base "$@"; }
cat >inner <<'SH'
mount -t tmpfs -o mode=1777 none /dev/shm || exit 77
for name in tfhook.0.a tfhook.0.unseen tfhook.65534.theirs tfhook.65534.link tfhook.65534.lies; do
	mv $name.journal /dev/shm && [[ $name == *.0.* ]] || chown 65534 /dev/shm/$name.journal
done
cp base /dev/shm/unrelated.journal
"$TFH_PY" forge base /dev/shm/tfhook.0.gone.journal "$PWD/nowhere"
"$@"
echo "left: $?" && ls /dev/shm
SH
everything() {
	forge tfhook.0.a.journal "$PWD/left"
	forge tfhook.0.unseen.journal "$PWD/nowhere"
	# directories as that user sees them
	forge tfhook.65534.theirs.journal "$PWD/theirs" p.theirs.1
	forge tfhook.65534.link.journal "$PWD/theirs/link" p.link.1
	forge tfhook.65534.lies.journal "$PWD/mine" p.lies.1
}

# A report and a repair of one's own directory take nothing of others.
"$tfhook" report --json mine >alone.json || fail 'a report'
everything
expect 0 unshare -m bash inner "$tfhook" report --json mine
sed '/^left: /,$d' .out | cmp - alone.json || fail "a report takes another user's journal for its own"
everything
expect 0 unshare -m bash inner "$tfhook" repair mine -o repaired
! ls repaired/p.lies* 2>/dev/null || fail "another user's journal was written to one's own directory"
[[ $(sed '1,/^left: /d' .out | wc -l) == 7 ]] || fail 'a repair removed a journal'

everything
expect 0 unshare -m bash inner "$tfhook" repair --left
prints 'left: 3'
prints 'tfhook.0.a.journal: [0-9]+ events saved to .*/left/p.*.1.tft'
prints 'tfhook.0.gone.journal: its run directory .*/nowhere no longer exists: removed'
prints 'tfhook.0.unseen.journal: kept: .*nowhere is not visible from here'
prints 'tfhook.65534.theirs.journal: [0-9]+ events saved to .*/theirs/p.theirs.1.0.tft'
prints 'tfhook.65534.link.journal: .*cannot be created: Permission denied'
prints 'tfhook.65534.lies.journal: .*cannot be created: Permission denied'
[[ $(stat -c %u theirs/p.theirs.1.0.tft) == 65534 && -z $(ls roots) ]] || fail "written with root's rights"
[[ $(sed '1,/^left: /d' .out | tr '\n' ' ') == "tfhook.0.unseen.journal tfhook.65534.lies.journal tfhook.65534.link.journal unrelated.journal " ]] ||
	fail 'what stays in /dev/shm'
expect 0 "$tfhook" verify left

# As many journals as there are, and no file that says nothing of itself is removed.
mkdir many && for ((i = 0; i < 1100; i++)); do ln base many/p.$i.journal; done
touch -d '1 hour ago' many/empty.journal && head -c 20000 /dev/zero >many/zeros.journal && touch -d '1 hour ago' many/zeros.journal
expect 0 "$tfhook" repair many -o saved
[[ $(grep -c 'many/p.*.journal: ' .out) == 1100 ]] || fail "all journals, not $(grep -c journal: .out)"
[[ -e many/empty.journal && -e many/zeros.journal ]] || fail "removed files that are somebody's"
