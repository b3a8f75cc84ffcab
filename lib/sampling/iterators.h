/*
 * How far Python's `for` loops have come. A frame that is in such a loop keeps the loop's iterator
 * on its evaluation stack, and an iterator knows how many elements it has given and often how many
 * are left. Reading it counts a loop's iterations exactly, though the program reports none.
 */
#ifndef TFH_SAMPLING_ITERATORS_H
#define TFH_SAMPLING_ITERATORS_H

#include "sampling/frames.h"

/* A loop of a frame. Loops of one frame are reported from the outermost on. */
struct tfh_py_loop {
	uint32_t frame; /* index of the frame, as passed in */
	uint64_t done;	/* elements given so far, including that of the running iteration */
	uint64_t left;	/* elements that remain; TFH_PY_LEFT_UNKNOWN: not known */
	uint64_t
		iterator; /* address of the one that counts, maybe inside of an enumerate or a zip */
};
#define TFH_PY_LEFT_UNKNOWN UINT64_MAX

/* Types that were met, each at a place that its address gives. They are valid for one process;
 * begin with zeros. */
#define TFH_PY_TYPES 256u
struct tfh_py_types {
	uint64_t type[TFH_PY_TYPES];
	uint8_t kind[TFH_PY_TYPES];
};

/* The loops of the outer frames among these (innermost first), at most `most`, outermost first.
 * Returns their number. Iterators of classes written in Python are unknown, and so are `while`
 * loops. The frames' code objects must have been fetched. */
uint32_t tfh_py_loops(const struct tfh_py *py, struct tfh_py_types *types, struct tfh_py_copies *c,
		      const struct tfh_py_frame *frame, uint32_t n, struct tfh_py_loop *out,
		      uint32_t most);

#endif
