#!/usr/bin/env bash
# What must hold: where libunwind cannot be patched, as on a machine without git, it is not built at all, rather than without the patch (such a
# recorder's backtraces crashed the job), and one line says what takes its place.
set -eu
bin=$TFH_TMP/bin
mkdir "$bin"
ln -s /usr/bin/* "$bin/" 2>/dev/null || true
rm -f "$bin"/git*
cd "$TFH_TMP"
PATH=$bin "$TFH_SRC/scripts/libunwind" "$TFH_TMP/libunwind" 2>said
[[ $(cat libunwind/libunwind.mk) == "LIBUNWIND :=" && ! -e libunwind/libunwind.o ]]
grep -q '^libunwind: libunwind-.* could not be .*; libgcc will unwind' said
