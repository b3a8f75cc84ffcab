#include <string.h>

#include "sampling/dicts.h"
#include "sampling/iterator_types.h"
#include "sampling/iterators.h"

/* Only the outer frames are searched: a program's main loop is among them. */
#define FRAMES_MOST 32u
/* Stack slots of a frame that are searched: loops, context managers, half-evaluated expressions. */
#define SLOTS 8u
/* Nested iterators: enumerate of a zip of a generator over a range. */
#define NESTED 5
#define TAGS 7ull
/* More elements than a loop can have given. */
#define COUNT_MOST (1ull << 48)
#define VAIN_MOST 4u

#define FIELD 16	   /* of the first field after an object's head */
#define TAGGED_INT 3	   /* lowest bits of a number on the stack */
#define MOVES_START 12	   /* from this minor version on, a range's iterator moves its start */
#define FRAME_OF_OBJECT 11 /* up to the one before, frames are objects of their own */
#define STACK_POINTER 14   /* from this one on, frames keep their stack's end as an address */
#define CONTEXT_OBJECT 14  /* from this one on, a context manager follows the function of its end */

static bool loop_of(const struct tfh_loop_reading *r, uint64_t object, int depth,
		    struct tfh_py_loop *out);
static bool loop_of_kind(const struct tfh_loop_reading *r, uint64_t object, enum tfh_py_kind kind,
			 int depth, struct tfh_py_loop *out);

/* `long` start, step, length; before that, up to 3.11, an index, and the start stays. */
static bool range_loop(const struct tfh_loop_reading *r, uint64_t object, struct tfh_py_loop *out)
{
	const uint8_t *p = tfh_py_copied(r->c, object + FIELD, 4 * sizeof(uint64_t));
	bool moves = r->py->minor >= MOVES_START;
	int64_t first, step, length;

	if (!p)
		return false;
	first = (int64_t)tfh_py_word(p);
	step = (int64_t)tfh_py_word(p + (moves ? 8 : 16));
	length = (int64_t)tfh_py_word(p + (moves ? 16 : 24));
	if (!step || length < 0 || first == INT64_MIN)
		return false;
	/* Where a range began is not kept; most begin with 0. */
	out->done = moves ? (uint64_t)(first / step < 0 ? 0 : first / step) : (uint64_t)first;
	out->left = moves ? (uint64_t)length : (uint64_t)length - (uint64_t)first;
	out->sure = !moves;
	return moves || first <= length;
}

static bool index_loop(const struct tfh_loop_reading *r, uint64_t object, enum tfh_py_kind kind,
		       struct tfh_py_loop *out)
{
	uint64_t index, of, size;

	if (!tfh_py_word_at(r, object + FIELD, &index) ||
	    !tfh_py_word_at(r, object + FIELD + 8, &of) || !of)
		return false;
	if (kind == TFH_PY_INDEX || !tfh_py_word_at(r, of + FIELD, &size) || size > COUNT_MOST)
		size = UINT64_MAX;
	if (kind == TFH_PY_COUNTS_DOWN) {
		out->left = index + 1;
		out->done = size - out->left;
		return size != UINT64_MAX && index + 1 <= size;
	}
	out->done = index;
	out->left = size >= index && size != UINT64_MAX ? size - index : TFH_PY_LEFT_UNKNOWN;
	return true;
}

static bool enumerate_loop(const struct tfh_loop_reading *r, uint64_t object, int depth,
			   struct tfh_py_loop *out)
{
	uint64_t inner;

	if (tfh_py_word_at(r, object + FIELD + 8, &inner) && loop_of(r, inner, depth + 1, out))
		return true;
	out->left = TFH_PY_LEFT_UNKNOWN;
	out->sure = false;
	return tfh_py_word_at(r, object + FIELD, &out->done);
}

/* Of several iterators that advance together (zip, map), the first whose count is known. */
static bool first_loop(const struct tfh_loop_reading *r, uint64_t object, int depth,
		       struct tfh_py_loop *out)
{
	uint64_t field, n, tuple, item, before = 0;
	bool found = false;

