/* Variables of a program that count the iterations of its loops (bytecode.h): their values. */
#ifndef TFH_SAMPLING_COUNTERS_H
#define TFH_SAMPLING_COUNTERS_H

#include "sampling/bytecode.h"
#include "sampling/frames.h"

/* What counts a loop's iterations. The values are those of start.json. */
enum tfh_py_count {
	TFH_PY_ITERATOR,
	TFH_PY_COUNTER,		/* a variable that is reset each time the loop is entered */
	TFH_PY_COUNTER_ON,	/* one that goes on counting; it began with a known number */
	TFH_PY_COUNTER_FROM,	/* like COUNTER, but its first number is unknown */
	TFH_PY_COUNTER_ON_FROM, /* like COUNTER_ON, but its first number is unknown */
	TFH_PY_COUNTS
};

/* Loops of the code objects seen so far, of one process. All zeros at first. */
#define TFH_PY_COUNTED_CODES 512u
#define TFH_PY_COUNTED_LOOPS 512u
struct tfh_py_counters {
	struct {
		uint64_t mark;
		uint16_t first;
		int16_t n; /* -1: not known */
	} code[TFH_PY_COUNTED_CODES];
	struct tfh_py_code_loop loop[TFH_PY_COUNTED_LOOPS];
	/* Where globals and attributes of the counter and of its end were found in their dicts. */
	uint32_t entry[TFH_PY_COUNTED_LOOPS][2][2];
	uint16_t n;
};

/* Puts the numbers of the loops that the frame is in into `loop`, outermost first: all `for` loops,
 * and others that have a counter. Returns how many; -1: the function's loops are not known. */
int tfh_py_loops_at(const struct tfh_py *py, struct tfh_py_counters *k, struct tfh_py_copies *c,
		    const struct tfh_py_frame *frame, uint16_t loop[TFH_PY_CODE_LOOPS]);

/* Whether the innermost loop that a generator's frame is in yields once in each iteration. */
bool tfh_py_yields_at(const struct tfh_py *py, struct tfh_py_counters *k, struct tfh_py_copies *c,
		      const struct tfh_py_frame *frame);

/* How far a loop has come. */
struct tfh_py_counted {
	bool known; /* it has a counter */
	enum tfh_py_count count;
	uint64_t done, left;
};
/* Reads the counter of one of these loops. Returns false if it changed meanwhile. */
bool tfh_py_counted(const struct tfh_py *py, struct tfh_py_counters *k, struct tfh_py_copies *c,
		    const struct tfh_py_frame *frame, uint16_t loop, struct tfh_py_counted *out);

#endif
