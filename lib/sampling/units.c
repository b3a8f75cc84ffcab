#include "sampling/units.h"

#include <string.h>

#define RELATIVE_10 10 /* from this version on, jumps count units; before, bytes */
#define OPERATORS 11   /* from this version on, one opcode is for all operators */
#define ADD_OPERATOR 0
#define INPLACE_ADD_OPERATOR 13

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
static int64_t target_of(const struct tfh_units *b, uint32_t at)
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

static bool decode(struct tfh_units *b)
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

static bool find_targets(struct tfh_units *b)
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

void tfh_units_followers(const struct tfh_units *b, uint32_t i, uint16_t to[2])
{
	to[0] = falls_through((enum tfh_py_op)b->op[i]) ? b->after[i] : NONE;
	to[1] = b->target[i];
}

/* ---- variables ---- */

uint16_t tfh_units_only_before(const struct tfh_units *b, uint16_t i)
{
	return i == NONE || b->is_target[i] || b->before[i] == NONE ||
			       !falls_through((enum tfh_py_op)b->op[b->before[i]])
		       ? NONE
		       : b->before[i];
}

static bool is_store(enum tfh_py_op op)
{
	return op >= TFH_PY_OP_STORE_FAST && op <= TFH_PY_OP_STORE_LOAD;
}

/* A variable that is no attribute. */
static struct tfh_py_var plain_variable(const struct tfh_units *b, uint16_t i)
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
	return (struct tfh_py_var){.where = where, .index = (int32_t)index};
}

static const struct tfh_py_var nowhere;

/* The attribute of the object that the instruction `object` loads. */
static struct tfh_py_var attribute_of(const struct tfh_units *b, uint16_t object, uint32_t name)
{
	struct tfh_py_var of = plain_variable(b, object);

	return of.where <= TFH_PY_CONST || is_store((enum tfh_py_op)b->op[object])
		       ? nowhere
		       : (struct tfh_py_var){.where = TFH_PY_ATTR,
					     .of = of.where,
					     .index = (int32_t)name,
					     .of_index = of.index};
}

/* The instruction that loads the object whose attribute this one loads. In `object.name += 1`, the
 * object is loaded once and copied. */
static uint16_t object_of(const struct tfh_units *b, uint16_t i)
{
	uint16_t at = tfh_units_only_before(b, i);

	return at != NONE && b->op[at] == TFH_PY_OP_COPY && b->arg[at] <= 1
		       ? tfh_units_only_before(b, at)
		       : at;
}

uint16_t tfh_units_begin(const struct tfh_units *b, uint16_t i)
{
	return i != NONE && (b->op[i] == TFH_PY_OP_ATTR || b->op[i] == TFH_PY_OP_ATTR_2)
		       ? object_of(b, i)
		       : i;
}

/* The attribute that is stored after an addition. `object.name += 1` keeps the object on the stack
 * below the sum; `object.name = object.name + 1` loads it again. */
static struct tfh_py_var stored_attribute(const struct tfh_units *b, uint16_t store, uint16_t *add)
{
	uint16_t at = tfh_units_only_before(b, store), load;

	*add = tfh_units_only_before(b, at);
	if (at == NONE)
		return nowhere;
	if (b->op[at] != TFH_PY_OP_SWAP)
		return attribute_of(b, at, b->arg[store]);
	load = tfh_units_only_before(b, tfh_units_only_before(b, *add));
	return b->arg[at] <= 2 ? attribute_of(b, tfh_units_begin(b, load), b->arg[store]) : nowhere;
}

struct tfh_py_var tfh_units_variable(const struct tfh_units *b, uint16_t i)
{
	uint16_t add;

	switch (i == NONE ? TFH_PY_OP_PLAIN : b->op[i]) {
	case TFH_PY_OP_ATTR:
		return attribute_of(b, object_of(b, i), b->arg[i]);
	case TFH_PY_OP_ATTR_2:
		return b->arg[i] & 1 ? nowhere : attribute_of(b, object_of(b, i), b->arg[i] >> 1);
	case TFH_PY_OP_STORE_ATTR:
		return stored_attribute(b, i, &add);
	}
	return plain_variable(b, i);
}

bool tfh_units_same(struct tfh_py_var a, struct tfh_py_var b)
{
	return a.where == b.where && a.index == b.index && a.of == b.of && a.of_index == b.of_index;
}

bool tfh_units_stores(const struct tfh_units *b, uint32_t i, struct tfh_py_var v)
{
	/* Two variables may refer to the same object, so a store to any object's attribute of this
	 * name counts. */
	if (v.where == TFH_PY_ATTR && b->op[i] == TFH_PY_OP_STORE_ATTR)
		return b->arg[i] == (uint32_t)v.index;
	if (v.where == TFH_PY_ATTR)
		v = (struct tfh_py_var){.where = v.of, .index = v.of_index};
	if (!is_store((enum tfh_py_op)b->op[i]))
		return false;
	return tfh_units_same(tfh_units_variable(b, (uint16_t)i), v) ||
	       (b->op[i] == TFH_PY_OP_STORE_2 && v.where == TFH_PY_FAST &&
		(b->arg[i] & 15) == (uint32_t)v.index);
}

