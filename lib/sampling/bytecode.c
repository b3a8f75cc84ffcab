#include "sampling/bytecode.h"

#include <string.h>

#include "base/map.h"
#include "sampling/opcodes.h"

#define UNITS TFH_PY_UNITS_MOST
#define HEADS 256u     /* loops, and places that jump back to their conditions */
#define COUNTERS 64u   /* increments of variables */
#define RELATIVE_10 10 /* up to the version before, jumps count bytes */
#define OPERATORS 11   /* from this version on, one opcode has all of them */
#define ADD_OPERATOR 0
#define INPLACE_ADD_OPERATOR 13
#define NONE UINT16_MAX

/* Of each unit: its instruction, and the instructions beside it. Belongs to the one thread that
 * samples. */
static struct bytecode {
	const struct tfh_py_function *f;
	struct tfh_py_ops ops;
	uint32_t n;
	uint8_t op[UNITS]; /* enum tfh_py_op; REFUSED: no instruction begins here */
	bool is_target[UNITS];
	uint32_t arg[UNITS];
	uint16_t before[UNITS], after[UNITS], target[UNITS]; /* NONE: there is none */
	bool in[UNITS];					     /* the loop that is being looked at */
	bool seen[UNITS];				     /* by the present search */
	uint16_t todo[UNITS];
	uint16_t store[COUNTERS];
	uint32_t stores;
} * bytecode;

/* ---- instructions ---- */

static bool jumps(enum tfh_py_op op)
{
	return op >= TFH_PY_OP_FOR;
}

static bool falls_through(enum tfh_py_op op)
{
	return op != TFH_PY_OP_ENDS && op != TFH_PY_OP_FORWARD && op != TFH_PY_OP_BACK &&
	       op != TFH_PY_OP_TO;
}

/* Where it jumps to, in units; outside of the code: damaged. */
static int64_t target_of(const struct bytecode *b, uint32_t at)
{
	enum tfh_py_op op = (enum tfh_py_op)b->op[at];
	int64_t by = b->arg[at],
		after = (int64_t)at + 1 + b->ops.caches[b->f->unit[2 * (size_t)at]];

	if (b->f->minor < RELATIVE_10)
		by /= 2;
	if (op == TFH_PY_OP_TO || op == TFH_PY_OP_BRANCH_TO || op == TFH_PY_OP_TRUE_TO ||
	    op == TFH_PY_OP_FALSE_TO)
		return by;
	if (op == TFH_PY_OP_BACK || op == TFH_PY_OP_BRANCH_BACK || op == TFH_PY_OP_TRUE_BACK ||
	    op == TFH_PY_OP_FALSE_BACK)
		return after - by;
	return after + by;
}

static bool decode(struct bytecode *b)
{
	uint32_t extended = 0;
	uint16_t before = NONE;

	memset(b->op, TFH_PY_OP_REFUSED, b->n);
	memset(b->is_target, 0, b->n * sizeof(*b->is_target));
	for (uint32_t i = 0; i < b->n;) {
		uint8_t opcode = b->f->unit[2 * (size_t)i];
		enum tfh_py_op op = (enum tfh_py_op)b->ops.op[opcode];

		if (op == TFH_PY_OP_REFUSED)
			return false;
		b->op[i] = op;
		b->arg[i] = extended << 8 | b->f->unit[2 * (size_t)i + 1];
		b->target[i] = b->after[i] = NONE;
		b->before[i] = before;
		extended = op == TFH_PY_OP_EXTEND ? b->arg[i] : 0;
		if (op != TFH_PY_OP_EXTEND) {
			if (before != NONE)
				b->after[before] = (uint16_t)i;
			before = (uint16_t)i;
		}
		i += 1 + b->ops.caches[opcode];
	}
	return true;
}

static bool find_targets(struct bytecode *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		int64_t to;

		if (!jumps((enum tfh_py_op)b->op[i]))
			continue;
		to = target_of(b, i);
		while (to >= 0 && to < b->n && b->op[to] == TFH_PY_OP_EXTEND)
			to++;
		if (to < 0 || to >= b->n || b->op[to] == TFH_PY_OP_REFUSED)
			return false;
		b->target[i] = (uint16_t)to;
		b->is_target[to] = true;
	}
	return true;
}

