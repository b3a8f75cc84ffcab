#include "sampling/bytecode.h"

#include <string.h>

#include "base/map.h"
#include "sampling/units.h"

#define HEADS 256u /* loops, and conditions that are jumped back to */
#define NOWHERE (NONE - 1)
#define RANGES 12 /* from this version on, a range's iterator does not show where it began */

static struct tfh_units *bytecode; /* of the one thread that samples */

/* ---- a loop ---- */

/* Where a loop's iterations begin. In 3.10 to 3.13, the condition of a `while` loop is compiled
 * twice: before the body, where `continue` jumps to, and at the end of the body, from where the
 * next iteration begins at the body. */
struct head {
	uint16_t body, condition; /* condition: NONE if it is the same */
};

static bool is_head(const struct head *h, uint16_t i)
{
	return i != NONE && (i == h->body || i == h->condition);
}

/* Marks the loop's instructions: those that can reach a jump back to the head without beginning
 * another iteration. */
static void find_body(struct tfh_units *b, const struct head *h)
{
	bool changed = true;

	memset(b->in, 0, b->n * sizeof(*b->in));
	for (uint32_t i = 0; i < b->n; i++)
		b->in[i] = tfh_units_is_instruction(b, i) && is_head(h, b->target[i]) &&
			   b->target[i] <= i;
	while (changed) {
		changed = false;
		for (uint32_t i = b->n; i-- > 0;) {
			uint16_t to[2];

			if (b->in[i] || !tfh_units_is_instruction(b, i) || is_head(h, (uint16_t)i))
				continue;
			tfh_units_followers(b, i, to);
			for (int k = 0; k < 2; k++)
				b->in[i] |= to[k] != NONE && !is_head(h, to[k]) && b->in[to[k]];
			changed |= b->in[i];
		}
	}
	b->in[h->body] = true;
	for (uint32_t i = h->condition; i < h->body; i++)
		b->in[i] = tfh_units_is_instruction(b, i);
}

/* Whether a path through the loop leads from behind `from` to `to` (NONE: to the next iteration)
 * without passing `avoid` or beginning another iteration. */
static bool leads(struct tfh_units *b, const struct head *h, uint16_t from, uint16_t to,
		  uint16_t avoid)
{
	uint32_t n = 0;

	memset(b->seen, 0, b->n * sizeof(*b->seen));
	b->todo[n++] = from;
	while (n) {
		uint16_t next[2];

		tfh_units_followers(b, b->todo[--n], next);
		for (int k = 0; k < 2; k++) {
			uint16_t i = next[k];

			if (i == NONE || i == avoid || b->seen[i])
				continue;
			if (i == to || (to == NONE && is_head(h, i)))
				return true;
			if (is_head(h, i) || !b->in[i])
				continue;
			b->seen[i] = true;
			b->todo[n++] = i;
		}
	}
	return false;
}

/* Unmarks what no path through the loop reaches, such as exception handlers, which may be far
 * behind the loop. */
static void leave_handlers(struct tfh_units *b, const struct head *h)
{
	leads(b, h, h->body, NOWHERE, NONE);
	for (uint32_t i = 0; i < b->n; i++)
		b->in[i] &= b->seen[i] || i == h->body || (i >= h->condition && i < h->body);
}

/* Whether each iteration passes the store exactly once, and nothing else in the loop stores the
 * variable. */
static bool counts_loop(struct tfh_units *b, const struct head *h, uint16_t store, uint32_t lo,
			uint32_t hi)
{
	struct tfh_py_var v = tfh_units_variable(b, store);

	if (!b->in[store] || leads(b, h, h->body, NONE, store) || leads(b, h, store, store, NONE))
		return false;
	for (uint32_t i = lo; i < hi; i++)
		if (i != store && tfh_units_is_instruction(b, i) && tfh_units_stores(b, i, v))
			return false;
	return true;
}

/* Marks the instructions from which the loop can be entered without another store of the variable
 * in between. */
