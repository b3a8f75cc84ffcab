/*
 * Short kernel names. C++ kernels have names of up to a few thousand characters, mostly parameter
 * types; what identifies them is the function and, in its template arguments, the functor or
 * operation.
 */
#ifndef TFH_MODEL_SYMBOLS_KERNEL_NAME_H
#define TFH_MODEL_SYMBOLS_KERNEL_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define TFH_KERNEL_NAME 160 /* size of a short name, including '\0' */

/* The name in at most `width` (at least 16, less than TFH_KERNEL_NAME) bytes: without result and
 * parameters, then with shorter template arguments, then cut in the middle. Names of other
 * languages stay as they are if they fit. Mangled names are demangled (model/symbols/demangle.h).
 * Returns `out`. */
const char *tfh_kernel_short(char out[TFH_KERNEL_NAME], const char *name, size_t width);

/* The same for the n names of a table: where different names would become equal, each also shows
 * the template arguments that differ, or a number. */
void tfh_kernel_shorts(char (*out)[TFH_KERNEL_NAME], const char *const *names, size_t n,
		       size_t width);

/* Whether a kernel of this name waits for other devices: it belongs to a library of collectives, or
 * is named after a collective. */
bool tfh_kernel_communicates(const char *name);

#endif
