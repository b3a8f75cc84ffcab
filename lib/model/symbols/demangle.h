/* Names of C++ functions as the Itanium ABI writes them ("_ZN2at6native4fillIfEEvPT_"), read back.
 *
 * The work is bounded: a short name can stand for one of gigabytes, so that the C++ library's own
 * function takes minutes and all memory for it. What would become longer than the caller's room, or
 * holds what kernels' names do not hold (most expressions), is not read.
 */
#ifndef TFH_MODEL_DEMANGLE_H
#define TFH_MODEL_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* The function's name with its template arguments, without what it takes and returns, as c++filt
 * writes them. False, and `out` untouched, when the name is not read. */
bool tfh_demangle(const char *name, char *out, size_t size);

#endif