	/* A zip begins with their number, a map does not. */
	if (!tfh_py_word_at(r, object + FIELD, &field) ||
	    (field < TFH_PY_PAGE && !tfh_py_word_at(r, object + FIELD + 8, &field)))
		return false;
	tuple = field;
	if (!tfh_py_word_at(r, tuple + FIELD, &n) || n > SLOTS)
		return false;
	for (uint64_t i = 0; i < n; i++, before = item) {
		if (!tfh_py_word_at(r, tuple + TFH_PY_TUPLE_ITEMS(r->py->minor) + 8 * i, &item))
			return false;
		/* The same iterator several times, as in zip(*[it] * 8), counts more elements than
		 * iterations. */
		if (item == before)
			return false;
		found = found || loop_of(r, item, depth + 1, out);
	}
	return found;
}

static bool islice_loop(const struct tfh_loop_reading *r, uint64_t object, struct tfh_py_loop *out)
{
	const uint8_t *p = tfh_py_copied(r->c, object + FIELD + 16, 3 * sizeof(uint64_t));
	int64_t stop, step;

	if (!p)
		return false;
	stop = (int64_t)tfh_py_word(p);
	step = (int64_t)tfh_py_word(p + 8);
	out->done = tfh_py_word(p + 16);
	if (step != 1 || out->done > COUNT_MOST)
		return false;
	out->left = stop < 0 || (uint64_t)stop < out->done ? TFH_PY_LEFT_UNKNOWN
							   : (uint64_t)stop - out->done;
	return true;
}

static bool dict_loop(const struct tfh_loop_reading *r, uint64_t object, struct tfh_py_loop *out)
{
	const uint8_t *p = tfh_py_copied(r->c, object + FIELD + 8, 4 * sizeof(uint64_t));
	uint64_t size = p ? tfh_py_word(p) : 0;

	out->left = p ? tfh_py_word(p + 24) : 0;
	out->done = size - out->left;
	return p && out->left <= size;
}

/* The slots of a frame's evaluation stack: their address and number, at most SLOTS. While a frame
 * executes, the end of its stack is only in a register, so slots beyond it, whose references are
 * stale, may be among these. */
static uint64_t slots_of(const struct tfh_loop_reading *r, uint64_t frame, uint32_t *n)
{
	const struct tfh_py_layout *at = &r->py->at;
	const uint8_t *f = tfh_py_copied(r->c, frame, at->frame_locals + sizeof(uint64_t));
	const uint8_t *code;
	uint64_t begin, end = 0;

	*n = SLOTS;
	if (!f)
		return 0;
	if (r->py->minor < FRAME_OF_OBJECT)
		return tfh_py_word(f + at->frame_locals);
	code = tfh_py_copied(r->c, tfh_py_word(f + at->frame_code) & ~TAGS, at->code_bytecode);
	if (!code)
		return 0;
	begin = 8ull * (uint32_t)tfh_py_int(code + at->code_first + sizeof(int32_t));
	if (r->py->minor >= STACK_POINTER && tfh_py_word(f + TFH_PY_FRAME_TOP))
		end = tfh_py_word(f + TFH_PY_FRAME_TOP) - frame - at->frame_locals;
	else if (r->py->minor < STACK_POINTER && tfh_py_int(f + TFH_PY_FRAME_TOP) > 0)
		end = 8ull * (uint32_t)tfh_py_int(f + TFH_PY_FRAME_TOP);
	if (end)
		*n = end < begin	       ? 0
		     : end - begin < 8 * SLOTS ? (uint32_t)(end - begin) / 8
					       : SLOTS;
	return frame + at->frame_locals + begin;
}

/* `index`: what is after the object on the stack; 0: nothing. */
static bool indexed_loop(const struct tfh_loop_reading *r, uint64_t object, enum tfh_py_kind kind,
			 uint64_t index, int depth, struct tfh_py_loop *out)
{
	uint64_t size;

	if ((index & TAGGED_INT) != TAGGED_INT || kind != TFH_PY_SEQUENCE)
		return loop_of_kind(r, object, kind, depth, out);
	index >>= 2;
	if (!tfh_py_word_at(r, object + FIELD, &size) || index > size || size > COUNT_MOST)
		return false;
	*out = (struct tfh_py_loop){.done = index, .sure = true, .left = size - index};
	return true;
}