static void find_entries(struct tfh_units *b, const struct head *h, struct tfh_py_var v)
{
	bool changed = true;

	memset(b->seen, 0, b->n * sizeof(*b->seen));
	while (changed) {
		changed = false;
		for (uint32_t i = b->n; i-- > 0;) {
			uint16_t to[2];

			if (b->seen[i] || !tfh_units_is_instruction(b, i))
				continue;
			tfh_units_followers(b, i, to);
			for (int k = 0; k < 2; k++)
				b->seen[i] |= to[k] != NONE &&
					      ((is_head(h, to[k]) && !b->in[i]) ||
					       (b->seen[to[k]] && !tfh_units_stores(b, to[k], v)));
			changed |= b->seen[i];
		}
	}
}

/* Finds the value of the counter when the loop begins. */
static void find_start(struct tfh_units *b, const struct head *h, struct tfh_py_code_loop *l)
{
	uint32_t first = 0, found = 0;
	bool other = false;

	find_entries(b, h, l->counter);
	l->goes_on = b->seen[l->store];
	for (uint32_t i = 0; i < b->n; i++) {
		struct tfh_py_var v;

		if (!b->seen[i] || i == l->store || !tfh_units_is_instruction(b, i) ||
		    !tfh_units_stores(b, i, l->counter))
			continue;
		v = tfh_units_stored(b, (uint16_t)i, l->counter);
		other |= v.where != TFH_PY_CONST || (found && v.index != l->start);
		l->start = v.where == TFH_PY_CONST ? v.index : 0;
		found++;
	}
	while (first + 1 < b->n && !tfh_units_is_instruction(b, first))
		first++;
	/* The variable may have been set before this function ran. */
	if ((b->seen[first] || is_head(h, (uint16_t)first)) &&
	    (l->counter.where == TFH_PY_GLOBAL || l->counter.where >= TFH_PY_CELL ||
	     (l->counter.where == TFH_PY_FAST && (uint32_t)l->counter.index < b->f->arguments))) {
		other = true;
		l->goes_on |= l->counter.where != TFH_PY_FAST;
	}
	l->has_start = found && !other;
}

enum order { LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL };

#define COMPARE_SHIFT_12 4
#define COMPARE_SHIFT_13 5

static const uint8_t not [] = {GREATER_EQUAL, GREATER, NOT_EQUAL, EQUAL, LESS_EQUAL, LESS};
static const uint8_t swapped[] = {GREATER, GREATER_EQUAL, EQUAL, NOT_EQUAL, LESS, LESS_EQUAL};

/* What the instruction compares; false: it is no comparison of two variables. */
static bool compared(const struct tfh_units *b, uint16_t i, struct tfh_py_var v[2], uint32_t *order)
{
	uint16_t second = tfh_units_only_before(b, i),
		 first = tfh_units_only_before(b, tfh_units_begin(b, second));

	if (i == NONE || b->op[i] != TFH_PY_OP_COMPARE || second == NONE)
		return false;
	*order = b->arg[i] >> (b->f->minor < 12	   ? 0
			       : b->f->minor == 12 ? COMPARE_SHIFT_12
						   : COMPARE_SHIFT_13);
	if (*order > GREATER_EQUAL)
		return false;
	v[0] = tfh_units_variable(b, first);
	v[1] = tfh_units_variable(b, second);
	if (b->op[second] == TFH_PY_OP_LOAD_2) {
		v[0] = (struct tfh_py_var){.where = TFH_PY_FAST,
					   .index = (int32_t)(b->arg[second] >> 4)};
		v[1] = (struct tfh_py_var){.where = TFH_PY_FAST,
					   .index = (int32_t)(b->arg[second] & 15)};
	} else if (first != NONE && b->op[first] == TFH_PY_OP_STORE_LOAD) {
		v[0] = (struct tfh_py_var){.where = TFH_PY_FAST,
					   .index = (int32_t)(b->arg[first] & 15)};
	}
	return v[0].where && v[1].where;
}

static bool stays(const struct tfh_units *b, uint16_t i)
{
	return i != NONE && b->in[i];
}

/* Finds the loop's end, if this instruction stays in the loop only while the counter is below an
 * end. */