static bool adds(const struct tfh_units *b, uint16_t i)
{
	return i != NONE && (b->op[i] == TFH_PY_OP_ADD ||
			     (b->op[i] == TFH_PY_OP_BINARY &&
			      (b->arg[i] == ADD_OPERATOR || b->arg[i] == INPLACE_ADD_OPERATOR)));
}

bool tfh_units_counts(const struct tfh_units *b, uint16_t store)
{
	uint16_t add = tfh_units_only_before(b, store), one, load;
	bool attribute = b->op[store] == TFH_PY_OP_STORE_ATTR;
	struct tfh_py_var v, amount;

	/* Most instructions are neither, and a constant has to be copied. */
	if (!attribute && (!is_store((enum tfh_py_op)b->op[store]) ||
			   b->op[store] > TFH_PY_OP_STORE_DEREF || !adds(b, add)))
		return false;
	v = attribute ? stored_attribute(b, store, &add) : tfh_units_variable(b, store);
	one = tfh_units_only_before(b, add);
	load = tfh_units_only_before(b, one);
	if (!v.where || !adds(b, add) || load == NONE || is_store((enum tfh_py_op)b->op[load]) ||
	    !tfh_units_same(tfh_units_variable(b, load), v))
		return false;
	amount = tfh_units_variable(b, one);
	return amount.where == TFH_PY_CONST && amount.index == 1;
}

struct tfh_py_var tfh_units_stored(const struct tfh_units *b, uint16_t store, struct tfh_py_var v)
{
	uint16_t at = tfh_units_only_before(b, store);

	/* What it is set to elsewhere, and by whom, is not known. The second one of two stores gets
	 * what was below. */
	if (v.where == TFH_PY_ATTR)
		return nowhere;
	if (!tfh_units_same(tfh_units_variable(b, store), v) &&
	    (at == NONE || b->op[at] != TFH_PY_OP_COPY))
		return nowhere;

	while (at != NONE && is_store((enum tfh_py_op)b->op[at]) &&
	       b->op[at] <= TFH_PY_OP_STORE_DEREF) {
		at = tfh_units_only_before(b, at);
		if (at == NONE || b->op[at] != TFH_PY_OP_COPY)
			return nowhere;
		at = tfh_units_only_before(b, at);
	}
	while (at != NONE && b->op[at] == TFH_PY_OP_COPY)
		at = tfh_units_only_before(b, at);
	return at != NONE && !is_store((enum tfh_py_op)b->op[at]) ? tfh_units_variable(b, at)
								  : nowhere;
}

/* ---- ranges ---- */

/* The depth of the stack after this instruction, if it was `depth` before and the instruction
 * leaves the lowest element alone; 0: unknown. */
static uint32_t depth_after(const struct tfh_units *b, uint16_t i, uint32_t depth)
{
	enum tfh_py_op op = (enum tfh_py_op)b->op[i];
	uint32_t arg = b->arg[i];

	if ((op >= TFH_PY_OP_LOAD_CONST && op <= TFH_PY_OP_LOAD_DEREF) || op == TFH_PY_OP_SKIP)
		return depth + 1 + (op == TFH_PY_OP_LOAD_GLOBAL && arg & 1);
	if (op == TFH_PY_OP_LOAD_2)
		return depth + 2;
	if (op == TFH_PY_OP_ATTR_2)
		return depth > 1 ? depth + (arg & 1) : 0;
	if (op == TFH_PY_OP_BINARY)
		return depth > 2 ? depth - 1 : 0;
	/* The function, what it is bound to, and its arguments. */
	return op == TFH_PY_OP_CALL && depth > arg + 2 ? depth - arg - 1 : 0;
}

static uint16_t behind_skipped(const struct tfh_units *b, uint16_t i)
{
	while (i != NONE && b->op[i] == TFH_PY_OP_SKIP)
		i = b->after[i];
	return i;
}

bool tfh_units_range(const struct tfh_units *b, uint16_t head, int32_t *from)
{
	uint16_t call = tfh_units_only_before(b, b->before[head]), at;
	int32_t callee =
		call != NONE && b->op[call] == TFH_PY_OP_CALL ? b->f->callee(b->f->arg, call) : -1;
	struct tfh_py_var name, start;
	uint32_t depth = 1;

	if (callee < 0 || callee >= call || !tfh_units_is_instruction(b, (uint32_t)callee))
		return false;
	at = behind_skipped(b, (uint16_t)callee);
	name = tfh_units_variable(b, at);
	if ((name.where != TFH_PY_NAME && name.where != TFH_PY_GLOBAL) ||
	    !b->f->is_range(b->f->arg, (uint32_t)name.index))
		return false;
	*from = 0;
	at = behind_skipped(b, b->after[at]);
	if (b->arg[call] != 2 || at == NONE)
		return b->arg[call] == 1;
	start = tfh_units_variable(b, at);
	*from = start.index;
	for (at = b->after[at]; at < call && depth; at = b->after[at])
		depth = b->is_target[at] ? 0 : depth_after(b, at, depth);
	return start.where == TFH_PY_CONST && depth == 2;
}

bool tfh_units_read(struct tfh_units *b)
{
	tfh_py_ops(b->f->minor, &b->ops);
	return decode(b) && find_targets(b);
}