/* The loops of one frame, outermost first. */
static uint32_t frame_loops(const struct tfh_loop_reading *r, uint64_t frame, int depth,
			    struct tfh_py_loop *out, uint32_t most)
{
	uint32_t slots, n = 0;
	uint64_t begin = slots_of(r, frame, &slots), object, index;

	for (uint32_t i = 0; begin && i < slots && n < most; i++) {
		if (!tfh_py_word_at(r, begin + 8ull * i, &object))
			continue;
		if (i + 1 == slots || !tfh_py_word_at(r, begin + 8ull * (i + 1), &index))
			index = 0;
		object &= ~TAGS;
		n += indexed_loop(r, object, tfh_py_kind_of(r, object), index, depth, &out[n]);
	}
	return n;
}

/* As a rule, a generator yields one element in each iteration of its own innermost loop. */
static bool generator_loop(const struct tfh_loop_reading *r, uint64_t object, int depth,
			   struct tfh_py_loop *out)
{
	struct tfh_py_loop loop[SLOTS];
	uint64_t frame = object + r->py->at.generator_frame;
	uint32_t n;

	if (r->py->minor < FRAME_OF_OBJECT && !tfh_py_word_at(r, frame, &frame))
		return false;
	n = frame ? frame_loops(r, frame, depth + 1, loop, SLOTS) : 0;
	if (!n)
		return false;
	*out = loop[n - 1];
	return true;
}

/* Whether the generator gives an element in each iteration of the loop that it is in. */
static bool gives_each(const struct tfh_loop_reading *r, uint64_t object)
{
	const struct tfh_py_layout *at = &r->py->at;
	struct tfh_py_frame f = {.frame = object + at->generator_frame};
	const uint8_t *p = tfh_py_copied(r->c, f.frame, at->frame_bytes);

	if (!p || !r->types->counters)
		return false;
	f.code = tfh_py_word(p + at->frame_code) & ~TAGS;
	f.at = tfh_py_instruction(at, p, f.code);
	return tfh_py_copied(r->c, f.code, at->code_bytecode) &&
	       tfh_py_yields_at(r->py, r->types->counters, r->c, &f);
}

/* Which of these references is to a generator, from 1 on; 0: none. */
static uint32_t generator_among(const struct tfh_loop_reading *r, const uint64_t *value, uint32_t n)
{
	uint64_t at[TFH_PY_ATTRIBUTES], type[TFH_PY_ATTRIBUTES];

	for (uint32_t i = 0; i < n; i++)
		at[i] = (value[i] & ~TAGS) + TFH_PY_OBJECT_TYPE;
	tfh_py_words(r->c->pid, at, type, n);
	tfh_py_types_learn(r, type, n);
	for (uint32_t i = 0; i < n; i++)
		if (tfh_py_kind_of_type(r, type[i]) == TFH_PY_GENERATOR)
			return i + 1;
	return 0;
}

/* Most iterators of classes written in Python pass on what a generator yields, which they keep as
 * an attribute (Keras' epochs). Which attribute that is, is found out once per class: reading all
 * attributes in each sample would cost more than the rest of it. */
static bool object_loop(const struct tfh_loop_reading *r, uint64_t object, int depth,
			struct tfh_py_loop *out)
{
	uint64_t value[TFH_PY_ATTRIBUTES], type, generator;
	uint32_t n = tfh_py_attributes(r->py, r->c, object, value, TFH_PY_ATTRIBUTES), slot, kept;
	bool free;

