/* The macros of the hooks' entry points for the target processor. */
#if defined(__x86_64__)
#include "hook/x86_64.inc"
#elif defined(__aarch64__)
#include "hook/aarch64.inc"
#endif
