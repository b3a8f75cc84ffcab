#!/usr/bin/env bash
# Records of CUPTI 11, 12 and 13 are read where the headers at hand have their fields (layouts/records.c).
set -eu
n=0
for place in "$TFH_BUILD"/cuda-headers/*/include "$TFH_SRC"/build/cuda-headers/*/include "${CUDA_HOME:-/usr/local/cuda}"/include; do
	[[ -f $place/cupti_activity.h && -f $place/cuda.h ]] || continue
	n=$((n + 1))
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -I"$TFH_SRC/lib" -I"$TFH_SRC/include" -isystem "$place" -o "$TFH_TMP/records$n" \
		"$TFH_SRC/tests/hook/layouts/records.c"
	"$TFH_TMP/records$n"
done
((n)) || exit 77
