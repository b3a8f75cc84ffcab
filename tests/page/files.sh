#!/usr/bin/env bash
# --html beside other flags, of a file that exists or cannot be written, of a recording that cannot be read: a clear error, the
# documented exit code, and nothing left behind. A page appears whole or not at all.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

expect 0 on_gpu "$tfhook" run -q -o rec "$job" --steps 20
expect 0 "$tfhook" report --html page.html rec
[[ ! -s .out ]] || fail "it prints"
grep -q '</html>' page.html || fail "no whole page"
# A page takes the place of an earlier one, in a file of its own, and of nothing else.
before=$(stat -c %i page.html)
ln page.html kept.html
expect 0 "$tfhook" report --html page.html rec
[[ $(stat -c %i page.html) != "$before" && $(stat -c %i kept.html) == "$before" ]] || fail "it wrote into the earlier page"
for other in '<!DOCTYPE html>' 'my notes' ''; do
	printf '%s' "$other" >other.html
	expect 3 "$tfhook" report --html other.html rec
	says 'other.html exists and is not a tfhook page; remove it, or name another file'
	[[ $(<other.html) == "$other" ]] || fail "another file was overwritten"
done
rm other.html
ln -s page.html link.html
expect 3 "$tfhook" report --html link.html rec
mkfifo pipe.html
expect 3 "$tfhook" report --html pipe.html rec
says 'exists'
rm -r link.html pipe.html
ln -s /nowhere/at/all dangling.html
expect 3 "$tfhook" report --html dangling.html rec
says 'exists'
expect 3 "$tfhook" report --html no/such/page.html rec
says 'cannot write no/such/page.html: No such file'
expect 3 "$tfhook" report --html "$(printf 'x%.0s' {1..300}).html" rec
says 'File name too long'
expect 2 "$tfhook" report --html '' rec
says '--html needs the name of a file'
for flag in --json --csv --all --steps --step=1 --kernels --wide --folded; do
	expect 2 "$tfhook" report --html other.html $flag rec
	says 'exclude each other'
done
expect 3 "$tfhook" report --html other.html nothing-here
printf 'no trace' >junk.tft
expect 3 "$tfhook" report --html other.html junk.tft
mkdir full
if mount -t tmpfs -o size=8k none full 2>/dev/null; then
	expect 3 "$tfhook" report --html full/page.html rec
	says 'cannot write full/page.html: No space left'
	[[ -z $(ls full) ]] || fail "left behind: $(ls full)"
	umount full
fi
[[ ! -e other.html ]] || fail "a page of nothing"
[[ -z $(find . -name '*.part') ]] || fail "left behind: $(find . -name '*.part')"
