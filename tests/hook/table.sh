#!/usr/bin/env bash
# Every driver entry point of the CUDA headers that are at hand is hooked or left alone for a reason, with the vendor's
# parameters and structures.
set -eu
includes=()
for place in "$TFH_BUILD"/cuda-headers/*/include "$TFH_SRC"/build/cuda-headers/*/include "${CUDA_HOME:-/usr/local/cuda}"/include; do
	[[ -f $place/cudaTypedefs.h ]] && includes+=("$place")
done
exec "$TFH_SRC/scripts/check-cuda-table" "${includes[@]}"
