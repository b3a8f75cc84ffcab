/*
 * The stack of a thread that keeps running meanwhile, in this process or another one. Two walks
 * over copies are made, one right after the other, and the outer frames that are equal in both are
 * kept. Deeper frames are cut, but no sample is dropped for that: samples whose walks agree
 * completely would come only from moments when nothing changes (true shares of 40 % came out as 1
 * to 8 %). If the first frame that differs has the same function in both walks, the function is
 * known, and only its instruction differs.
 */
#ifndef TFH_SAMPLING_WALKS_H
#define TFH_SAMPLING_WALKS_H

#include "sampling/frames.h"

/* The thread to be sampled. */
struct tfh_py_target {
	const struct tfh_py *py;
	int32_t pid;
	uint64_t interpreter; /* address of its interpreter's state */
	uint64_t pthread;     /* of the thread; 0: the main thread, which has the oldest state */
	/* In: where the state was found before, 0: search for it; out: where it was found. */
	uint64_t state;
	/* Out: whether it held the GIL. */
	enum tft_gil gil;
};
/* Samples the thread. Returns the number of frames, the frames, innermost first, and the copies,
 * which have yet to fetch their code objects. These stay valid until the next sample. To be used by
 * one thread of the calling process only. */
uint32_t tfh_py_sample_frames(struct tfh_py_target *t, const struct tfh_py_frame **frame,
			      struct tfh_py_copies **copies);

/* The threads that run Python, newest first, at most `most`. Returns their number; 0 also if this
 * version does not show them. Of `t`, only py, pid and interpreter are used. To be used by one
 * thread only, as above. */
struct tfh_py_thread {
	uint64_t state, pthread;
	uint32_t tid;
};
uint32_t tfh_py_threads(const struct tfh_py_target *t, struct tfh_py_thread *out, uint32_t most);

#endif
