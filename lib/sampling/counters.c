/*
 * A counter is read together with the frame's current instruction, which shows whether the running
 * iteration is already counted. The variable is read again after the value: its int object lives
 * only until the variable gets another value, and the memory may then hold another int.
 */
#include "sampling/counters.h"

#include <string.h>

#include "sampling/dicts.h"
#include "sampling/iterators.h"
#include "sampling/lines.h"

#define TAGS 7ull
#define TRIES 2
#define PROBES 4u

/* Code objects. Up to 3.10 the bytecode is an object of its own. */
#define LOCATED 11	       /* from this version on, it is the end of the code object */
#define ARGUMENTS_BEFORE_10 24 /* bytes from the argument counts to the first line */
#define ARGUMENTS_BEFORE 16    /* the same from 3.11 on */
#define ARGUMENTS_BYTES 12
#define VARIABLE_ARGUMENTS 2
#define CODE_BYTES_10 48
#define CODE_UNITS 16
#define CODE_CONSTANTS_10 56
#define CODE_CONSTANTS 24
#define CODE_NAMES_10 64
#define CODE_NAMES 32

/* Frames: their dicts of globals and, in modules, of names. */
#define FRAME_GLOBALS_10 48
#define FRAME_NAMES_10 56
#define FRAME_GLOBALS_11 8
#define FRAME_NAMES_11 24
#define FRAME_GLOBALS 24
#define FRAME_NAMES 40
#define CODE_LOCALS_10 28
#define FRAME_FAST_9 360 /* up to 3.9 */
#define FRAME_FAST_10 352
#define FRAME_BYTES_MOST 128u

#define CELL_VALUE 16
#define INT_HEAD 16 /* its sign and number of digits; encoded differently from 3.12 on */
#define INT_DIGITS 24
#define INT_BITS 30
#define INT_COMPACT 12

struct counter_reading {
	const struct tfh_py *py;
	struct tfh_py_copies *c;
	const struct tfh_py_frame *frame;
	uint64_t constants, names; /* tuples' items */
	uint32_t n_constants, n_names;
	struct tfh_py_code code;
};

static bool word_of(struct tfh_py_copies *c, uint64_t from, uint64_t *to)
{
	const uint8_t *p = tfh_py_copied(c, from, sizeof(*to));

	if (p)
		*to = tfh_py_word(p);
	return p;
}

static bool fresh(const struct counter_reading *r, uint64_t from, void *to, size_t bytes)
{
	return tfh_py_fresh(r->c->pid, from, to, bytes);
}

/* The items of a tuple that the code object refers to. */
static bool tuple_of(const struct counter_reading *r, uint32_t offset, uint64_t *items, uint32_t *n)
{
	uint64_t tuple, size;

	if (!word_of(r->c, r->frame->code + offset, &tuple) ||
	    !word_of(r->c, tuple + TFH_PY_TUPLE_SIZE, &size) || size > INT32_MAX)
		return false;
	*items = tuple + TFH_PY_TUPLE_ITEMS(r->py->minor);
	*n = (uint32_t)size;
	return true;
}

/* ---- ints ---- */

/* Whether the object's type has this name. */
static bool is_a(const struct counter_reading *r, uint64_t type, const char *name)
{
	uint64_t at;
	const uint8_t *p = word_of(r->c, type + TFH_PY_TYPE_NAME, &at)
				   ? tfh_py_copied(r->c, at, (uint32_t)strlen(name) + 1)
				   : NULL;

	return p && !strcmp((const char *)p, name);
}

/* Bytes of an int with up to two digits. */
#define INT_BYTES 32u

static bool int_of(const struct counter_reading *r, const uint8_t object[INT_BYTES], int64_t *value)
{
	uint64_t head = tfh_py_word(object + INT_HEAD), digits, low, high;
	bool compact = r->py->minor >= INT_COMPACT,
	     negative = compact ? (head & 3) == 2 : (int64_t)head < 0;

	if (!is_a(r, tfh_py_word(object + TFH_PY_OBJECT_TYPE), "int"))
		return false;
	digits = compact ? head >> 3 : negative ? -head : head;
	if (digits > 2)
		return false;
	low = (uint32_t)tfh_py_int(object + INT_DIGITS);
	high = digits == 2 ? (uint32_t)tfh_py_int(object + INT_DIGITS + sizeof(int32_t)) : 0;
	*value = digits ? (int64_t)(low | high << INT_BITS) : 0;
	*value = negative ? -*value : *value;
	return true;
}

