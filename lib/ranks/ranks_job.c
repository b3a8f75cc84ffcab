/* Reads the digests of a job, then finds everything in order. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/ranks_parts.h"

static void sum_up(struct tfh_ranks *job)
{
	double wall = 0;

	for (uint32_t i = 0; i < job->n; i++) {
		wall += job->rank[i].wall_s;
		job->steps += job->rank[i].steps;
	}
	job->step_s = job->steps ? wall / (double)job->steps : NAN;
	job->epoch_ns = INT64_MAX;
	for (uint32_t h = 0; h < job->hosts; h++)
		if (job->host[h].start_ns && job->host[h].start_ns < job->epoch_ns)
			job->epoch_ns = job->host[h].start_ns;
}

/* Findings by how much they lengthen a step, the largest first; then clocks. */
static int most_first(const void *a, const void *b)
{
	const struct tfh_ranks_finding *x = a, *y = b;
	bool c = x->what == TFH_RANKS_CLOCK, d = y->what == TFH_RANKS_CLOCK;

	if (c != d)
		return c ? 1 : -1;
	double s = tfh_ranks_cost(x), t = tfh_ranks_cost(y);
	return s != t ? (s > t ? -1 : 1) : x->rank < y->rank ? -1 : x->rank > y->rank;
}

int tfh_ranks_find(char *const *digest, uint32_t n, const uint64_t *step, struct tfh_ranks **out,
		   struct tfh_err *err)
{
	struct tfh_ranks *job = calloc(1, sizeof(*job));
	int rc;

	*out = NULL;
	if (!job)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	tfh_arena_init(&job->arena, 0);
	tfh_ranks_choose_steps(job, digest, n, step);
	rc = tfh_ranks_read(job, digest, n, err);
	if (rc) {
		tfh_ranks_free(job);
		return rc;
	}
	sum_up(job);
	rc = tfh_ranks_number_places(job);
	if (!rc)
		rc = tfh_ranks_join(job);
	if (!rc)
		rc = tfh_ranks_align(job);
	if (!rc)
		rc = tfh_ranks_find_late(job);
	if (!rc)
		rc = tfh_ranks_find_steps(job);
	if (!rc)
		rc = tfh_ranks_find_slow(job);
	if (!rc)
		rc = tfh_ranks_find_rare(job);
	if (!rc)
		rc = tfh_ranks_find_links(job);
	if (!rc)
		rc = tfh_ranks_find_few_links(job);
	if (!rc)
		rc = tfh_ranks_find_hangs(job);
	if (rc) {
		tfh_ranks_free(job);
		return tfh_err_set(err, rc, "%s", strerror(-rc));
	}
	if (job->findings)
		qsort(job->finding, job->findings, sizeof(*job->finding), most_first);
	*out = job;
	return 0;
}

void tfh_ranks_free(struct tfh_ranks *job)
{
	if (!job)
		return;
	for (uint32_t i = 0; i < job->n; i++)
		tfh_ranks_drop(&job->rank[i]);
	free(job->rank);
	free(job->host);
	free(job->comm);
	free(job->finding);
	free(job->hang);
	tfh_arena_free(&job->arena);
	free(job);
}
