/* Demangles C++ names of the Itanium ABI ("_ZN2at6native4fillIfEEvPT_").
 *
 * The work is bounded: a short name can expand to gigabytes, for which the C++ library's function
 * takes minutes and all memory. Names that would exceed the caller's buffer, or contain what kernel
 * names do not (most expressions), are rejected. */
#ifndef TFH_MODEL_SYMBOLS_DEMANGLE_H
#define TFH_MODEL_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* The function's name with its template arguments, without parameters and result, as c++filt prints
 * it. False, with `out` unchanged, if the name is rejected. */
bool tfh_demangle(const char *name, char *out, size_t size);

#endif