static bool constant(void *arg, uint32_t index, int32_t *value)
{
	const struct counter_reading *r = arg;
	const uint8_t *p;
	uint64_t object;
	int64_t v;

	if (index >= r->n_constants || !word_of(r->c, r->constants + 8ull * index, &object))
		return false;
	p = tfh_py_copied(r->c, object, INT_BYTES);
	if (!p || !int_of(r, p, &v) || v < INT32_MIN || v > INT32_MAX)
		return false;
	*value = (int32_t)v;
	return true;
}

/* ---- what loops a function has ---- */

static int32_t line(void *arg, uint32_t unit)
{
	const struct counter_reading *r = arg;

	return tfh_py_line_at(r->py, &r->code, (int32_t)(2 * unit));
}

static int32_t callee(void *arg, uint32_t unit)
{
	const struct counter_reading *r = arg;
	int32_t at =
		r->py->at.lines == TFH_PY_LOCATIONS
			? tfh_py_callee_at(r->code.table, r->code.table_bytes, (int32_t)(2 * unit))
			: -1;

	return at < 0 ? at : at / 2;
}

static bool is_range(void *arg, uint32_t name)
{
	static const char range[] = "range";
	const struct counter_reading *r = arg;
	struct tfh_py_text text;
	uint64_t object;

	return name < r->n_names && word_of(r->c, r->names + 8ull * name, &object) &&
	       tfh_py_text_at(r->py, object, tfh_py_copied, r->c, &text) && text.width == 1 &&
	       text.length == sizeof(range) - 1 && !memcmp(text.data, range, sizeof(range) - 1);
}

/* The bytecode's address and number of units. */
static bool bytecode_of(const struct counter_reading *r, uint64_t *at, uint64_t *units)
{
	uint64_t code = r->frame->code;

	*at = code + r->py->at.code_bytecode;
	if (r->py->minor >= LOCATED)
		return word_of(r->c, code + CODE_UNITS, units);
	if (!word_of(r->c, code + CODE_BYTES_10, at) ||
	    !word_of(r->c, *at + TFH_PY_BYTES_SIZE, units))
		return false;
	*at += TFH_PY_BYTES_DATA;
	*units /= 2;
	return true;
}

/* Most tuples are no longer; of longer ones, the rest is fetched when it is needed. */
#define TUPLE_GUESS 160u

/* Copies with one system call what the function's loops are found in. */
static void fetch_parts(const struct counter_reading *r, uint64_t bytecode, uint32_t units)
{
	bool located = r->py->minor >= LOCATED;
	uint64_t code = r->frame->code, constants = 0, names = 0;

	word_of(r->c, code + (located ? CODE_CONSTANTS : CODE_CONSTANTS_10), &constants);
	word_of(r->c, code + (located ? CODE_NAMES : CODE_NAMES_10), &names);
	tfh_py_fetch(r->c,
		     (struct tfh_py_piece[]){
			     {constants, TUPLE_GUESS}, {names, TUPLE_GUESS}, {bytecode, 2 * units}},
		     3);
}

static int find(struct counter_reading *r, struct tfh_py_code_loop loop[TFH_PY_CODE_LOOPS])
{
	bool located = r->py->minor >= LOCATED;
	uint64_t code = r->frame->code, at, units;
	struct tfh_py_function f = {.minor = r->py->minor,
				    .constant = constant,
				    .line = line,
				    .callee = callee,
				    .is_range = is_range,
				    .arg = r};
	uint32_t before = located ? ARGUMENTS_BEFORE : ARGUMENTS_BEFORE_10;
	const uint8_t *p;

	if (!bytecode_of(r, &at, &units) || units > TFH_PY_UNITS_MOST)
		return -1;
	f.units = (uint32_t)units;
	fetch_parts(r, at, f.units);
	p = tfh_py_copied(r->c, code + r->py->at.code_first - before, ARGUMENTS_BYTES);
	if (p)
		f.arguments =
			(uint32_t)tfh_py_int(p) + (uint32_t)tfh_py_int(p + 8) + VARIABLE_ARGUMENTS;
	if (!p || !tfh_py_code(r->py, code, tfh_py_copied, r->c, &r->code) ||
	    !tuple_of(r, located ? CODE_CONSTANTS : CODE_CONSTANTS_10, &r->constants,
		      &r->n_constants) ||
	    !tuple_of(r, located ? CODE_NAMES : CODE_NAMES_10, &r->names, &r->n_names))
		return -1;
	f.unit = tfh_py_copied(r->c, at, 2 * f.units);
	return f.unit ? tfh_py_code_loops(&f, loop) : -1;
}

/* The loops of the frame's function, found once. Returns the number of the first one; *n -1: they
 * are not known. */