static bool is_instruction(const struct bytecode *b, uint32_t i)
{
	return b->op[i] != TFH_PY_OP_REFUSED && b->op[i] != TFH_PY_OP_EXTEND;
}

/* The instructions that may follow; NONE: no further one. */
static void followers(const struct bytecode *b, uint32_t i, uint16_t to[2])
{
	to[0] = falls_through((enum tfh_py_op)b->op[i]) ? b->after[i] : NONE;
	to[1] = b->target[i];
}

/* ---- variables ---- */

static struct tfh_py_var variable(const struct bytecode *b, uint16_t i)
{
	uint8_t where = TFH_PY_NOWHERE;
	uint32_t index = i == NONE ? 0 : b->arg[i];
	int32_t value;

	switch (i == NONE ? TFH_PY_OP_PLAIN : b->op[i]) {
	case TFH_PY_OP_LOAD_CONST:
		if (b->f->constant(b->f->arg, index, &value)) {
			where = TFH_PY_CONST;
			index = (uint32_t)value;
		}
		break;
	case TFH_PY_OP_SMALL_INT:
		where = TFH_PY_CONST;
		break;
	case TFH_PY_OP_LOAD_FAST:
	case TFH_PY_OP_STORE_FAST:
		where = TFH_PY_FAST;
		break;
	case TFH_PY_OP_STORE_LOAD:
	case TFH_PY_OP_STORE_2:
		where = TFH_PY_FAST;
		index >>= 4;
		break;
	case TFH_PY_OP_LOAD_NAME:
	case TFH_PY_OP_STORE_NAME:
		where = TFH_PY_NAME;
		break;
	case TFH_PY_OP_LOAD_GLOBAL:
		index = b->f->minor >= OPERATORS ? index >> 1 : index;
		where = TFH_PY_GLOBAL;
		break;
	case TFH_PY_OP_STORE_GLOBAL:
		where = TFH_PY_GLOBAL;
		break;
	case TFH_PY_OP_LOAD_DEREF:
	case TFH_PY_OP_STORE_DEREF:
		where = TFH_PY_CELL;
		break;
	}
	return (struct tfh_py_var){where, (int32_t)index};
}

static bool same(struct tfh_py_var a, struct tfh_py_var b)
{
	return a.where == b.where && a.index == b.index;
}

static bool is_store(enum tfh_py_op op)
{
	return op >= TFH_PY_OP_STORE_FAST && op <= TFH_PY_OP_STORE_LOAD;
}

static bool stores(const struct bytecode *b, uint32_t i, struct tfh_py_var v)
{
	if (!is_store((enum tfh_py_op)b->op[i]))
		return false;
	return same(variable(b, (uint16_t)i), v) ||
	       (b->op[i] == TFH_PY_OP_STORE_2 && v.where == TFH_PY_FAST &&
		(b->arg[i] & 15) == (uint32_t)v.index);
}

/* The instruction before this one, which is always executed before it; NONE: there is none. */
static uint16_t only_before(const struct bytecode *b, uint16_t i)
{
	return i == NONE || b->is_target[i] || b->before[i] == NONE ||
			       !falls_through((enum tfh_py_op)b->op[b->before[i]])
		       ? NONE
		       : b->before[i];
}

static bool adds(const struct bytecode *b, uint16_t i)
{
	return i != NONE && (b->op[i] == TFH_PY_OP_ADD ||
			     (b->op[i] == TFH_PY_OP_BINARY &&
			      (b->arg[i] == ADD_OPERATOR || b->arg[i] == INPLACE_ADD_OPERATOR)));
}

/* Whether this stores a variable that has just grown by 1. */
static bool counts(const struct bytecode *b, uint16_t store)
{
	uint16_t add = only_before(b, store), one = only_before(b, add), load = only_before(b, one);
	struct tfh_py_var amount = variable(b, one);

	return is_store((enum tfh_py_op)b->op[store]) && b->op[store] <= TFH_PY_OP_STORE_DEREF &&
	       adds(b, add) && amount.where == TFH_PY_CONST && amount.index == 1 && load != NONE &&
	       !is_store((enum tfh_py_op)b->op[load]) &&
	       same(variable(b, load), variable(b, store));
}

