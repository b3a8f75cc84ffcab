/* Pools of processes or threads, and single processes, that many steps make anew. */
#ifndef TFH_JUDGE_VERDICT_NEW_POOLS_H
#define TFH_JUDGE_VERDICT_NEW_POOLS_H

#include "judge/result.h"
#include "model/symbols/pylines.h"
#include "model/vec.h"

/* A line that makes or ends one. */
struct tfh_new_pool {
	struct tfh_model_line line, callee; /* callee: of its first sample */
	double ns;
	uint64_t samples, steps;
	size_t step; /* that of its last sample */
};

struct tfh_new_pools {
	TFH_VEC(struct tfh_new_pool) of; /* the caller frees it */
	double all_ns;			 /* all samples of the steps */
	uint64_t samples;
};

/* Adds a sample of n frames, innermost first, in this step. 0 or -ENOMEM. */
int tfh_new_pools_add(struct tfh_new_pools *p, const struct tfh_model_line *frame, uint32_t n,
		      double ns, size_t step);
/* Keeps the line with most time, if it is much of as many steps of that length. */
void tfh_new_pools_keep(const struct tfh_new_pools *p, double steps, double step_s,
			struct tfh_seen_line *out);

#endif
