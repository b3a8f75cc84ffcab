/*
 * The stack of a thread that goes on meanwhile, of this process or another one: two walks over copies, one right after the
 * other, and of them the outer frames that are equal in both. What is deeper is cut, and no look is given up for it: those
 * that agree altogether would be of the moments when nothing changes (true shares of 40 % came out as 1 to 8 %). Of the
 * first frame that differs the function is known where that is the same: it is at another instruction.
 */
#ifndef TFH_LOOK_WALKS_H
#define TFH_LOOK_WALKS_H

#include "look/frames.h"

/* Whom to look at. */
struct tfh_py_target {
	const struct tfh_py *py;
	int32_t pid;
	uint64_t interpreter; /* address of its state */
	uint64_t pthread;     /* of the thread, 0: the main one, whose state is the oldest */
	uint64_t state; /* where it was found before, 0: it is searched; then where it was found */
};
/* The frames that were seen, the innermost first, and the copies that their code objects are read from; how many. They
 * stay until the next look. For one thread of the calling process only. */
uint32_t tfh_py_look_frames(struct tfh_py_target *t, const struct tfh_py_frame **frame,
			    struct tfh_py_copies **copies);

/* The threads that run Python, the newest first, `most` at most; returns how many. 0 as well where this version does not
 * tell them. Those of `t` other than py, pid and interpreter are not used. As above, for one thread only. */
struct tfh_py_thread {
	uint64_t state, pthread;
	uint32_t tid;
};
uint32_t tfh_py_threads(const struct tfh_py_target *t, struct tfh_py_thread *out, uint32_t most);

#endif
