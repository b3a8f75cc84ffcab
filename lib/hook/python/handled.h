/* Which exception the calling thread handles. */
#ifndef TFH_HOOK_PYTHON_HANDLED_H
#define TFH_HOOK_PYTHON_HANDLED_H

#include <stdint.h>

struct tfh_self;

/* Address of the StopIteration that the calling thread handles: it is in an except clause for it,
 * or in the __exit__() of a with statement that it leaves. 0: none, or unknown, as in every thread
 * but the main one. Needs no lock and no GIL. */
uint64_t tfh_py_stop_iteration(const struct tfh_self *self);

#endif
