/* What can be done about a cause. */
#ifndef TFH_REPORT_REMEDY_H
#define TFH_REPORT_REMEDY_H

#include "judge/result.h"

struct tfh_remedy {
	const char *finding, *todo; /* static texts */
};

/* What is found and what to do for this cause in any job; of causes without words of their own, and
 * of TFH_CAUSE_NONE, what is to be done about the program's own code. */
struct tfh_remedy tfh_remedy_of(enum tfh_cause cause);

/* The same in this job: PyTorch's own terms, and where no stage of a pipeline is known, the program's own code makes its batches. */
struct tfh_remedy tfh_remedy_in(const struct tfh_result *r, enum tfh_cause cause);

/* The same where this stage of the input pipeline is slow for this cause. */
struct tfh_remedy tfh_stage_remedy(const struct tfh_input_stage *stage, enum tfh_cause cause);

#endif
