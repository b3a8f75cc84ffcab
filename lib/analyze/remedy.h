/* What can be done about a slow stage of the input pipeline, and about memory that comes and goes.
 */
#ifndef TFH_ANALYZE_REMEDY_H
#define TFH_ANALYZE_REMEDY_H

#include "analyze/result.h"

struct tfh_job;

struct tfh_remedy {
	const char *finding, *todo; /* static texts; NULL: nothing to say */
};

/* What is found and what to do where this stage is slow for this cause. */
struct tfh_remedy tfh_stage_remedy(const struct tfh_input_stage *stage, enum tfh_cause cause);

/* faults.c: a remark where page faults take over 5 % of the time. Steps must be counted. */
void tfh_tell_faults(struct tfh_job *job, struct tfh_result *r);

#endif
