/* Means of blocks and how sure they are. */
#ifndef TFH_DIFF_ESTIMATE_H
#define TFH_DIFF_ESTIMATE_H

#include "diff/blocks.h"

/* The trimmed means of `n` blocks (0: the first one as it is), and the variance of each; NAN without blocks. */
void tfh_means_of(const double block_s[][TFH_DIFF_PARTS], uint32_t n, struct tfh_diff_means *out);

/* So many standard errors hold a change with `chance` of error, both sides together. */
double tfh_student(double chance, double df);

#endif
