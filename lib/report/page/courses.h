/*
 * The time of each rank's steps along the run, without waiting for other ranks. When ranks train together,
 * all steps take as long as the slowest rank's. So only their own time shows which rank is slow, and when.
 */
#ifndef TFH_REPORT_COURSES_H
#define TFH_REPORT_COURSES_H

#include "judge/result.h"

#define TFH_COURSE_POINTS 480u /* kept per rank, over the whole run */

struct tfh_course {
	uint32_t process;
	double own_s[TFH_COURSE_POINTS]; /* sum over training steps that begin here */
	uint32_t steps[TFH_COURSE_POINTS];
};

struct tfh_courses {
	double wall_s; /* of the run */
	struct tfh_course *of;
	uint32_t n;
};

/* Whether a run has several ranks, whose courses can be compared. */
bool tfh_courses_wanted(const struct tfh_run *run);
/* For tfh_analyze_ranks(), with a struct tfh_courses whose wall_s is set. */
int tfh_courses_add(void *courses, const struct tfh_result *r, struct tfh_err *err);
void tfh_courses_free(struct tfh_courses *c);

#endif
