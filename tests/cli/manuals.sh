#!/usr/bin/env bash
# Every command has a manual page, and there are tfhook(7) and tft(5): groff and mandoc read them without a warning, and what they show
# has every flag of the help. `make install` puts them where man looks; uninstall takes them away again.
set -u
fail() { echo "FAILED: $*"; exit 1; }
tfhook=$TFH_BUILD/bin/tfhook man=$TFH_BUILD/man
"$TFH_SRC/scripts/bootstrap" manuals || { echo 'no groff or mandoc'; exit 77; }

for page in "$man"/*; do
	found=$(mandoc -Tlint -Wstyle "$page") || fail "$page: $found"
	found=$(groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null)
	[[ -z $found ]] || fail "$page: $found"
done
commands=$("$tfhook" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -v '^tfhook$')
[[ $(wc -w <<<"$commands") -ge 15 ]] || fail "commands: $commands"
for command in $commands; do
	page=$(mandoc -Tascii "$man/tfhook-$command.1" | sed 's/.\x08//g')
	flags=$("$tfhook" help "$command" | grep -oE '^  (-[a-z], |    )--[a-z-]+' | grep -oE -- '--[a-z-]+')
	for flag in $flags; do
		grep -q -- "$flag" <<<"$page" || fail "tfhook-$command(1) does not tell of $flag"
	done
done
overview=$(mandoc -Tascii "$man/tfhook.7" | sed 's/.\x08//g')
for word in $commands TFHOOK_MAX_SIZE TFHOOK_CUPTI; do
	grep -q -- "$word" <<<"$overview" || fail "tfhook(7) does not tell of $word"
done

# Under another name of the build folder make would link everything again, below the other tests.
[[ $TFH_BUILD == "$TFH_SRC/build" ]] || exit 0
(cd "$TFH_SRC" && make -s install PREFIX=/usr DESTDIR="$TFH_TMP/root" >"$TFH_TMP/log" 2>&1) || fail "$(cat "$TFH_TMP/log")"
for page in man1/tfhook-report.1 man7/tfhook.7 man5/tft.5; do
	[[ -s $TFH_TMP/root/usr/share/man/$page ]] || fail "$page is not installed"
done
man -M "$TFH_TMP/root/usr/share/man" tfhook-report 2>&1 | tr -s '[:space:]' ' ' | grep -q 'where each' || fail 'man does not find tfhook-report(1)'
(cd "$TFH_SRC" && make -s uninstall PREFIX=/usr DESTDIR="$TFH_TMP/root" >"$TFH_TMP/log" 2>&1) || fail "$(cat "$TFH_TMP/log")"
left=$(find "$TFH_TMP/root" -name '*tfhook*' -o -name 'tft*')
[[ -z $left ]] || fail "left behind: $left"
