/*
 * The loops of a function, from its bytecode, and the variables that count their iterations. A
 * variable counts a loop if it grows by 1 exactly once in each iteration: between two beginnings of
 * an iteration, every way through the code passes the one place that stores it.
 */
#ifndef TFH_SAMPLING_BYTECODE_H
#define TFH_SAMPLING_BYTECODE_H

#include <stdbool.h>
#include <stdint.h>

#define TFH_PY_UNITS_MOST 12288u /* code units, two bytes each, of a function that is searched */
#define TFH_PY_CODE_LOOPS 16u

enum tfh_py_where {
	TFH_PY_NOWHERE,
	TFH_PY_CONST, /* index: the value */
	TFH_PY_FAST,
	TFH_PY_NAME,
	TFH_PY_GLOBAL,
	TFH_PY_CELL,
	TFH_PY_ATTR, /* of the object in another variable; index: its name */
};

struct tfh_py_var {
	uint8_t where, of; /* enum tfh_py_where; of: where the object is */
	int32_t index, of_index;
};

struct tfh_py_code_loop {
	uint16_t lo, hi; /* from its first unit to after its last one */
	uint16_t store;	 /* the instruction that stores the counter, increased by one */
	bool is_for;
	bool yields;	/* exactly once in each iteration */
	bool goes_on;	/* the counter is not reset when the loop is entered again */
	bool has_start; /* the counter begins with `start`; if it goes on, at the first entry */
	int32_t start;
	struct tfh_py_var counter; /* NOWHERE: there is none */
	struct tfh_py_var end;	   /* the loop ends when the counter has reached it ... */
	uint8_t end_more;	   /* ... plus this */
	bool of_range; /* a `for` loop over range(from, ...) with step 1, from 3.12 on */
	int32_t from;
};

/* A function. */
struct tfh_py_function {
	unsigned minor;
	const uint8_t *unit;
	uint32_t units, arguments;
	/* An int among its constants; false: it is something else. The line of a unit. */
	bool (*constant)(void *arg, uint32_t index, int32_t *value);
	int32_t (*line)(void *arg, uint32_t unit);
	/* The unit that loads what a call calls, -1: not known. Whether a name is "range". */
	int32_t (*callee)(void *arg, uint32_t unit);
	bool (*is_range)(void *arg, uint32_t name);
	void *arg;
};

/* Finds all `for` loops, and others that have a counter, those around others first. Returns their
 * number; -1: the bytecode is not known, or has too many. To be used by one thread only. */
int tfh_py_code_loops(const struct tfh_py_function *f,
		      struct tfh_py_code_loop loop[TFH_PY_CODE_LOOPS]);

#endif
