#!/usr/bin/env bash
# The recorder itself: missing or junk is said before the job starts; a path with a blank or colon works through a link
# that is gone afterwards; another preload is kept; mistyped variables are named with the nearest real one.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

mkdir -p bare/bin junk/bin junk/lib "a b:c/bin" "a b:c/lib" tmp
cp "$tfhook" bare/bin/ && cp "$tfhook" junk/bin/ && cp "$tfhook" "a b:c/bin/"
expect 125 bare/bin/tfhook run touch started
says 'the recorder .*libtfhook.so does not exist; build it \(make\) or install'
echo junk >junk/lib/libtfhook.so
expect 125 junk/bin/tfhook run touch started
says 'not a shared library of this machine; build or install tfhook again'
[[ ! -e started ]] || fail 'the job was started'
nothing_made

cp "$TFH_BUILD/lib/libtfhook.so" "a b:c/lib/"
expect 0 on_gpu env TMPDIR="$TFH_TMP/tmp" "a b:c/bin/tfhook" run -o blank "$job" --steps 3 --h2d 1000 --spin 10
says_not 'ERROR: ld.so'
ls blank/*.tft >/dev/null || fail 'not recorded'
[[ -z $(ls tmp) ]] || fail 'the link is still there'
expect 1 "a b:c/bin/tfhook" env
says 'blank or colon'

expect 0 env LD_PRELOAD="$TFH_BUILD/tests/cli/libfull.so" "$tfhook" run sh -c 'echo "$LD_PRELOAD"'
prints "^$TFH_BUILD/lib/[$]LIB/libtfhook.so:$TFH_BUILD/tests/cli/libfull.so$"
# Ours is there already (a launcher sets it everywhere): once is enough, and the command itself is not traced.
expect 0 env LD_PRELOAD="$TFH_BUILD/lib/libtfhook.so" "$tfhook" run sh -c 'echo "$LD_PRELOAD"'
prints "^$TFH_BUILD/lib/[$]LIB/libtfhook.so$"
expect 0 env TFHOOK_EXPORTS=0 "$tfhook" run sh -c 'echo "$LD_PRELOAD"'
prints "libtfhook-noexport.so$"

expect 0 env TFHOOK_RANKZ=0 TFHOOK_XYZZYPLUGH=1 "$tfhook" run true
says 'TFHOOK_RANKZ is unknown and has no effect; did you mean TFHOOK_RANKS'
says 'TFHOOK_XYZZYPLUGH is unknown and has no effect; .tfhook env. lists all'

expect 0 "$tfhook" env
prints "^export LD_PRELOAD='$TFH_BUILD/lib/[$]LIB/libtfhook.so'$"
prints '^#   TFHOOK_MAX_SIZE'
expect 0 on_gpu bash -c 'eval "$("$1" env)" && exec "$2" --steps 3 --h2d 1000 --spin 10' bash "$tfhook" "$job"
ls tfhook-*/*.tft >/dev/null || fail 'the printed variables record nothing'
# Where the links for $LIB are missing, or lead elsewhere, the plain path serves.
mkdir -p moved/bin moved/lib/lib64 moved/lib/lib
cp "$tfhook" moved/bin/
cp "$TFH_BUILD"/lib/libtfhook*.so moved/lib/
ln -s ../libtfhook.so ../libtfhook-audit.so moved/lib/lib64/
expect 0 moved/bin/tfhook env
prints "^export LD_PRELOAD='[^$]*moved/lib/libtfhook.so'$"

