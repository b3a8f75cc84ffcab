#!/bin/sh
# A reader written from FORMAT.md alone agrees with ours record by record, on a file with records of every sort and on the
# golden file of version 1.0; the stock zstd tool finds both files whole.
set -e
python=${TFH_PY:-$(command -v python3)} || exit 77
dump=$TFH_BUILD/tests/record/tft_dump
"$dump" --make "$TFH_TMP/a.tft"
for file in "$TFH_TMP/a.tft" "$TFH_SRC/tests/golden/format-1.0.tft"; do
	"$dump" "$file" >"$TFH_TMP/ours"
	"$python" "$TFH_SRC/tests/record/tft_reader.py" "$file" >"$TFH_TMP/theirs"
	cmp "$TFH_TMP/ours" "$TFH_TMP/theirs"
	test "$(wc -l <"$TFH_TMP/ours")" -gt 60
	if command -v zstd >/dev/null; then
		zstd -tq "$file"
		test "$(zstd -dcq "$file" | wc -c)" -gt 1000
	fi
done
