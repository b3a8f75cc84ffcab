/* The stacks of other threads of the process (there.c), and of its children (child.c). */
#ifndef TFH_HOOK_PYTHON_THERE_H
#define TFH_HOOK_PYTHON_THERE_H

#include "look/walks.h"
#include "record/process/recorder.h"
#include "record/stacks/pyplaces.h"

/* The calling thread's state lies there. Costs two loads where that is known. */
void tfh_py_note_state(uint32_t tid, uint64_t state);
/* The frames of a look (look/walks.h) as a place, 0: it is not known. On the flusher, as what follows. */
uint32_t tfh_py_look_at(struct tfh_py_target *t);
/* Place of another thread (pthread: its pthread_self()), 0: it is not known. On the flusher. */
uint32_t tfh_py_there(uint32_t tid, uint64_t pthread);
/* Place of another thread that runs Python, drawn by `random` among those whose *tid is not in `but`. 0: there is none, or it is
 * not known. On the flusher. */
uint32_t tfh_py_other(uint64_t random, const uint32_t *but, uint32_t n_but,
		      struct tfh_place_other *out);
/* Of a child's main thread. On the flusher. */
uint32_t tfh_py_child(struct tfh_place_child *c);

#endif
