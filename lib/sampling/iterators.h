/*
 * How far Python's loops have come. A frame that is in a `for` loop keeps the loop's iterator on
 * its evaluation stack, and an iterator knows how many elements it has given and often how many are
 * left. Other loops are counted by the program's own variables (counters.h). Reading them counts a
 * loop's iterations exactly, though the program reports none.
 */
#ifndef TFH_SAMPLING_ITERATORS_H
#define TFH_SAMPLING_ITERATORS_H

#include "sampling/iterator_types.h"

/* A loop of a frame. Loops of one frame are reported from the outermost on. */
struct tfh_py_loop {
	uint32_t frame; /* index of the frame, as passed in */
	uint64_t done;	/* elements given so far, including that of the running iteration */
	bool sure;	/* `done` is exact: it is known with which number the iterator began */
	uint64_t left;	/* elements that remain; TFH_PY_LEFT_UNKNOWN: not known */
	enum tfh_py_count count;
};
#define TFH_PY_LEFT_UNKNOWN UINT64_MAX

/* The loops of the outermost of these frames (given innermost first), at most `most`, outermost
 * first. Returns their number. Left out are loops over iterators of classes written in Python,
 * unless these keep a generator that yields once in each iteration of its own loop, or the loop has
 * a counter; `while` loops without a counter; and everything inside a loop that changed meanwhile.
 * The frames' code objects must have been fetched. */
uint32_t tfh_py_loops(const struct tfh_py *py, struct tfh_py_types *types, struct tfh_py_copies *c,
		      const struct tfh_py_frame *frame, uint32_t n, struct tfh_py_loop *out,
		      uint32_t most);

#endif
