#!/usr/bin/env bash
# docs/report.md has every class and every cause of the vocabulary.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

for name in $(sed -nE 's/^(CLASS|CAUSE)\([A-Z0-9_]+, *"([^"]+)".*/\2/p' "$TFH_SRC/lib/base/vocabulary.def"); do
	grep -q -- "\`$name\`" "$TFH_SRC/docs/report.md" || fail "docs/report.md lacks $name"
done
