/* The lists of a difference: lines, kernels, facts. */
#ifndef TFH_DIFF_LISTED_H
#define TFH_DIFF_LISTED_H

#include "diff/diff.h"

/* They compare the first run of each side. 0 or -ENOMEM with `err`. */
int tfh_diff_find_lines(struct tfh_run_diff *d, struct tfh_err *err);
void tfh_diff_find_kernels(struct tfh_run_diff *d);
/* Facts on which all runs of a side agree. */
void tfh_diff_find_facts(struct tfh_run_diff *d);

#endif
