/*
 * The interpreter of another process, found without its help: from the program or a libpython3 that
 * the process has loaded, the symbols that this file exports, and the interpreter's memory that
 * they refer to. The process must be a child, or we must have the right to trace it.
 */
#ifndef TFH_SAMPLING_OUTSIDE_H
#define TFH_SAMPLING_OUTSIDE_H

#include "sampling/frames.h"

struct tfh_py_outside {
	struct tfh_py py; /* without functions; `runtime` is an address in that process */
	uint64_t interpreter;
	uint64_t runtime_bytes; /* size of _PyRuntime, in which the GIL is */
};

/* Returns 0; -ENOENT: it runs no Python, or none has started; -ENOTSUP: its Python cannot be read,
 * and *why says why in one clause; or the kernel's error: -EPERM, -EACCES, -ESRCH. Takes up to a
 * millisecond. */
int tfh_py_find_outside(int32_t pid, struct tfh_py_outside *out, const char **why);

#endif