static bool find_end_at(const struct tfh_units *b, uint16_t i, struct tfh_py_code_loop *l)
{
	uint8_t op = b->op[i];
	bool on_true = op == TFH_PY_OP_TRUE || op == TFH_PY_OP_TRUE_BACK || op == TFH_PY_OP_TRUE_TO;
	bool on_false =
		op == TFH_PY_OP_FALSE || op == TFH_PY_OP_FALSE_BACK || op == TFH_PY_OP_FALSE_TO;
	bool jumping = stays(b, b->target[i]), falling = stays(b, b->after[i]);
	struct tfh_py_var v[2];
	uint32_t order;

	if ((!on_true && !on_false) || jumping == falling ||
	    !compared(b, tfh_units_only_before(b, i), v, &order))
		return false;
	if (on_true != jumping)
		order = not [order];
	if (tfh_units_same(v[1], l->counter)) {
		struct tfh_py_var first = v[0];

		v[0] = v[1];
		v[1] = first;
		order = swapped[order];
	}
	if (!tfh_units_same(v[0], l->counter) ||
	    (order != LESS && order != LESS_EQUAL && order != NOT_EQUAL))
		return false;
	for (uint32_t k = l->lo; k < l->hi; k++)
		if (tfh_units_is_instruction(b, k) && tfh_units_stores(b, k, v[1]))
			return false;
	l->end = v[1];
	l->end_more = order == LESS_EQUAL;
	return true;
}

static void find_end(const struct tfh_units *b, struct tfh_py_code_loop *l)
{
	for (uint32_t i = l->lo; i < l->hi; i++)
		if (tfh_units_is_instruction(b, i) && b->in[i] && find_end_at(b, (uint16_t)i, l))
			return;
}

/* Which of two counters of a loop to use. An attribute is worse, since other functions may store
 * it, too. Better is one that the loop's end depends on, and one that is not reset when the loop is
 * entered again: it also counts the iterations that no sample has seen. */
static bool is_better(const struct tfh_py_code_loop *a, const struct tfh_py_code_loop *than)
{
	int x = 8 * (a->counter.where != TFH_PY_ATTR) + 4 * (a->end.where != 0) + 2 * a->goes_on +
		a->has_start;
	int y = 8 * (than->counter.where != TFH_PY_ATTR) + 4 * (than->end.where != 0) +
		2 * than->goes_on + than->has_start;

	return !than->counter.where || x > y;
}

/* Whether a generator yields exactly one element in each iteration of the loop. */
static bool yields_once(struct tfh_units *b, const struct head *h, uint32_t lo, uint32_t hi)
{
	uint16_t at = NONE;

	for (uint32_t i = lo; i < hi; i++) {
		if (!b->in[i] || b->op[i] != TFH_PY_OP_YIELD)
			continue;
		if (at != NONE)
			return false;
		at = (uint16_t)i;
	}
	return at != NONE && !leads(b, h, h->body, NONE, at) && !leads(b, h, at, at, NONE);
}

static struct tfh_py_code_loop look_at(struct tfh_units *b, const struct head *h)
{
	struct tfh_py_code_loop out = {.lo = h->condition != NONE ? h->condition : h->body,
				       .is_for = b->op[h->body] == TFH_PY_OP_FOR};

	find_body(b, h);
	leave_handlers(b, h);
	for (uint32_t i = 0; i < b->n; i++)
		if (b->in[i])
			out.hi = (uint16_t)(i + 1);
	out.yields = yields_once(b, h, out.lo, out.hi);
	if (out.is_for && b->f->minor >= RANGES)
		out.of_range = tfh_units_range(b, h->body, &out.from);
	for (uint32_t i = 0; i < b->stores; i++) {
		struct tfh_py_code_loop l = out;

		l.has_start = l.goes_on = false;
		l.end.where = TFH_PY_NOWHERE;
		l.store = b->store[i];
		l.counter = tfh_units_variable(b, l.store);
		if (l.store < l.lo || l.store >= l.hi || !counts_loop(b, h, l.store, l.lo, l.hi))
			continue;
		find_start(b, h, &l);
		find_end(b, &l);
		if (is_better(&l, &out))
			out = l;
	}
	return out;
}

