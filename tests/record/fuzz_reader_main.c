/* The fuzzer's input function over the files given: a regression test without clang. */
#define TFH_FUZZ_MAIN
#include "../fuzz/fuzz_reader.c"
