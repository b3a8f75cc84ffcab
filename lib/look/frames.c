#include "look/frames.h"

extern inline const uint8_t *tfh_py_straight(void *how, uint64_t from, uint32_t bytes);

/* Frames that the interpreter enters itself by, and what is no frame of Python's code, are passed over; so many at
 * most, should they form a ring. */
#define STEPS_MOST 20000u

/* The lowest bits of a reference are tags from 3.14 on; no object's address has them. */
#define TAGS 7ull

#define SHIM_FIRST 12

static inline __attribute__((always_inline)) int32_t
instruction(const struct tfh_py_layout *at, const uint8_t *frame, uint64_t code)
{
	if (at->instr == TFH_PY_POINTER)
		return (int32_t)(tfh_py_word(frame + at->frame_instr) - (code + at->code_bytecode));
	/* of a copy that is no frame any more: any number */
	uint32_t n = (uint32_t)tfh_py_int(frame + at->frame_instr);
	return (int32_t)(at->instr == TFH_PY_UNITS ? 2 * n : n);
}

/*
 * Is this frame, behind which there is none, where the thread began? Else the thread left a frame while it was followed.
 * From 3.12 on a thread begins with a frame that the interpreter enters itself by; a generator's that has just stopped has
 * none behind it, either. Up to 3.10 frames that nobody uses, and has a reference to, form a list by the same field.
 */
static inline bool begins(const struct tfh_py *py, const uint8_t *frame)
{
	if (py->at.frame_owner < 0)
		return tfh_py_word(frame) != 0;
	return py->minor < SHIM_FIRST || frame[py->at.frame_owner] >= py->at.owner_shim;
}

static inline __attribute__((always_inline)) uint32_t walk(const struct tfh_py *py, uint64_t state,
							   tfh_py_view view, void *how,
							   struct tfh_py_frame *out, uint32_t most)
{
	const struct tfh_py_layout *at = &py->at;
	const uint8_t *p = view(how, state + at->state_frame, sizeof(uint64_t));
	uint64_t frame = p ? tfh_py_word(p) : 0;
	uint32_t n = 0;

	if (frame && at->cframe_frame >= 0) {
		p = view(how, frame + (uint64_t)at->cframe_frame, sizeof(uint64_t));
		frame = p ? tfh_py_word(p) : 0;
	}
	for (uint32_t steps = 0; frame && n < most && steps < STEPS_MOST; steps++) {
		const uint8_t *f = view(how, frame, at->frame_bytes);
		uint64_t object;

		if (!f)
			return 0;
		frame = tfh_py_word(f + at->frame_back);
		if (!frame && view != tfh_py_straight && !begins(py, f))
			return 0;
		if (at->frame_owner >= 0 && f[at->frame_owner] >= at->owner_shim)
			continue;
		object = tfh_py_word(f + at->frame_code) & ~TAGS;
		/* Straight, it costs nothing to see that this is a code object. Of copies they come later, all at once. */
		if (view == tfh_py_straight &&
		    (!object ||
		     tfh_py_word((const uint8_t *)object + TFH_PY_OBJECT_TYPE) != py->code_type))
			continue;
		out[n++] = (struct tfh_py_frame){object, instruction(at, f, object)};
	}
	return n;
}

uint32_t tfh_py_frames(const struct tfh_py *py, uint64_t state, tfh_py_view view, void *how,
		       struct tfh_py_frame *frame, uint32_t most)
{
	/* Each its own copy of the loop: straight loads cost a tenth of calls through a pointer. */
	return view == tfh_py_straight ? walk(py, state, tfh_py_straight, NULL, frame, most)
				       : walk(py, state, view, how, frame, most);
}
