/* The entries of hooks, in assembly, for the processor that is compiled for. */
#if defined(__x86_64__)
#include "hook/x86_64.inc"
#elif defined(__aarch64__)
#include "hook/aarch64.inc"
#endif
