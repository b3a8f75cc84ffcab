#!/bin/sh
# What the fuzzer found once, and its seeds, do no harm.
set -e
"$TFH_BUILD/tests/record/fuzz_reader_main" "$TFH_SRC"/tests/fuzz/seeds/fuzz_reader/*