static uint32_t loops_of(struct counter_reading *r, struct tfh_py_counters *k, int *n)
{
	struct tfh_py_frame head = {.code = r->frame->code};
	uint64_t mark = tfh_py_copied_mark(r->py, &head, r->c, 0);
	uint32_t slot = (uint32_t)(mark >> 32) % TFH_PY_COUNTED_CODES, free = slot, found;
	struct tfh_py_code_loop loop[TFH_PY_CODE_LOOPS];

	*n = -1;
	if (!mark)
		return 0;
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t at = (slot + i) % TFH_PY_COUNTED_CODES;

		if (k->code[at].mark == mark) {
			*n = k->code[at].n;
			return k->code[at].first;
		}
		if (!k->code[at].mark)
			free = at;
	}
	*n = find(r, loop);
	found = *n > 0 ? (uint32_t)*n : 0;
	if (k->n + found > TFH_PY_COUNTED_LOOPS)
		memset(k, 0, sizeof(*k)); /* many functions: they are looked at again */
	k->code[free].mark = mark;
	k->code[free].first = k->n;
	k->code[free].n = (int16_t)*n;
	memcpy(k->loop + k->n, loop, found * sizeof(*loop));
	memset(k->entry + k->n, 0, found * sizeof(*k->entry));
	k->n = (uint16_t)(k->n + found);
	return k->code[free].first;
}

/* ---- values ---- */

/* The address of a str among the code's names; 0: there is none. */
static uint64_t name_of(struct counter_reading *r, int32_t index)
{
	uint64_t name;

	return index >= 0 &&
			       tuple_of(r, r->py->minor < LOCATED ? CODE_NAMES_10 : CODE_NAMES,
					&r->names, &r->n_names) &&
			       (uint32_t)index < r->n_names &&
			       word_of(r->c, r->names + 8ull * (uint32_t)index, &name)
		       ? name
		       : 0;
}

/* The address of the reference to the value of a variable that is no attribute; 0: there is
 * none. */
static uint64_t plain_place(struct counter_reading *r, const uint8_t *f, enum tfh_py_where where,
			    int32_t index, uint32_t *hint)
{
	unsigned minor = r->py->minor;
	uint64_t fast = r->frame->frame + (minor >= LOCATED ? r->py->at.frame_locals
					   : minor == 10    ? FRAME_FAST_10
							    : FRAME_FAST_9);
	uint32_t names, globals;
	uint64_t name, cell;

	if (index < 0)
		return 0;
	if (where == TFH_PY_FAST)
		return fast + 8ull * (uint32_t)index;
	if (where == TFH_PY_CELL) {
		/* Up to 3.10, cells follow the locals. */
		if (minor < LOCATED) {
			const uint8_t *p = tfh_py_copied(r->c, r->frame->code + CODE_LOCALS_10, 4);

			fast += p ? 8ull * (uint32_t)tfh_py_int(p) : 0;
		}
		return fresh(r, fast + 8ull * (uint32_t)index, &cell, sizeof(cell))
			       ? (cell & ~TAGS) + CELL_VALUE
			       : 0;
	}
	name = name_of(r, index);
	globals = minor < LOCATED ? FRAME_GLOBALS_10
		  : minor == 11	  ? FRAME_GLOBALS_11
				  : FRAME_GLOBALS;
	names = minor < LOCATED ? FRAME_NAMES_10 : minor == 11 ? FRAME_NAMES_11 : FRAME_NAMES;
	return name ? tfh_py_item(r->py, r->c->pid,
				  tfh_py_word(f + (where == TFH_PY_NAME ? names : globals)) & ~TAGS,
				  name, hint)
		    : 0;
}

/* hint: of the variable, and of the attribute. */
static uint64_t place_of(struct counter_reading *r, const uint8_t *f, struct tfh_py_var v,
			 uint32_t hint[2])
{
	uint64_t place, object, name;

	if (v.where != TFH_PY_ATTR)
		return plain_place(r, f, (enum tfh_py_where)v.where, v.index, &hint[0]);
	place = plain_place(r, f, (enum tfh_py_where)v.of, v.of_index, &hint[0]);
	name = name_of(r, v.index);
	return place && name && fresh(r, place, &object, sizeof(object))
		       ? tfh_py_attribute(r->py, r->c, object & ~TAGS, name, &hint[1])
		       : 0;
}

/* Where in a loop a frame is, relative to the store of the counter. */
enum progress { OUTSIDE, BEFORE_STORE, STORING, BEHIND_STORE };

static enum progress progress_in(const struct tfh_py_code_loop *l, int32_t at)
{
	int32_t unit = at / 2;

	if (at < 0 || unit < l->lo || unit >= l->hi)
		return OUTSIDE;
	return unit < l->store ? BEFORE_STORE : unit > l->store ? BEHIND_STORE : STORING;
}