	if (!n || !tfh_py_word_at(r, object + TFH_PY_OBJECT_TYPE, &type))
		return false;
	slot = tfh_py_type_slot(r->types, type, &free);
	kept = free ? 0 : r->types->kept[slot];
	if (!kept) {
		kept = generator_among(r, value, n);
		slot = tfh_py_type_slot(r->types, type,
					/* types learned meanwhile may have taken the slot */
					&free);
		if (free)
			return false;
		r->types->kept[slot] = (uint8_t)kept;
		if (!kept && ++r->types->vain[slot] == VAIN_MOST)
			r->types->kind[slot] = TFH_PY_UNKNOWN;
	}
	if (!kept || kept > n)
		return false;
	generator = value[kept - 1] & ~TAGS;
	return tfh_py_kind_of(r, generator) == TFH_PY_GENERATOR && gives_each(r, generator) &&
	       generator_loop(r, generator, depth, out);
}

static bool loop_of_kind(const struct tfh_loop_reading *r, uint64_t object, enum tfh_py_kind kind,
			 int depth, struct tfh_py_loop *out)
{
	if (depth >= NESTED) /* iterators may also refer to each other in a cycle */
		return false;
	out->count = TFH_PY_ITERATOR;
	out->sure = true;
	bool found = kind == TFH_PY_RANGE ? range_loop(r, object, out)
		     : kind == TFH_PY_INDEX_OF || kind == TFH_PY_INDEX || kind == TFH_PY_COUNTS_DOWN
			     ? index_loop(r, object, kind, out)
		     : kind == TFH_PY_ENUMERATE ? enumerate_loop(r, object, depth, out)
		     : kind == TFH_PY_FIRST_OF	? first_loop(r, object, depth, out)
		     : kind == TFH_PY_GENERATOR ? generator_loop(r, object, depth, out)
		     : kind == TFH_PY_ISLICE	? islice_loop(r, object, out)
		     : kind == TFH_PY_OBJECT	? object_loop(r, object, depth, out)
						: kind == TFH_PY_DICT && dict_loop(r, object, out);

	return found && out->done < COUNT_MOST;
}

static bool loop_of(const struct tfh_loop_reading *r, uint64_t object, int depth,
		    struct tfh_py_loop *out)
{
	return loop_of_kind(r, object, tfh_py_kind_of(r, object), depth, out);
}

/* What is on the stacks of the searched frames, the outermost first. */
struct stacked {
	uint32_t n, frame[FRAMES_MOST * SLOTS];
	uint64_t object[FRAMES_MOST * SLOTS], type[FRAMES_MOST * SLOTS]; /* type 0: not known */
	uint64_t behind[FRAMES_MOST * SLOTS];				 /* 0: nothing */
};

/* Fetches all of it at once: a system call for each object would cost more than the walk. */
static void read_stacks(const struct tfh_loop_reading *r, const struct tfh_py_frame *frame,
			uint32_t n, struct stacked *out)
{
	struct tfh_py_piece piece[FRAMES_MOST];
	uint64_t at[FRAMES_MOST * SLOTS];
	uint32_t slots[FRAMES_MOST], frames = n < FRAMES_MOST ? n : FRAMES_MOST;

	for (uint32_t i = 0; i < frames; i++) {
		piece[i].from = slots_of(r, frame[n - 1 - i].frame, &slots[i]);
		piece[i].bytes = 8 * slots[i];
	}
	tfh_py_fetch(r->c, piece, frames);
	out->n = 0;
	for (uint32_t i = 0; i < frames; i++)
		for (uint32_t k = 0; piece[i].from && k < slots[i]; k++) {
			uint64_t object, behind, from = piece[i].from + 8ull * k;

			if (!tfh_py_word_at(r, from, &object) ||
			    (object & TAGGED_INT) == TAGGED_INT ||
			    !tfh_py_may_be_object(object &= ~TAGS))
				continue;
			out->behind[out->n] =
				k + 1 < slots[i] && tfh_py_word_at(r, from + 8, &behind) ? behind
											 : 0;
			at[out->n] = object + TFH_PY_OBJECT_TYPE;
			out->object[out->n] = object;
			out->frame[out->n++] = n - 1 - i;
		}
	tfh_py_words(r->c->pid, at, out->type, out->n);
	tfh_py_types_learn(r, out->type, out->n);
}

