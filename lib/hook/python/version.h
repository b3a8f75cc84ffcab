/*
 * Which Python is in the process (version.c), and the stacks of its threads as places for records
 * (record/stacks/pyplaces.h): py_place.c for the calling thread, there.c for another thread,
 * child.c for a child process. interned.c turns frames into places.
 */
#ifndef TFH_HOOK_PYTHON_VERSION_H
#define TFH_HOOK_PYTHON_VERSION_H

#include "sampling/frames.h"

/* NULL: there is no Python (yet), or none that can be read. Thread-safe. */
const struct tfh_py *tfh_py(void);

/* Looks for Python unless that has been decided. Takes the loader's lock, so only the flusher calls
 * it, from time to time. */
void tfh_py_find(void);

/* Why the Python in the process is not read, as one clause without a full stop; NULL: it is read,
 * or there is none. */
const char *tfh_py_refusal(void);

#endif
