/* Where the calling process may run and allocate its memory. */
#ifndef TFH_BASE_BOUND_H
#define TFH_BASE_BOUND_H

#include <stddef.h>

/* CPUs, memory nodes and the calling thread's memory policy, separated by tabs: "0-3\t0\tbind:0".
 * Unknown values are "?". */
void tfh_bound_here(char *out, size_t size);

#endif