/* The same for the frame as it is now, which is copied to `frame`. */
static enum progress progress_now(const struct counter_reading *r, const struct tfh_py_code_loop *l,
				  uint8_t frame[FRAME_BYTES_MOST])
{
	const struct tfh_py_layout *at = &r->py->at;

	if (at->frame_bytes > FRAME_BYTES_MOST ||
	    !fresh(r, r->frame->frame, frame, at->frame_bytes) ||
	    (tfh_py_word(frame + at->frame_code) & ~TAGS) != r->frame->code)
		return OUTSIDE;
	return progress_in(l, tfh_py_instruction(at, frame, r->frame->code));
}

/* The value of a variable; 0: it is no int; -1: it changed meanwhile. */
static int value_of(struct counter_reading *r, const uint8_t *frame, struct tfh_py_var v,
		    uint32_t hint[2], int64_t *value)
{
	uint8_t object[INT_BYTES];
	uint64_t place, before, after;

	*value = v.index;
	if (v.where == TFH_PY_CONST)
		return 1;
	place = v.where ? place_of(r, frame, v, hint) : 0;
	if (!place || !fresh(r, place, &before, sizeof(before)))
		return 0;
	before &= ~TAGS;
	if (!fresh(r, before, object, sizeof(object)) || !int_of(r, object, value))
		return 0;
	/* An object may be gone meanwhile, or have its attributes elsewhere. */
	if (v.where == TFH_PY_ATTR && place_of(r, frame, v, hint) != place)
		return -1;
	return fresh(r, place, &after, sizeof(after)) && (after & ~TAGS) == before ? 1 : -1;
}

static enum tfh_py_count count_of(const struct tfh_py_code_loop *l)
{
	if (l->has_start)
		return l->goes_on ? TFH_PY_COUNTER_ON : TFH_PY_COUNTER;
	return l->goes_on ? TFH_PY_COUNTER_ON_FROM : TFH_PY_COUNTER_FROM;
}

/* `value`, `end`: of the counter, less its start. `runs`: the running iteration is not counted yet.
 * At the end there is none: only the condition is evaluated once more. */
static struct tfh_py_counted counted(const struct tfh_py_code_loop *l, int64_t value, int64_t end,
				     bool runs)
{
	struct tfh_py_counted out = {.known = value >= 0,
				     .count = count_of(l),
				     .done = (uint64_t)value + (runs && value != end),
				     .left = TFH_PY_LEFT_UNKNOWN};

	if (end >= value)
		out.left = (uint64_t)end - out.done;
	return out;
}

int tfh_py_loops_at(const struct tfh_py *py, struct tfh_py_counters *k, struct tfh_py_copies *c,
		    const struct tfh_py_frame *frame, uint16_t loop[TFH_PY_CODE_LOOPS])
{
	struct counter_reading r = {.py = py, .c = c, .frame = frame};
	int of, n = 0;
	uint32_t first = loops_of(&r, k, &of);

	for (int i = 0; i < of; i++)
		if (progress_in(&k->loop[first + (uint32_t)i], frame->at) != OUTSIDE)
			loop[n++] = (uint16_t)(first + (uint32_t)i);
	return of < 0 ? of : n;
}

bool tfh_py_yields_at(const struct tfh_py *py, struct tfh_py_counters *k, struct tfh_py_copies *c,
		      const struct tfh_py_frame *frame)
{
	uint16_t loop[TFH_PY_CODE_LOOPS];
	int n = tfh_py_loops_at(py, k, c, frame, loop);

	return n > 0 && k->loop[loop[n - 1]].yields;
}

bool tfh_py_counted(const struct tfh_py *py, struct tfh_py_counters *k, struct tfh_py_copies *c,
		    const struct tfh_py_frame *frame, uint16_t loop, struct tfh_py_counted *out)
{
	struct counter_reading r = {.py = py, .c = c, .frame = frame};
	const struct tfh_py_code_loop *l = &k->loop[loop];
	int64_t start = l->has_start ? l->start : 0, value, end;
	uint8_t now[FRAME_BYTES_MOST];
	int got = l->counter.where ? -1 : 0, ends = 0;

	*out = (struct tfh_py_counted){.known = false};
	for (int try = 0; try < TRIES && got < 0; try++) {
		enum progress p = progress_now(&r, l, now);

		/* At the store itself, it is unknown whether the counter has been increased. */
		if (p == OUTSIDE || p == STORING)
			continue;
		got = value_of(&r, now, l->counter, k->entry[loop][0], &value);
		ends = got > 0 ? value_of(&r, now, l->end, k->entry[loop][1], &end) : 0;
		if (progress_now(&r, l, now) != p || ends < 0)
			got = -1;
		if (got > 0)
			*out = counted(l, value - start, ends ? end + l->end_more - start : -1,
				       p == BEFORE_STORE);
	}
	return got >= 0;
}
