#!/usr/bin/env bash
# scripts/bootstrap on machines that lack something: without root it names the exact command and fails; with a sudo
# that asks nothing it installs through apt-get, renewing the package list once, or through dnf; with nothing
# missing it says nothing. --look, which is how `make` asks, never installs anything.
set -u
fail() {
	echo "$*"
	exit 1
}

bin=$TFH_TMP/bin
mkdir "$bin"
for tool in bash sh env true cat tail sed tr sort printf mktemp rm grep gcc g++ make nm flock git python3; do
	path=$(type -P "$tool") && ln -s "$path" "$bin/$tool"
done
printf '#!/bin/sh\necho 1000\n' >"$bin/id"
printf '#!/bin/sh\nexit 0\n' >"$bin/apt-get"
chmod +x "$bin"/{id,apt-get}
run() { PATH=$bin HOME=$TFH_TMP bash "$TFH_SRC/scripts/bootstrap" "$@" 2>&1 </dev/null; }

# nobody to install it
out=$(run) && fail "passed without zstd: $out"
[[ $out == *"missing: zstd"* ]] || fail "does not say what is missing: $out"
[[ $out == *"sudo apt-get "*"install -y --no-install-recommends zstd"* ]] || fail "no command: $out"

# a sudo that wants a password is as good as none
printf '#!/bin/sh\nexit 1\n' >"$bin/sudo"
chmod +x "$bin/sudo"
run >/dev/null && fail "passed though sudo refuses"

# the first try fails because the package list is old
cat >"$bin/sudo" <<'S'
#!/bin/sh
[ "$1" = -n ] || exit 1
shift
exec "$@"
S
cat >"$bin/apt-get" <<S
#!/bin/sh
echo "\$*" >>"$TFH_TMP/calls"
[ "\$1" = update ] && touch "$TFH_TMP/updated" && exit 0
[ -f "$TFH_TMP/updated" ] || exit 100
[ "\$DEBIAN_FRONTEND" = noninteractive ] || exit 100
ln -s "$bin/cat" "$bin/zstd"
S
ln -sf "$(type -P touch)" "$bin/touch"
out=$(run --look) && fail "--look passed without zstd: $out"
[[ $out == *"missing: zstd"*"make deps"* ]] || fail "--look does not name what is missing and the command: $out"
[[ ! -e $TFH_TMP/calls ]] || fail "--look has installed: $(cat "$TFH_TMP/calls")"
ln -sf "$(type -P ln)" "$bin/ln"
out=$(run) || fail "apt-get was not enough: $out"
[[ $(sed 's/^-o [^ ]* //' "$TFH_TMP/calls" | tr '\n' '|') == "install -y --no-install-recommends zstd|update|install -y --no-install-recommends zstd|" ]] ||
	fail "calls: $(cat "$TFH_TMP/calls")"
out=$(run) || fail "second run failed: $out"
[[ -z $out ]] || fail "nothing is missing, yet it says: $out"

# a name that differs between releases: the one that this release has
printf '#!/bin/sh\n[ "$2" = libmimalloc3 ] && echo Package: "$2"\nexit 0\n' >"$bin/apt-cache"
printf '#!/bin/sh\necho "$*" >"%s/named"\n' "$TFH_TMP" >"$bin/apt-get"
chmod +x "$bin"/{apt-cache,apt-get}
run allocators >/dev/null
if ! compgen -G '/usr/lib/*/libmimalloc.so.[23]*' >/dev/null; then
	[[ $(cat "$TFH_TMP/named") == *" libmimalloc3"* && $(cat "$TFH_TMP/named") != *libmimalloc2* ]] ||
		fail "mimalloc: $(cat "$TFH_TMP/named")"
fi
printf '#!/bin/sh\n[ "$2" = chromium-browser ] && echo "  Candidate: 2:1snap1"\n' >"$bin/apt-cache"
out=$(run page)
[[ $? == 3 && $out == *snap* ]] || fail "Chromium as a snap: $out"

# what ends the one that asked does not end what installs
if type -P setsid >/dev/null; then
	ln -sf "$(type -P setsid)" "$bin/setsid"
	ln -sf "$(type -P sleep)" "$bin/sleep"
	rm "$bin/zstd"
	printf '#!/bin/sh\ntouch "%s/begun"\nsleep 1\ntouch "%s/through"\n' "$TFH_TMP" "$TFH_TMP" >"$bin/apt-get"
	PATH=$bin HOME=$TFH_TMP setsid bash "$TFH_SRC/scripts/bootstrap" >/dev/null 2>&1 </dev/null &
	asked=$!
	while [[ ! -e $TFH_TMP/begun ]]; do sleep 0.05; done
	kill -9 -- -$asked
	for _ in {1..100}; do [[ -e $TFH_TMP/through ]] || sleep 0.1; done
	[[ -e $TFH_TMP/through ]] || fail "apt-get was killed with the one that asked"
	ln -s "$bin/cat" "$bin/zstd"
fi

# another distribution
rm "$bin/zstd" "$bin/apt-get"
printf '#!/bin/sh\necho "$*" >"%s/dnf"\n' "$TFH_TMP" >"$bin/dnf"
chmod +x "$bin/dnf"
run >/dev/null || fail "dnf failed"
[[ $(cat "$TFH_TMP/dnf") == "install -y zstd" ]] || fail "dnf: $(cat "$TFH_TMP/dnf")"

# none that is known
rm "$bin/dnf"
out=$(run) && fail "passed without a package manager"
[[ $out == *"your own package manager"* ]] || fail "no advice: $out"
