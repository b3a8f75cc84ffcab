/* Means of blocks and how sure they are. */
#ifndef TFH_DIFF_ESTIMATE_H
#define TFH_DIFF_ESTIMATE_H

#include "diff/blocks.h"

/* The trimmed means of `n` blocks (0: the first block unchanged), and their variances; NAN without
 * blocks. */
void tfh_means_of(const double block_s[][TFH_DIFF_PARTS], uint32_t n, struct tfh_diff_means *out);

/* Student's t: the number of standard errors that a change exceeds by chance with probability
 * `chance`, on both sides together. */
double tfh_student(double chance, double df);

#endif