/* ---- all loops ---- */

/* Whether there may be a condition before the body, which may be jumped over. */
static bool follows_condition(const struct tfh_units *b, uint16_t body, uint16_t before)
{
	if (b->op[before] == TFH_PY_OP_BACK && b->before[before] != NONE &&
	    b->target[b->before[before]] == body)
		before = b->before[before];
	return b->op[before] >= TFH_PY_OP_BRANCH;
}

/* The condition to which `continue` jumps, if it is at the line of a jump back to the body, and
 * before the body is a jump to the end, or nothing else than that condition (True). */
static uint16_t condition_of(const struct tfh_units *b, uint16_t body)
{
	uint16_t before = b->before[body];
	bool follows = before != NONE && follows_condition(b, body, before);

	for (uint32_t i = body; i < b->n && before != NONE; i++) {
		int32_t line;

		if (!tfh_units_is_instruction(b, i) || b->target[i] != body)
			continue;
		line = b->f->line(b->f->arg, i);
		for (uint32_t k = body; k < b->n; k++)
			if (tfh_units_is_instruction(b, k) && b->target[k] < body &&
			    (follows || b->target[k] == before) &&
			    b->op[b->target[k]] != TFH_PY_OP_FOR &&
			    b->f->line(b->f->arg, b->target[k]) == line)
				return b->target[k];
	}
	return NONE;
}

static uint32_t find_heads(struct tfh_units *b, struct head head[HEADS])
{
	uint32_t n = 0, kept = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t k = 0;

		if (!tfh_units_is_instruction(b, i) || b->target[i] == NONE || b->target[i] > i)
			continue;
		while (k < n && head[k].body != b->target[i])
			k++;
		if (k == n && n < HEADS)
			head[n++] = (struct head){b->target[i], NONE};
	}
	for (uint32_t i = 0; i < n; i++)
		if (b->op[head[i].body] != TFH_PY_OP_FOR)
			head[i].condition = condition_of(b, head[i].body);
	/* A head that is another loop's condition is no loop of its own. */
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;

		while (k < n && head[k].condition != head[i].body)
			k++;
		if (k == n)
			head[kept++] = head[i];
	}
	return kept;
}

/* Whether loop a is to be before b: it begins before it, or is around it. */
static bool is_before(const struct tfh_py_code_loop *a, const struct tfh_py_code_loop *b)
{
	return a->lo != b->lo ? a->lo < b->lo : a->hi > b->hi;
}

static int find_loops(struct tfh_units *b, struct tfh_py_code_loop loop[TFH_PY_CODE_LOOPS])
{
	struct head head[HEADS];
	uint32_t heads = find_heads(b, head);
	int n = 0;

	for (uint32_t i = 0; i < heads; i++) {
		struct tfh_py_code_loop l = look_at(b, &head[i]);
		int at = n;

		if (!l.is_for && !l.counter.where)
			continue;
		if (n == TFH_PY_CODE_LOOPS)
			return -1;
		for (; at && is_before(&l, &loop[at - 1]); at--)
			loop[at] = loop[at - 1];
		loop[at] = l;
		n++;
	}
	return n;
}

int tfh_py_code_loops(const struct tfh_py_function *f,
		      struct tfh_py_code_loop loop[TFH_PY_CODE_LOOPS])
{
	struct tfh_units *b;

	if (f->units > UNITS || !tfh_map_once(&bytecode, sizeof(*bytecode)))
		return -1;
	b = bytecode;
	b->f = f;
	b->n = f->units;
	if (!tfh_units_read(b))
		return -1;
	b->stores = 0;
	for (uint32_t i = 0; i < b->n && b->stores < COUNTERS; i++)
		if (tfh_units_is_instruction(b, i) && tfh_units_counts(b, (uint16_t)i))
			b->store[b->stores++] = (uint16_t)i;
	return find_loops(b, loop);
}
