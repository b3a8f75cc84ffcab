/*
 * The time of each rank's steps along the run, without the time in which the rank waits for others.
 * All ranks that train together have the step time of the slowest one, so only their own time shows
 * which rank is slow, and when.
 */
#ifndef TFH_REPORT_PAGE_CURVES_H
#define TFH_REPORT_PAGE_CURVES_H

#include "judge/judge.h"

#define TFH_CURVE_POINTS 480u /* kept per rank, over the whole run */

struct tfh_curve {
	uint32_t process;
	double own_s[TFH_CURVE_POINTS]; /* sum over training steps that begin here */
	uint32_t steps[TFH_CURVE_POINTS];
};

struct tfh_curves {
	double wall_s; /* of the run */
	struct tfh_curve *of;
	uint32_t n;
};

/* Whether a run has several ranks, whose curves can be compared. */
bool tfh_curves_wanted(const struct tfh_run *run);
/* For tfh_analyze_ranks(), with a struct tfh_curves whose wall_s is set. */
int tfh_curves_add(void *curves, const struct tfh_result *r, struct tfh_err *err);
void tfh_curves_free(struct tfh_curves *c);

#endif