/* The loop that an object on a stack stands for. */
static bool stacked_loop(const struct tfh_loop_reading *r, const struct stacked *on, uint32_t i,
			 struct tfh_py_loop *out)
{
	return indexed_loop(r, on->object[i], tfh_py_kind_of_type(r, on->type[i]), on->behind[i], 0,
			    out);
}

/* The iterator of the frame's next `for` loop, of those from *at to `end` on the stacks: the first
 * that does not belong to a context manager. */
static bool next_loop(const struct tfh_loop_reading *r, const struct stacked *on, uint32_t *at,
		      uint32_t end, struct tfh_py_loop *out)
{
	for (; *at < end; ++*at) {
		enum tfh_py_kind kind = tfh_py_kind_of_type(r, on->type[*at]);

		if (kind == TFH_PY_CALLABLE)
			*at += r->py->minor >= CONTEXT_OBJECT && on->behind[*at];
		else if (kind != TFH_PY_NO_ITERATOR)
			return stacked_loop(r, on, (*at)++, out);
	}
	return false;
}

/* If a range's iterator does not show where it began, the function's code may. */
static void begin_at(const struct tfh_py_code_loop *l, struct tfh_py_loop *out)
{
	if (!l->of_range || out->sure || l->from < 0 || (int64_t)out->done < l->from)
		return;
	out->done -= (uint64_t)(int64_t)l->from;
	out->sure = true;
}

/* Adds the loops of a frame, outermost first: those with an iterator on the stack, and others by
 * the program's counters. Returns their number. *cut: one of them changed meanwhile, and was left
 * out with all loops inside it. Iterators beyond those of the function's loops belong to calls in
 * progress, such as list(map(f, x)): what C code takes from them is no loop of the program. */
static uint32_t add_loops(const struct tfh_loop_reading *r, const struct tfh_py_frame *frame,
			  const struct stacked *on, uint32_t at, uint32_t end,
			  struct tfh_py_loop *out, uint32_t most, bool *cut)
{
	struct tfh_py_counters *k = r->types->counters;
	uint16_t loop[TFH_PY_CODE_LOOPS];
	int of = k ? tfh_py_loops_at(r->py, k, r->c, frame, loop) : -1;
	uint32_t n = 0;

	for (int i = 0; i < of && n < most; i++) {
		struct tfh_py_counted l;

		if (k->loop[loop[i]].is_for && next_loop(r, on, &at, end, &out[n])) {
			begin_at(&k->loop[loop[i]], &out[n++]);
			continue;
		}
		*cut = !tfh_py_counted(r->py, k, r->c, frame, loop[i], &l);
		if (*cut)
			return n;
		if (l.known && l.done < COUNT_MOST)
			out[n++] = (struct tfh_py_loop){.done = l.done,
							.left = l.left,
							.sure = l.count == TFH_PY_COUNTER ||
								l.count == TFH_PY_COUNTER_ON,
							.count = l.count};
	}
	for (; of < 0 && at < end && n < most; at++)
		n += stacked_loop(r, on, at, &out[n]);
	return n;
}

uint32_t tfh_py_loops(const struct tfh_py *py, struct tfh_py_types *types, struct tfh_py_copies *c,
		      const struct tfh_py_frame *frame, uint32_t n, struct tfh_py_loop *out,
		      uint32_t most)
{
	struct tfh_loop_reading r = {py, types, c};
	struct stacked on;
	uint32_t found = 0, at = 0, end = 0;
	bool cut = false;

	if (!n)
		return 0;
	read_stacks(&r, frame, n, &on);
	for (uint32_t i = n; i-- > 0 && n - i <= FRAMES_MOST && found < most && !cut; at = end) {
		uint32_t of;

		while (end < on.n && on.frame[end] == i)
			end++;
		of = add_loops(&r, &frame[i], &on, at, end, out + found, most - found, &cut);
		for (uint32_t k = 0; k < of; k++)
			out[found++].frame = i;
	}
	return found;
}
