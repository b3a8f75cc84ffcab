/* A run's steps in consecutive blocks. */
#ifndef TFH_DIFF_BLOCKS_H
#define TFH_DIFF_BLOCKS_H

#include "diff/diff.h"

/* n 0: too few steps for blocks; the first block then holds all of them. */
struct tfh_step_blocks {
	uint64_t steps;
	uint32_t n;
	/* For each block: the mean of the middle half of its steps by length, and the mean of all
	 * its steps. */
	double usual_s[TFH_DIFF_BLOCKS][TFH_DIFF_PARTS], mean_s[TFH_DIFF_BLOCKS][TFH_DIFF_PARTS];
};

/* Reads the judged training steps of the rank that the verdict is about, between two times.
 * 0 or -errno with `err`. */
int tfh_blocks_read(struct tfh_run_digest *d, double from_s, double to_s,
		    struct tfh_step_blocks *out, struct tfh_err *err);

#endif
