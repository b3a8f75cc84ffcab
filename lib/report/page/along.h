/* The steps of a run in an order and a number that can be drawn: sorted by length, and along the run in points. */
#ifndef TFH_REPORT_ALONG_H
#define TFH_REPORT_ALONG_H

#include "judge/result.h"

#define TFH_ALONG_POINTS 800u
#define TFH_ALONG_BINS 60u

/* Steps one after the other that become one point. */
struct tfh_along_point {
	double start_s; /* of its first step */
	uint64_t first, steps;
	double least_s, median_s, most_s;
	double part_s[TFH_PART_COUNT]; /* of a step, on average */
};

struct tfh_along {
	uint64_t n;	   /* training steps */
	double *sorted;	   /* [n], seconds */
	uint64_t together; /* steps of a point, but for the last */
	struct tfh_along_point *point;
	uint32_t n_point;
	/* How many steps are how long: equal bins from low_s on, and all longer ones. */
	double low_s, width_s;
	uint64_t bin[TFH_ALONG_BINS], longer;
};

/* 0 or -ENOMEM; tfh_along_free() in either case. */
int tfh_along_make(struct tfh_along *s, const struct tfh_result *r);
void tfh_along_free(struct tfh_along *s);

/* The length that a share of the steps does not exceed, as the judge takes quantiles; NAN without steps. */
double tfh_along_quantile(const struct tfh_along *s, double share);

/* How many steps are shorter. */
uint64_t tfh_along_below(const struct tfh_along *s, double length);

/* Whether a step is one of those that are drawn. */
static inline bool tfh_along_has(const struct tfh_step *step)
{
	return step->segment == (int8_t)TFH_SEGMENT_TRAIN;
}

#endif
