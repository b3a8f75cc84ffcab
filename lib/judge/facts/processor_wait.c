/* How long the job's threads waited for a CPU, from samples: one per second, five per second in the
 * first ten seconds. */
#include <math.h>

#include "judge/facts/facts.h"

/* The wait between samples in [t0, t1), in seconds; *wall: the time between them. */
static double delay_in(const struct tfh_facts *facts, int64_t t0, int64_t t1, double *wall)
{
	const struct tfh_sample *s = NULL;
	uint32_t n = tfh_machine_samples(facts, &s);
	double delay = 0;

	*wall = 0;
	for (uint32_t i = 1; i < n; i++) {
		if (s[i - 1].t < t0 || s[i].t > t1)
			continue;
		delay += s[i].run_delay_s;
		*wall += (double)(s[i].t - s[i - 1].t) / 1e9;
	}
	return delay;
}

double tfh_processor_wait(const struct tfh_facts *facts, int64_t t0, int64_t t1)
{
	double wall, delay = delay_in(facts, t0, t1, &wall);

	if (wall >= TFH_FACTS_STEPS_SAMPLED_S)
		return delay / wall;
	delay = delay_in(facts, INT64_MIN, INT64_MAX, &wall);
	return wall < TFH_FACTS_LEAST_SAMPLED_S ? 0 : delay / wall;
}

bool tfh_index_drives(const struct tfh_facts *facts, uint32_t index)
{
	const struct tfh_feed *f = facts->feed;

	for (uint32_t i = 0; i < f->n_threads; i++)
		if (f->threads[i].process == facts->process && f->threads[i].index == index)
			return facts->thread[i].drives;
	return false;
}

double tfh_driver_wait(const struct tfh_facts *facts, int64_t t0, int64_t t1)
{
	const struct tfh_sample *s = NULL, *from = NULL, *to = NULL;
	uint32_t n = tfh_machine_samples(facts, &s);
	double most = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (s[i].t < t0 || s[i].t > t1)
			continue;
		from = from ? from : &s[i];
		to = &s[i];
	}
	double wall = from ? (double)(to->t - from->t) / 1e9 : 0;
	for (uint32_t k = 0; wall >= TFH_FACTS_STEPS_SAMPLED_S && k < to->threads; k++)
		for (uint32_t i = 0; i < from->threads; i++)
			if (from->thread[i].thread == to->thread[k].thread &&
			    tfh_index_drives(facts, to->thread[k].thread))
				most = fmax(most, to->thread[k].delay_s - from->thread[i].delay_s);
	return most > 0 ? fmin(most / wall, 1) : 0;
}

double tfh_drivers_between(const struct tfh_facts *facts, const struct tfh_sample *from,
			   const struct tfh_sample *to)
{
	double s = 0;

	for (uint32_t k = 0; k < to->threads; k++)
		for (uint32_t i = 0; i < from->threads; i++)
			if (from->thread[i].thread == to->thread[k].thread &&
			    tfh_index_drives(facts, to->thread[k].thread))
				s += to->thread[k].run_s - from->thread[i].run_s;
	return s;
}

/* The counters cover all of a thread's life, so a single sample is enough; a job of one second has
 * one. */
void tfh_find_crowd(struct tfh_facts *facts)
{
	const struct tfh_sample *s = NULL;
	uint32_t n = tfh_machine_samples(facts, &s);
	double run = 0, delay = 0;

	for (uint32_t k = 0; n && k < s[n - 1].threads; k++) {
		const struct tfh_thread_times *t = &s[n - 1].thread[k];
		if (!tfh_index_drives(facts, t->thread))
			continue;
		run += t->run_s;
		delay += t->delay_s;
	}
	facts->crowded = TFH_DETECT_CONTENTION && delay > TFH_CROWDED_SHARE * (run + delay);
	facts->delay_per_run = facts->crowded && run > 0 ? delay / run : 0;
}

bool tfh_pauses_run(const struct tfh_facts *facts)
{
	return facts->cpu_wall &&
	       (double)facts->cpu_running * (1 + facts->delay_per_run) * TFH_FACTS_RUNNING_PART >
		       (double)facts->cpu_wall;
}
