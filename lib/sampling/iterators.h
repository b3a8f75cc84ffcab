/*
 * How far Python's loops have come. A frame that is in a `for` loop keeps the loop's iterator on
 * its evaluation stack, and an iterator knows how many elements it has given and often how many are
 * left. Other loops are counted by the program's own variables (counters.h). Reading them counts a
 * loop's iterations exactly, though the program reports none.
 */
#ifndef TFH_SAMPLING_ITERATORS_H
#define TFH_SAMPLING_ITERATORS_H

#include "sampling/counters.h"
#include "sampling/frames.h"

/* A loop of a frame. Loops of one frame are reported from the outermost on. */
struct tfh_py_loop {
	uint32_t frame; /* index of the frame, as passed in */
	uint64_t done;	/* elements given so far, including that of the running iteration */
	bool sure; /* of that; not where the iterator may have begun with another number than 0 */
	uint64_t left;	   /* elements that remain; TFH_PY_LEFT_UNKNOWN: not known */
	uint64_t iterator; /* address of the one that counts, maybe inside of an enumerate or zip */
	enum tfh_py_count count;
};
#define TFH_PY_LEFT_UNKNOWN UINT64_MAX

/* Types that were met, each at a place that its address gives. They are valid for one process;
 * begin with zeros. */
#define TFH_PY_TYPES 256u
struct tfh_py_types {
	uint64_t type[TFH_PY_TYPES];
	uint8_t kind[TFH_PY_TYPES];
	/* Of a class written in Python: the number of the attribute that counts, from 1 on; and
	 * how often it was looked for in vain. */
	uint8_t kept[TFH_PY_TYPES], vain[TFH_PY_TYPES];
	struct tfh_py_counters *counters; /* NULL: loops that only the program counts are unknown */
};

/* The loops of the outer frames among these (innermost first), at most `most`, outermost first.
 * Returns their number. Unknown are: iterators of classes written in Python, unless they keep a
 * generator that gives an element in each iteration of its loop, or the loop has a counter; `while`
 * loops that have none; and what is inside of one that has changed meanwhile. The frames' code
 * objects must have been fetched. */
uint32_t tfh_py_loops(const struct tfh_py *py, struct tfh_py_types *types, struct tfh_py_copies *c,
		      const struct tfh_py_frame *frame, uint32_t n, struct tfh_py_loop *out,
		      uint32_t most);

#endif
