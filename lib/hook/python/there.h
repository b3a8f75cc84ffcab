/* The stacks of other threads of the process (there.c), and of its children (child.c). */
#ifndef TFH_HOOK_PYTHON_THERE_H
#define TFH_HOOK_PYTHON_THERE_H

#include "sampling/walks.h"
#include "record/process/recorder.h"
#include "record/stacks/pyplaces.h"

/* Notes the address of the calling thread's state. Costs two loads if it is already known. */
void tfh_py_note_state(uint32_t tid, uint64_t state);
/* The place of a sampled thread's frames (sampling/walks.h), and its loops, if
 * `seen` wants them; 0: unknown. This function and those below are called on the flusher. */
uint32_t tfh_py_sample(struct tfh_py_target *t, struct tfh_place_seen *seen);
/* The place of another thread (pthread: its pthread_self()); 0: unknown. */
uint32_t tfh_py_there(uint32_t tid, uint64_t pthread, struct tfh_place_seen *seen);
/* The place of another thread that runs Python, drawn by `random` from those whose *tid is not in
 * `but`. 0: there is none, or it is unknown. */
uint32_t tfh_py_other(uint64_t random, const uint32_t *but, uint32_t n_but,
		      struct tfh_place_other *out);
/* The place of a child's main thread. */
uint32_t tfh_py_child(struct tfh_place_child *c);

#endif
