/*
 * Elastic launchers start all ranks of a job again when one fails or leaves, often fewer and with
 * other numbers. The ranks from one such start to the next are a generation. Ranks of different
 * generations never exchange anything, so one generation is judged, the one that did most.
 */
#ifndef TFH_JUDGE_GENERATIONS_H
#define TFH_JUDGE_GENERATIONS_H

#include "judge/feed.h"

struct tfh_generations {
	uint32_t *of; /* [processes]: from 0 in order of time; TFH_NO_GENERATION: it has no rank */
	uint32_t n, judged;
};
#define TFH_NO_GENERATION UINT32_MAX

/* 0 or -ENOMEM. */
int tfh_generations_find(const struct tfh_process *p, uint32_t n, struct tfh_generations *out);
void tfh_generations_free(struct tfh_generations *g);
/* Whether a process belongs to another generation than the judged one; false without any. */
bool tfh_generations_other(const struct tfh_generations *g, uint32_t process);

/* Describes them in a result, if there are several: when, how many ranks, which one failed first
 * and where. 0 or -errno. */
int tfh_generations_fill(const struct tfh_feed *f, struct tfh_run *run, struct tfh_result *r,
			 struct tfh_err *err);

#endif
