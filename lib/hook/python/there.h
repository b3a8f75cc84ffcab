/* The stacks of other threads of the process (there.c). */
#ifndef TFH_HOOK_PYTHON_THERE_H
#define TFH_HOOK_PYTHON_THERE_H

#include "hook/python/frames.h"
#include "record/internal.h"

/* The calling thread's state lies there. Costs two loads where that is known. */
void tfh_py_note_state(uint32_t tid, uint64_t state);
/* Place of another thread (pthread: its pthread_self()), 0: it is not known. On the flusher. */
uint32_t tfh_py_there(uint32_t tid, uint64_t pthread);

#endif
