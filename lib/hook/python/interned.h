/* Frames as numbers: places in the process's tables. */
#ifndef TFH_HOOK_PYTHON_INTERNED_H
#define TFH_HOOK_PYTHON_INTERNED_H

#include "sampling/frames.h"

/* The place of these frames, innermost first. 0: the tables are full, or no frame has code. `how`:
 * with copies, a struct tfh_py_copies, which fetches what it lacks. */
struct tfh_py_placed {
	uint64_t mark; /* under which the innermost frame is known, if any */
	bool gap;      /* a frame was left out: it has no code */
};
uint32_t tfh_py_place_of(const struct tfh_py *py, tfh_py_view view, void *how,
			 const struct tfh_py_frame *frame, uint32_t n, struct tfh_py_placed *out);

#endif
