/* The stacks of other threads of the process (there.c), and of its children (child.c). */
#ifndef TFH_HOOK_PYTHON_THERE_H
#define TFH_HOOK_PYTHON_THERE_H

#include "hook/python/frames.h"
#include "record/internal.h"
#include "record/pyplaces.h"

/* The calling thread's state lies there. Costs two loads where that is known. */
void tfh_py_note_state(uint32_t tid, uint64_t state);
/* Whom to look at. */
struct tfh_py_target {
	const struct tfh_py *py;
	int32_t pid;
	uint64_t interpreter; /* address of its state */
	uint64_t pthread;     /* of the thread, 0: the main one, whose state is the oldest */
	uint64_t state; /* where it was found before, 0: it is searched; then where it was found */
};
/* The frames that were seen, the innermost first, and the copies that their code objects are read from; how many. They
 * stay until the next look. On the flusher, as what follows. */
uint32_t tfh_py_look_frames(struct tfh_py_target *t, const struct tfh_py_frame **frame,
			    struct tfh_py_copies **copies);
/* The same as a place, 0: it is not known. */
uint32_t tfh_py_look_at(struct tfh_py_target *t);
/* Place of another thread (pthread: its pthread_self()), 0: it is not known. On the flusher. */
uint32_t tfh_py_there(uint32_t tid, uint64_t pthread);
/* Of a child's main thread. On the flusher. */
uint32_t tfh_py_child(struct tfh_place_child *c);

#endif
