#include "sampling/frames.h"

extern inline const uint8_t *tfh_py_straight(void *how, uint64_t from, uint32_t bytes);

/* Most steps of one walk. The interpreter's own entries and frames without Python code are passed
 * over, and damaged data may link frames into a cycle. */
#define STEPS_MOST 20000u

/* From 3.14 on, the lowest bits of a reference are tags; they are 0 in every object's address. */
#define TAGS 7ull

#define SHIM_FIRST 12
#define DATA_STACK_FIRST 11
#define OWNED_BY_GENERATOR 1
#define GENERATOR_BEFORE 8 /* bytes before the instruction: the frame's generator; NULL: none */
#define OWNERS 5

/* Frames of one walk that turn out to have been left. If there are more, the walk starts again. */
#define LEFT_MOST 8

/*
 * Whether this frame, which has no caller, is the thread's first. Otherwise the thread left a frame
 * while it was being followed. From 3.12 on, a thread begins with an entry frame of the
 * interpreter. A generator that has just stopped has no caller either. Up to 3.10, unused frames,
 * which nothing refers to, are linked into a list by the same field.
 */
static bool begins(const struct tfh_py *py, const uint8_t *frame)
{
	const struct tfh_py_layout *at = &py->at;

	if (at->frame_owner < 0)
		return tfh_py_word(frame) &&
		       !tfh_py_word(frame + at->frame_instr - GENERATOR_BEFORE);
	return py->minor < SHIM_FIRST ? frame[at->frame_owner] != OWNED_BY_GENERATOR
				      : frame[at->frame_owner] >= at->owner_shim;
}

/* Bytecode of one function; the longest is that of modules with large tables. */
#define BYTECODE_MOST (1 << 20)

/* Whether this copy can be a frame: its owner is a valid one, and its instruction is in its
 * code. */
static bool may_be_frame(const struct tfh_py *py, const uint8_t *f)
{
	const struct tfh_py_layout *at = &py->at;
	uint64_t code = tfh_py_word(f + at->frame_code) & ~TAGS;
	int32_t i = tfh_py_instruction(at, f, code);

	if (tfh_py_word(f + at->frame_back) % 8)
		return false;
	if (at->frame_owner >= 0 && f[at->frame_owner] >= at->owner_shim)
		return f[at->frame_owner] < OWNERS;
	return code >= TFH_PY_PAGE && i >= -2 && i < BYTECODE_MOST;
}

/*
 * The thread left the frame at this address and uses the memory for something else. From 3.11 on, a
 * thread's frames follow each other in a stack of the thread's own, and everything below this
 * address was in use when the address was read. So the nearest frame below has the same callers, or
 * those that replaced them since. 0: there is none in this page or the one before.
 */
static uint64_t nearest_below(const struct tfh_py *py, uint64_t frame, tfh_py_view view, void *how)
{
	uint64_t from = (frame & ~(TFH_PY_PAGE - 1)) - TFH_PY_PAGE, into = frame - from;
	const uint8_t *f = py->minor < DATA_STACK_FIRST ? NULL : view(how, from, (uint32_t)into);

	for (into -= py->at.frame_bytes; f && into < frame - from; into -= 8)
		if (f[into + (uint64_t)py->at.frame_owner] < py->at.owner_shim &&
		    may_be_frame(py, f + into))
			return from + into;
	return 0;
}

static inline uint64_t innermost(const struct tfh_py *py, uint64_t state, tfh_py_view view,
				 void *how)
{
	const uint8_t *p = view(how, state + py->at.state_frame, sizeof(uint64_t));

	if (p && py->at.cframe_frame >= 0 && tfh_py_word(p))
		p = view(how, tfh_py_word(p) + (uint64_t)py->at.cframe_frame, sizeof(uint64_t));
	return p ? tfh_py_word(p) : 0;
}

static uint32_t walk_straight(const struct tfh_py *py, uint64_t state, struct tfh_py_frame *out,
			      uint32_t most)
{
	const struct tfh_py_layout *at = &py->at;
	uint64_t frame = innermost(py, state, tfh_py_straight, NULL);
	uint32_t n = 0;

	for (uint32_t steps = 0; frame && n < most && steps < STEPS_MOST; steps++) {
		const uint8_t *f = tfh_py_straight(NULL, frame, at->frame_bytes);
		uint64_t code;

		if (!f)
			return 0;
		frame = tfh_py_word(f + at->frame_back);
		if (at->frame_owner >= 0 && f[at->frame_owner] >= at->owner_shim)
			continue;
		code = tfh_py_word(f + at->frame_code) & ~TAGS;
		/* Checking for a code object costs nothing here. In a walk over copies, the code
		 * objects come later, all at once. */
		if (!code ||
		    tfh_py_word((const uint8_t *)code + TFH_PY_OBJECT_TYPE) != py->code_type)
			continue;
		out[n++] =
			(struct tfh_py_frame){code, tfh_py_instruction(at, f, code), (uintptr_t)f};
	}
	return n;
}

/* When the thread has left a frame meanwhile, the frames collected so far are dropped with it. */
static uint32_t walk_copies(const struct tfh_py *py, uint64_t state, tfh_py_view view, void *how,
			    struct tfh_py_frame *out, uint32_t most)
{
	const struct tfh_py_layout *at = &py->at;
	uint64_t frame = innermost(py, state, view, how), above = frame;
	uint32_t n = 0, left = 0;

	for (uint32_t steps = 0; frame && n < most && steps < STEPS_MOST; steps++) {
		const uint8_t *f = view(how, frame, at->frame_bytes);
		uint64_t code;

		if (!f || !may_be_frame(py, f)) {
			n = 0;
			frame = left++ < LEFT_MOST ? nearest_below(py, above, view, how) : 0;
			above = frame;
			continue;
		}
		above = frame;
		frame = tfh_py_word(f + at->frame_back);
		if (!frame && !begins(py, f))
			return 0;
		if (at->frame_owner >= 0 && f[at->frame_owner] >= at->owner_shim)
			continue;
		code = tfh_py_word(f + at->frame_code) & ~TAGS;
		out[n++] = (struct tfh_py_frame){code, tfh_py_instruction(at, f, code), above};
	}
	return n;
}

uint32_t tfh_py_frames(const struct tfh_py *py, uint64_t state, tfh_py_view view, void *how,
		       struct tfh_py_frame *frame, uint32_t most)
{
	return view == tfh_py_straight ? walk_straight(py, state, frame, most)
				       : walk_copies(py, state, view, how, frame, most);
}
