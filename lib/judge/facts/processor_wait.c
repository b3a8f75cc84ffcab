/* How long the job's threads waited for a CPU, from samples once a second. */
#include "judge/facts/facts.h"

double tfh_processor_wait(const struct tfh_facts *facts)
{
	const struct tfh_sample *s = NULL;
	uint32_t n = facts->feed->samples
			     ? facts->feed->samples(facts->feed->arg, facts->process, &s)
			     : 0;
	double delay = 0;

	for (uint32_t i = 1; i < n; i++)
		delay += s[i].run_delay_s;
	double wall = n > 1 ? (double)(s[n - 1].t - s[0].t) / 1e9 : 0;
	return wall < TFH_FACTS_LEAST_SAMPLED_S ? 0 : delay / wall;
}
