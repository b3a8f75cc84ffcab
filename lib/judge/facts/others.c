/* Whether other threads work while a driving thread waits until one of them has done something. The
 * samples are only of the driving threads, but the process' CPU clock counts the others, too, and
 * threads that live for less than a step. */
#include <stdlib.h>

#include "judge/facts/facts.h"

/* The time between t0 and t1 for which the driving thread that waited longest did so. -1: out of
 * memory. */
static double waited(const struct tfh_facts *facts, int64_t t0, int64_t t1)
{
	double *of = calloc(facts->feed->n_threads + 1, sizeof(*of)), most = of ? 0 : -1;

	for (size_t i = 0; of && i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		if (!tfh_awaits_work(k.state) || k.t < t0 || k.t > t1 ||
		    !facts->thread[k.thread].drives)
			continue;
		of[k.thread] += k.ns / 1e9;
		most = of[k.thread] > most ? of[k.thread] : most;
	}
	free(of);
	return most;
}

/* Ops that a pipeline's functions execute are waited for in the call for the next batch. */
void tfh_find_launching_others(struct tfh_facts *facts)
{
	uint64_t own = 0, others = 0,
		 steps = facts->batch.n ? facts->batch.n : (uint64_t)TFH_VERDICT_FEWEST_WINDOWS;

	for (uint32_t i = 0; i < facts->feed->n_threads; i++)
		*(facts->thread[i].drives ? &own : &others) += facts->thread[i].ops;
	facts->others_launch = facts->cpu_only && !facts->lock_feeds && others > own &&
			       others >= (uint64_t)TFH_LOOPS_STEP_LAUNCHES * steps;
}

void tfh_find_others(struct tfh_facts *facts)
{
	const struct tfh_sample *s = NULL;
	uint32_t n = tfh_machine_samples(facts, &s);
	double ran = 0, wait = n > 1 ? waited(facts, s[0].t, s[n - 1].t) : 0;

	for (uint32_t i = 1; i < n; i++)
		ran += s[i].cpu_s - s[i].flusher_s - tfh_drivers_between(facts, &s[i - 1], &s[i]);
	facts->others_run =
		wait > 0 && ran * (1 + facts->delay_per_run) * TFH_FACTS_RUNNING_PART > wait;
}
