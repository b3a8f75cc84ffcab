#!/usr/bin/env bash
# --html beside other flags, of a file that exists or cannot be written, of a recording that cannot be read: a clear error, the
# documented exit code, and nothing left behind. A page appears whole or not at all.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

expect 0 on_gpu "$tfhook" run -q -o rec "$job" --steps 20
expect 0 "$tfhook" report --html page.html rec
[[ ! -s .out ]] || fail "it prints"
grep -q '</html>' page.html || fail "no whole page"
before=$(cksum <page.html)
expect 3 "$tfhook" report --html page.html rec
says 'page.html exists; remove it, or name another file'
[[ $(cksum <page.html) == "$before" ]] || fail "a page was overwritten"
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
