/* The parts of the verdict from samples alone (sampled.c). */
#ifndef TFH_JUDGE_VERDICT_SAMPLED_H
#define TFH_JUDGE_VERDICT_SAMPLED_H

#include "judge/verdict/verdict.h"

/* Whether a thread only waits for a process that it has started. */
bool tfh_sampled_launches(int state, const struct tfh_model_line *frame, uint32_t n);

/* What other threads of the process, or other processes, were doing. */
struct tfh_making_seen {
	bool busy;	      /* enough samples show one at work */
	enum tfh_cause cause; /* of most of that work: input.*, input.unknown if not known */
};

/* sampled_others.c: fills r->found.workers with the other threads of the process while its main
 * thread waited; if none was busy, with the other processes. 0 or -ENOMEM. */
int tfh_sampled_others(const struct tfh_feed *feed, struct tfh_result *r,
		       struct tfh_making_seen *out);

#endif
