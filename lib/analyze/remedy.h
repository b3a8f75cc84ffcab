/* What can be done about a slow stage of the input pipeline. */
#ifndef TFH_ANALYZE_REMEDY_H
#define TFH_ANALYZE_REMEDY_H

#include "analyze/result.h"

struct tfh_remedy {
	const char *finding, *todo; /* static texts; NULL: nothing to say */
};

/* What is found and what to do where this stage is slow for this cause. */
struct tfh_remedy tfh_stage_remedy(const struct tfh_input_stage *stage, enum tfh_cause cause);

#endif
