/* Who had the machine's CPUs while the job waited for one. */
#include <math.h>

#include "report/words/words.h"

/* CPUs used by the job's processes and its worker processes; the latter by how often they were seen
 * running. */
static double job_used(const struct tfh_result *r)
{
	return r->found.contended.own + r->found.workers.processes * r->found.workers.runs;
}

const char *tfh_own_crowd_advice(const struct tfh_result *r)
{
	return 2 * job_used(r) > r->found.contended.busy
		       ? "fewer loader workers or threads (OMP_NUM_THREADS, intra-op threads), or "
			 "more CPUs"
		       : NULL;
}

bool tfh_others_crowd(const struct tfh_result *r)
{
	const struct tfh_contended *c = &r->found.contended;

	return r->quality.crowded && !isnan(c->busy) && !isnan(c->own) && !tfh_own_crowd_advice(r);
}

const char *tfh_who_had_cpus(struct tfh_wording *w)
{
	const struct tfh_contended *c = &w->r->found.contended;

	if (isnan(c->busy) || isnan(c->own))
		return "the machine's CPUs were taken by other threads";
	double workers = w->r->found.workers.processes * w->r->found.workers.runs;
	double all = w->r->found.machine.processors;
	const char *of = all > 0 ? tfh_phrase(w, ", of %.0f", all) : "";
	double others = fmax(0, c->busy - c->own - workers);
	if (w->r->found.new_pool.file) /* most of them were too short-lived to be seen */
		return tfh_phrase(w,
				  "CPUs in use: %.2f by this job, %.2f by its worker processes and "
				  "others%s",
				  c->own, fmax(0, c->busy - c->own), of);
	return workers > 0 ? tfh_phrase(w,
					"CPUs in use: %.2f by this job, about %.2f by its worker "
					"processes, %.2f by other programs%s",
					c->own, workers, others, of)
			   : tfh_phrase(w, "CPUs in use: %.2f by this job, %.2f by others%s",
					c->own, others, of);
}