/* The constant to which the variable is set here, also by `a = b = 0`. */
static struct tfh_py_var stored(const struct bytecode *b, uint16_t store, struct tfh_py_var v)
{
	uint16_t at = only_before(b, store);

	/* The second one of two stores gets what was below. */
	if (!same(variable(b, store), v) && (at == NONE || b->op[at] != TFH_PY_OP_COPY))
		return (struct tfh_py_var){TFH_PY_NOWHERE, 0};

	while (at != NONE && is_store((enum tfh_py_op)b->op[at]) &&
	       b->op[at] <= TFH_PY_OP_STORE_DEREF) {
		at = only_before(b, at);
		if (at == NONE || b->op[at] != TFH_PY_OP_COPY)
			return (struct tfh_py_var){TFH_PY_NOWHERE, 0};
		at = only_before(b, at);
	}
	while (at != NONE && b->op[at] == TFH_PY_OP_COPY)
		at = only_before(b, at);
	return at != NONE && !is_store((enum tfh_py_op)b->op[at])
		       ? variable(b, at)
		       : (struct tfh_py_var){TFH_PY_NOWHERE, 0};
}

/* ---- a loop ---- */

/* Where its iterations begin. In 3.10 to 3.13, the condition of a `while` loop is also at the end
 * of its body, from where the next iteration begins behind the first condition; `continue` jumps to
 * the first one. */
struct head {
	uint16_t body, condition; /* condition: NONE if it is the same */
};

static bool is_head(const struct head *h, uint16_t i)
{
	return i != NONE && (i == h->body || i == h->condition);
}

/* What can reach a jump back to the head without beginning another iteration. */
static void find_body(struct bytecode *b, const struct head *h)
{
	bool changed = true;

	memset(b->in, 0, b->n * sizeof(*b->in));
	for (uint32_t i = 0; i < b->n; i++)
		b->in[i] = is_instruction(b, i) && is_head(h, b->target[i]) && b->target[i] <= i;
	while (changed) {
		changed = false;
		for (uint32_t i = b->n; i-- > 0;) {
			uint16_t to[2];

			if (b->in[i] || !is_instruction(b, i) || is_head(h, (uint16_t)i))
				continue;
			followers(b, i, to);
			for (int k = 0; k < 2; k++)
				b->in[i] |= to[k] != NONE && !is_head(h, to[k]) && b->in[to[k]];
			changed |= b->in[i];
		}
	}
	b->in[h->body] = true;
	for (uint32_t i = h->condition; i < h->body; i++)
		b->in[i] = is_instruction(b, i);
}

/* Whether a way through the loop leads from behind `from` to `to`, or to the next iteration if that
 * is NONE, without passing `avoid` or beginning another iteration. */
