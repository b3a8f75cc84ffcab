/* Order statistics, sorting and histograms. */
#ifndef TFH_JUDGE_STATS_H
#define TFH_JUDGE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "judge/numbers.h"
/* Linear between order statistics; changes the order of v. NAN if n is 0. */
double tfh_quantile(double *v, size_t n, double q);
/* The k-th smallest, from 0; changes the order of v. No value is NAN. */
double tfh_select(double *v, size_t n, size_t k);
/* Two standard errors of a share of n samples; above 0 for shares of 0 and 1, too. */
double tfh_share_error(double share, double n);
/* Two standard errors of the difference of two shares of the same n samples. */
double tfh_lead_error(double share, double other, double n);
/* Like qsort_r(); returns at once if the order is right. */
void tfh_sort(void *v, size_t n, size_t size, int (*cmp)(const void *, const void *, void *),
	      void *arg);

/* Histogram of nanoseconds, eight bins to the octave: quantiles to 9 %. */
struct tfh_hist {
	uint64_t n;
	uint32_t bin[TFH_HIST_BINS];
};
void tfh_hist_add(struct tfh_hist *h, int64_t ns);
double tfh_hist_quantile(const struct tfh_hist *h, double q); /* 0 if empty */
/* The median of durations whose sum is `ns`. Bins are up to an eighth wide, the mean is exact: it
 * is taken if it is in the median's bin. */
double tfh_hist_median(const struct tfh_hist *h, int64_t ns);

#endif
