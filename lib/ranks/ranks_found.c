/* The findings about a job of many ranks, and what each costs. */
#include <math.h>
#include <stdlib.h>

#include "ranks/ranks_parts.h"

struct tfh_ranks_finding *tfh_ranks_add(struct tfh_ranks *job, enum tfh_ranks_what what)
{
	struct tfh_ranks_finding *grown =
		realloc(job->finding, (job->findings + 1) * sizeof(*grown));

	if (!grown)
		return NULL;
	job->finding = grown;
	grown[job->findings] = (struct tfh_ranks_finding){.what = what, .cause = -1};
	return &grown[job->findings++];
}

double tfh_ranks_cost(const struct tfh_ranks_finding *f)
{
	switch (f->what) {
	case TFH_RANKS_SLOW_RAIL:
	case TFH_RANKS_SLOW_SWITCH:
	case TFH_RANKS_SLOW_NVLINK:
	case TFH_RANKS_SLOW_COMM:
		return f->s - f->usual_s;
	case TFH_RANKS_FEW_LINKS:
		return 0;
	case TFH_RANKS_PERIODIC:
		return f->every ? f->s / (double)f->every : 0;
	default:
		return fabs(f->s) * (f->until - f->since);
	}
}

void tfh_ranks_drop(struct tfh_ranks_rank *r)
{
	free(r->sample);
	free(r->in_step);
}