static bool leads(struct bytecode *b, const struct head *h, uint16_t from, uint16_t to,
		  uint16_t avoid)
{
	uint32_t n = 0;

	memset(b->seen, 0, b->n * sizeof(*b->seen));
	b->todo[n++] = from;
	while (n) {
		uint16_t next[2];

		followers(b, b->todo[--n], next);
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

/* Whether the store is passed exactly once in each iteration, and nothing else in the loop stores
 * the variable. */
static bool counts_loop(struct bytecode *b, const struct head *h, uint16_t store, uint32_t lo,
			uint32_t hi)
{
	struct tfh_py_var v = variable(b, store);

	if (!b->in[store] || leads(b, h, h->body, NONE, store) || leads(b, h, store, store, NONE))
		return false;
	for (uint32_t i = lo; i < hi; i++)
		if (i != store && is_instruction(b, i) && stores(b, i, v))
			return false;
	return true;
}

/* Marks what leads into the loop, while the variable is not stored. */
static void find_entries(struct bytecode *b, const struct head *h, struct tfh_py_var v)
{
	bool changed = true;

	memset(b->seen, 0, b->n * sizeof(*b->seen));
	while (changed) {
		changed = false;
		for (uint32_t i = b->n; i-- > 0;) {
			uint16_t to[2];

			if (b->seen[i] || !is_instruction(b, i))
				continue;
			followers(b, i, to);
			for (int k = 0; k < 2; k++)
				b->seen[i] |=
					to[k] != NONE && ((is_head(h, to[k]) && !b->in[i]) ||
							  (b->seen[to[k]] && !stores(b, to[k], v)));
			changed |= b->seen[i];
		}
	}
}

/* What the counter is when the loop begins. */
static void find_start(struct bytecode *b, const struct head *h, struct tfh_py_code_loop *l)
{
	uint32_t first = 0, found = 0;
	bool other = false;

	find_entries(b, h, l->counter);
	l->goes_on = b->seen[l->store];
	for (uint32_t i = 0; i < b->n; i++) {
		struct tfh_py_var v;

		if (!b->seen[i] || i == l->store || !is_instruction(b, i) ||
		    !stores(b, i, l->counter))
			continue;
		v = stored(b, (uint16_t)i, l->counter);
		other |= v.where != TFH_PY_CONST || (found && v.index != l->start);
		l->start = v.where == TFH_PY_CONST ? v.index : 0;
		found++;
	}
	while (first + 1 < b->n && !is_instruction(b, first))
		first++;
	/* It has been set before this code began. */
	if ((b->seen[first] || is_head(h, (uint16_t)first)) &&
	    (l->counter.where == TFH_PY_GLOBAL || l->counter.where == TFH_PY_CELL ||
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
static bool compared(const struct bytecode *b, uint16_t i, struct tfh_py_var v[2], uint32_t *order)
{
	uint16_t second = only_before(b, i), first = only_before(b, second);

	if (i == NONE || b->op[i] != TFH_PY_OP_COMPARE || second == NONE)
		return false;
	*order = b->arg[i] >> (b->f->minor < 12	   ? 0
			       : b->f->minor == 12 ? COMPARE_SHIFT_12
						   : COMPARE_SHIFT_13);
	if (*order > GREATER_EQUAL)
		return false;
	v[0] = variable(b, first);
	v[1] = variable(b, second);
	if (b->op[second] == TFH_PY_OP_LOAD_2) {
		v[0] = (struct tfh_py_var){TFH_PY_FAST, (int32_t)(b->arg[second] >> 4)};
		v[1] = (struct tfh_py_var){TFH_PY_FAST, (int32_t)(b->arg[second] & 15)};
	} else if (first != NONE && b->op[first] == TFH_PY_OP_STORE_LOAD) {
		v[0] = (struct tfh_py_var){TFH_PY_FAST, (int32_t)(b->arg[first] & 15)};
	}
	return v[0].where && v[1].where;
}

static bool stays(const struct bytecode *b, uint16_t i)
{
	return i != NONE && b->in[i];
}

/* The condition on which this instruction stays in the loop is that the counter is below an end. */
static bool find_end_at(const struct bytecode *b, uint16_t i, struct tfh_py_code_loop *l)
{
	uint8_t op = b->op[i];
	bool on_true = op == TFH_PY_OP_TRUE || op == TFH_PY_OP_TRUE_BACK || op == TFH_PY_OP_TRUE_TO;
	bool on_false =
		op == TFH_PY_OP_FALSE || op == TFH_PY_OP_FALSE_BACK || op == TFH_PY_OP_FALSE_TO;
	bool jumping = stays(b, b->target[i]), falling = stays(b, b->after[i]);
	struct tfh_py_var v[2];
	uint32_t order;

	if ((!on_true && !on_false) || jumping == falling ||
	    !compared(b, only_before(b, i), v, &order))
		return false;
	if (on_true != jumping)
		order = not [order];
	if (same(v[1], l->counter)) {
		struct tfh_py_var first = v[0];

		v[0] = v[1];
		v[1] = first;
		order = swapped[order];
	}
	if (!same(v[0], l->counter) || (order != LESS && order != LESS_EQUAL && order != NOT_EQUAL))
		return false;
	for (uint32_t k = l->lo; k < l->hi; k++)
		if (is_instruction(b, k) && stores(b, k, v[1]))
			return false;
	l->end = v[1];
	l->end_more = order == LESS_EQUAL;
	return true;
}

static void find_end(const struct bytecode *b, struct tfh_py_code_loop *l)
{
	for (uint32_t i = l->lo; i < l->hi; i++)
		if (is_instruction(b, i) && b->in[i] && find_end_at(b, (uint16_t)i, l))
			return;
}

/* Of several counters of a loop, the one that its end depends on; one that goes on also counts what
 * no sample shows. */
static bool is_better(const struct tfh_py_code_loop *a, const struct tfh_py_code_loop *than)
{
	int x = 4 * (a->end.where != 0) + 2 * a->goes_on + a->has_start;
	int y = 4 * (than->end.where != 0) + 2 * than->goes_on + than->has_start;

	return !than->counter.where || x > y;
}

static struct tfh_py_code_loop look_at(struct bytecode *b, const struct head *h)
{
	struct tfh_py_code_loop out = {.lo = h->condition != NONE ? h->condition : h->body,
				       .is_for = b->op[h->body] == TFH_PY_OP_FOR};

	find_body(b, h);
	for (uint32_t i = 0; i < b->n; i++)
		if (b->in[i])
			out.hi = (uint16_t)(i + 1);
	for (uint32_t i = 0; i < b->stores; i++) {
		struct tfh_py_code_loop l = {.lo = out.lo,
					     .hi = out.hi,
					     .is_for = out.is_for,
					     .store = b->store[i],
					     .counter = variable(b, b->store[i])};

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

/* The condition to which `continue` jumps, if it is at the line of a jump back to the body. */
static uint16_t condition_of(const struct bytecode *b, uint16_t body)
{
	for (uint32_t i = body; i < b->n; i++) {
		int32_t line;

		if (!is_instruction(b, i) || b->target[i] != body)
			continue;
		line = b->f->line(b->f->arg, i);
		for (uint32_t k = body; k < b->n; k++)
			if (is_instruction(b, k) && b->target[k] < body &&
			    b->op[b->target[k]] != TFH_PY_OP_FOR &&
			    b->f->line(b->f->arg, b->target[k]) == line)
				return b->target[k];
	}
	return NONE;
}

static uint32_t find_heads(struct bytecode *b, struct head head[HEADS])
{
	uint32_t n = 0, kept = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t k = 0;

		if (!is_instruction(b, i) || b->target[i] == NONE || b->target[i] > i)
			continue;
		while (k < n && head[k].body != b->target[i])
			k++;
		if (k == n && n < HEADS)
			head[n++] = (struct head){b->target[i], NONE};
	}
	for (uint32_t i = 0; i < n; i++)
		if (b->op[head[i].body] != TFH_PY_OP_FOR)
			head[i].condition = condition_of(b, head[i].body);
	/* What is another one's condition has no body of its own. */
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

static uint32_t find_loops(struct bytecode *b, struct tfh_py_code_loop loop[TFH_PY_CODE_LOOPS])
{
	struct head head[HEADS];
	uint32_t heads = find_heads(b, head), n = 0;
	bool any = false;

	for (uint32_t i = 0; i < heads; i++) {
		struct tfh_py_code_loop l = look_at(b, &head[i]);
		uint32_t at = n;

		if (!l.is_for && !l.counter.where)
			continue;
		if (n == TFH_PY_CODE_LOOPS)
			return 0;
		any |= l.counter.where;
		for (; at && is_before(&l, &loop[at - 1]); at--)
			loop[at] = loop[at - 1];
		loop[at] = l;
		n++;
	}
	return any ? n : 0;
}

uint32_t tfh_py_code_loops(const struct tfh_py_function *f,
			   struct tfh_py_code_loop loop[TFH_PY_CODE_LOOPS])
{
	struct bytecode *b;

	if (f->units > UNITS || !tfh_map_once(&bytecode, sizeof(*bytecode)))
		return 0;
	b = bytecode;
	b->f = f;
	b->n = f->units;
	tfh_py_ops(f->minor, &b->ops);
	if (!decode(b) || !find_targets(b))
		return 0;
	b->stores = 0;
	for (uint32_t i = 0; i < b->n && b->stores < COUNTERS; i++)
		if (is_instruction(b, i) && counts(b, (uint16_t)i))
			b->store[b->stores++] = (uint16_t)i;
	return b->stores ? find_loops(b, loop) : 0;
}
