/* Ranks some of whose steps are far longer than usual: a checkpoint that one rank writes while all
 * others wait for it, or stalls. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ranks/ranks_parts.h"

/* The distance between slow steps, if most are alike; 0: they are not. */
static uint64_t period_of(const struct tfh_ranks_rank *r)
{
	double gap[TFH_RANKS_SLOW];
	uint32_t n = r->slow < TFH_RANKS_SLOW ? (uint32_t)r->slow : TFH_RANKS_SLOW, alike = 0;

	for (uint32_t i = 1; i < n; i++)
		gap[i - 1] = (double)(r->slow_at[i] - r->slow_at[i - 1]);
	double usual = tfh_ranks_median(gap, n - 1);
	for (uint32_t i = 0; i + 1 < n; i++)
		alike += fabs(gap[i] - usual) <= fmax(1, usual / 50);
	return usual >= 2 && usual < 1e15 && alike >= TFH_RANKS_RARE_REGULAR * (n - 1)
		       ? (uint64_t)usual
		       : 0;
}

static void find_cause(const struct tfh_ranks_rank *r, struct tfh_ranks_finding *f)
{
	double rest = f->s;

	f->cause = TFH_CAUSE_COUNT;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		if (tfh_cause_part((enum tfh_cause)c) == TFH_PART_COMMUNICATION)
			continue;
		double usual =
			r->steady ? (r->cause_s[c] - r->slow_cause_s[c]) / (double)r->steady : 0;
		double over = r->slow_cause_s[c] / (double)r->slow - usual;
		rest -= over;
		if (over > f->cause_s) {
			f->cause = c;
			f->cause_s = over;
		}
	}
	if (rest > f->cause_s) {
		f->cause = TFH_CAUSE_COUNT;
		f->cause_s = rest;
	}
}

static bool is_alike(const struct tfh_ranks *job, const struct tfh_ranks_finding *f, uint64_t every,
		     const struct tfh_ranks_rank *r)
{
	return f->what == TFH_RANKS_PERIODIC && f->every == every && every &&
	       job->rank[f->rank].slow_at[0] == r->slow_at[0];
}

/* Ranks whose slow steps are the same share a finding. */
static int report(struct tfh_ranks *job, uint32_t rank, uint64_t every)
{
	const struct tfh_ranks_rank *r = &job->rank[rank];

	for (uint32_t i = 0; i < job->findings; i++)
		if (is_alike(job, &job->finding[i], every, r)) {
			job->finding[i].ranks++;
			return 0;
		}
	struct tfh_ranks_finding *f = tfh_ranks_add(job, TFH_RANKS_PERIODIC);
	if (!f)
		return -ENOMEM;
	f->rank = rank;
	f->host = r->host;
	f->rack = job->host[r->host].rack;
	f->local = r->local;
	f->ranks = 1;
	f->every = every;
	f->count = r->slow;
	f->s = r->slow_s / (double)r->slow;
	f->usual_s = r->usual_s;
	f->until = 1;
	find_cause(r, f);
	return 0;
}

int tfh_ranks_find_rare(struct tfh_ranks *job)
{
	double *share = malloc((job->n + 1u) * sizeof(*share));
	uint32_t n = 0;
	int rc = share ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < job->n && !rc; i++)
		if (job->rank[i].wall_s > 0)
			share[n++] = job->rank[i].slow_s / job->rank[i].wall_s;
	/* What all ranks do at the same time makes none of them wait. */
	double usual = share ? tfh_ranks_median(share, n) : 0;
	free(share);
	for (uint32_t i = 0; i < job->n && !rc; i++) {
		const struct tfh_ranks_rank *r = &job->rank[i];
		double over = r->wall_s > 0 ? r->slow_s / r->wall_s - usual : 0;
		if (r->slow < TFH_RANKS_RARE_FEWEST || over < TFH_RANKS_RARE_SHARE ||
		    (double)r->slow > TFH_RANKS_RARE_MOST * (double)r->steps)
			continue;
		uint64_t every = period_of(r);
		if (every || over >= TFH_RANKS_RARE_ODD)
			rc = report(job, i, every);
	}
	return rc;
}
