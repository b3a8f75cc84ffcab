/*
 * The interpreter of another process, found without its help: the program or a libpython3 that it has loaded, the names
 * that this file exports, and from there the interpreter's own memory. Only a child's, or with the right to trace it.
 */
#ifndef TFH_LOOK_OUTSIDE_H
#define TFH_LOOK_OUTSIDE_H

#include "look/frames.h"

struct tfh_py_outside {
	struct tfh_py py; /* without functions */
	uint64_t interpreter;
};

/* 0; -ENOENT: it runs no Python, or none has begun; -ENOTSUP: one that cannot be read, *why says why, one clause; or what
 * the kernel answers: -EPERM, -EACCES, -ESRCH. Takes up to a millisecond. */
int tfh_py_find_outside(int32_t pid, struct tfh_py_outside *out, const char **why);

#endif
