/*
 * A function's bytecode, unit by unit: what its instructions do, which follow each other, which
 * variables they load and store. It is part of bytecode.c, which finds its loops.
 */
#ifndef TFH_SAMPLING_UNITS_H
#define TFH_SAMPLING_UNITS_H

#include "sampling/bytecode.h"
#include "sampling/opcodes.h"

#define UNITS TFH_PY_UNITS_MOST
#define NONE UINT16_MAX
#define COUNTERS 64u /* increments of variables */

/* Of each unit: its instruction, and the instructions beside it. */
struct tfh_units {
	const struct tfh_py_function *f;
	struct tfh_py_ops ops;
	uint32_t n;
	uint8_t op[UNITS]; /* enum tfh_py_op; REFUSED: no instruction begins here */
	bool is_target[UNITS];
	uint32_t arg[UNITS];
	uint16_t before[UNITS], after[UNITS], target[UNITS]; /* NONE: there is none */
	/* inside the loop that is being examined */
	bool in[UNITS];
	bool seen[UNITS]; /* reached by the current search */
	uint16_t todo[UNITS];
	uint16_t store[COUNTERS];
	uint32_t stores;
};

/* Fills in everything but the last five members, for the function and number of units in it.
 * Returns false if it is damaged, or not known. */
bool tfh_units_read(struct tfh_units *b);
static inline bool tfh_units_is_instruction(const struct tfh_units *b, uint32_t i)
{
	return b->op[i] != TFH_PY_OP_REFUSED && b->op[i] != TFH_PY_OP_EXTEND;
}
/* The instructions that may follow; NONE: no further one. */
void tfh_units_followers(const struct tfh_units *b, uint32_t i, uint16_t to[2]);
/* The instruction before this one, which is always executed before it; NONE: there is none. */
uint16_t tfh_units_only_before(const struct tfh_units *b, uint16_t i);

/* The first of the instructions that load what this one loads: for an attribute, the one that loads
 * the object. */
uint16_t tfh_units_begin(const struct tfh_units *b, uint16_t i);
/* The variable that an instruction loads or stores, or the int. A stored attribute: only one that
 * has grown. */
struct tfh_py_var tfh_units_variable(const struct tfh_units *b, uint16_t i);
bool tfh_units_same(struct tfh_py_var a, struct tfh_py_var b);
bool tfh_units_stores(const struct tfh_units *b, uint32_t i, struct tfh_py_var v);
/* Whether this stores a variable that has just grown by 1. */
bool tfh_units_counts(const struct tfh_units *b, uint16_t store);
/* The constant to which the variable is set here, also by `a = b = 0`. */
struct tfh_py_var tfh_units_stored(const struct tfh_units *b, uint16_t store, struct tfh_py_var v);
/* Whether the loop that begins here is `for ... in range(n)` or `range(from, n)`. */
bool tfh_units_range(const struct tfh_units *b, uint16_t head, int32_t *from);

#endif
