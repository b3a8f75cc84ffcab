/* Prepares the steps of a run for drawing: sorted by length, and along the run as points. */
#ifndef TFH_REPORT_PAGE_ALONG_H
#define TFH_REPORT_PAGE_ALONG_H

#include "judge/result.h"

#define TFH_ALONG_POINTS 800u
#define TFH_ALONG_BINS 60u

/* Consecutive steps that become one point. */
struct tfh_along_point {
	double start_s; /* of its first step, since the start of the process */
	uint64_t first, steps;
	double least_s, median_s, most_s;
	double part_s[TFH_PART_COUNT]; /* mean per step */
};

struct tfh_along {
	uint64_t n;	   /* training steps */
	double *sorted;	   /* [n], seconds */
	uint64_t together; /* steps per point, except the last one */
	struct tfh_along_point *point;
	uint32_t n_point;
	/* Histogram of step lengths: equal bins from low_s on, and all longer steps. */
	double low_s, width_s;
	uint64_t bin[TFH_ALONG_BINS], longer;
};

/* 0 or -ENOMEM; tfh_along_free() in either case. */
int tfh_along_make(struct tfh_along *s, const struct tfh_result *r);
void tfh_along_free(struct tfh_along *s);

/* The length that a share of the steps does not exceed, by the judge's rule for quantiles; NAN
 * without steps. */
double tfh_along_quantile(const struct tfh_along *s, double share);

/* Number of shorter steps. */
uint64_t tfh_along_below(const struct tfh_along *s, double length);

/* Whether a step is one of those that are drawn. */
static inline bool tfh_along_has(const struct tfh_step *step)
{
	return step->segment == (int8_t)TFH_SEGMENT_TRAIN;
}

#endif
