#!/usr/bin/env bash
# What must hold: a build on top of an older one is as good as one from nothing: a header that was saved while something
# was being compiled, or a list of headers that got lost, has its objects made anew, and nothing else is.
set -u
command -v make >/dev/null || exit 77
mkdir "$TFH_TMP/tree"
cd "$TFH_TMP/tree" || exit 1
cp -r "$TFH_SRC/Makefile" "$TFH_SRC/scripts" "$TFH_SRC/include" .
mkdir -p lib/audit && cp -r "$TFH_SRC/lib/base" "$TFH_SRC/lib/glibc" lib && echo >lib/audit/audit.c
# A compiler that takes so long that somebody saves a header that it has read.
cat >cc <<'CC'
#!/bin/sh
case "$*" in *arena.c) [ -e saved ] || { touch saved; sleep 0.02; touch lib/base/arena.h; } ;; esac
exec gcc "$@"
CC
chmod +x cc
build() { # what it compiled
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u SAN make O=b CC="$PWD/cc" b/lib/libtfh_core.a >out 2>&1 || { cat out; exit 1; }
	sed -n "s,^ *CC  *lib/base/,,p" out | sort | tr '\n' ' '
}
expect() { # WHAT OBJECTS
	[[ $made == "$2" ]] && return
	echo "$1: made '$made', expected '$2'"
	exit 1
}

made=$(build)
[[ $made == *arena.c*vocabulary.c* ]] || { echo "nothing was made: $made"; cat out; exit 1; }
made=$(build)
[[ $made == *arena.c* && $made != *vocabulary.c* ]] || expect "a header saved meanwhile" "arena.c and its kin"
made=$(build)
expect "nothing new" ""
rm b/obj/core/base/hash.d b/obj/core/base/redact.d 2>/dev/null
made=$(build)
expect "a lost list of headers" "redact.c "
