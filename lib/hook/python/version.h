/*
 * Which Python is in the process (version.c), and the stacks of its threads as places for records (record/stacks/pyplaces.h):
 * py_place.c the calling thread's, there.c another thread's, child.c that of a child process; interned.c: how.
 */
#ifndef TFH_HOOK_PYTHON_VERSION_H
#define TFH_HOOK_PYTHON_VERSION_H

#include "look/frames.h"

/* NULL: no Python (yet), or none that can be read. Any thread. */
const struct tfh_py *tfh_py(void);

/* Looks for it where that has not been decided; takes the loader's lock: the flusher's, from time to time. */
void tfh_py_look(void);

/* Why the Python that is there is not read, one clause without a full stop; NULL: it is read, or there is none. */
const char *tfh_py_refusal(void);

#endif
