/*
 * When the steps of a run became slower or faster: change points of their duration. Pettitt's rank test (Pettitt 1979,
 * A non-parametric approach to the change-point problem) finds the likeliest change point of a series and the
 * probability that it is due to chance. The parts before and after it are searched in turn. The test uses medians of
 * blocks of steps, so that single steps have no effect.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/verdict/verdict.h"

struct step_block {
	double s;
	size_t first; /* of the first step */
	uint32_t at;  /* index of the block */
};

static int by_length(const void *a, const void *b)
{
	const struct step_block *x = a, *y = b;

	return x->s < y->s ? -1 : x->s > y->s;
}

static double median_of(const struct step_block *v, size_t n, double *room)
{
	for (size_t i = 0; i < n; i++)
		room[i] = v[i].s;
	return tfh_quantile(room, n, 0.5);
}

/* Writes ranks to rank[]; equal durations share their mean rank. */
static void rank_all(const struct step_block *v, size_t n, struct step_block *sorted, double *rank)
{
	for (size_t i = 0; i < n; i++) {
		sorted[i] = v[i];
		sorted[i].at = (uint32_t)i;
	}
	qsort(sorted, n, sizeof(*sorted), by_length);
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && sorted[j].s <= sorted[i].s; j++)
			;
		for (size_t k = i; k < j; k++)
			rank[sorted[k].at] = (double)(i + j + 1) / 2;
	}
}

/* Index of the change point; 0: it may be due to chance. */
static size_t change_in(const struct step_block *v, size_t n, struct step_block *sorted,
			double *rank)
{
	double u = 0, most = 0;
	size_t at = 0;

	rank_all(v, n, sorted, rank);
	for (size_t i = 0; i + 1 < n; i++) {
		u += 2 * rank[i] - (double)(n + 1);
		if (fabs(u) > most) {
			most = fabs(u);
			at = i + 1;
		}
	}
	double m = (double)n, p = 2 * exp(-6 * most * most / (m * m * m + m * m));
	return p < TFH_VERDICT_CHANGE_CHANCE ? at : 0;
}

static void search(struct tfh_result *r, const struct step_block *v, size_t n,
		   struct step_block *sorted, double *room)
{
	size_t at = n >= TFH_VERDICT_CHANGE_BLOCKS ? change_in(v, n, sorted, room) : 0;

	if (!at)
		return;
	double from = median_of(v, at, room), to = median_of(v + at, n - at, room);
	if (fabs(to - from) < TFH_VERDICT_CHANGE_SHARE * fmin(from, to))
		return;
	search(r, v, at, sorted, room);
	if (r->n_change < TFH_CHANGES)
		r->change[r->n_change++] = (struct tfh_change){.step = v[at].first};
	search(r, v + at, n - at, sorted, room);
}

/* Finds the part that changed most between the steps [a, b) and [b, c), and the typical durations of both. */
static void describe(struct tfh_result *r, struct tfh_change *x, size_t a, size_t b, size_t c)
{
	double part[2][TFH_PART_COUNT] = {{0}}, dur[2] = {0}, most = 0;
	size_t n[2] = {0};

	for (size_t i = a; i < c; i++) {
		const struct tfh_step *s = &r->step[i];
		int k = i >= b;
		if (s->segment != TFH_SEGMENT_TRAIN)
			continue;
		n[k]++;
		dur[k] += s->dur_s;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			part[k][p] += (double)s->breakdown[p];
	}
	for (int k = 0; k < 2; k++)
		n[k] = n[k] ? n[k] : 1;
	x->from_s = dur[0] / (double)n[0];
	x->to_s = dur[1] / (double)n[1];
	/* Steps count from the first record, the run from the start of its process. */
	x->at_s = r->step[b].start_s - (r->n_tree ? r->tree[0].begin_s : 0);
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		double off = part[1][p] / (double)n[1] - part[0][p] / (double)n[0];
		off = x->to_s > x->from_s ? off : -off;
		if (off <= most)
			continue;
		most = off;
		x->part = p;
	}
}

int tfh_find_changes(struct tfh_result *r)
{
	size_t n = r->steps.count / TFH_CHANGE_STEPS, per = TFH_CHANGE_STEPS, m = 0, in = 0, k = 0;
	double room[TFH_CHANGE_BLOCKS];
	struct step_block *v, *sorted;

	if (n > TFH_CHANGE_BLOCKS) {
		per = r->steps.count / TFH_CHANGE_BLOCKS + 1;
		n = r->steps.count / per;
	}
	if (n < TFH_VERDICT_CHANGE_BLOCKS)
		return 0;
	v = malloc(2 * n * sizeof(*v));
	double *steps = malloc(per * sizeof(*steps));
	if (!v || !steps) {
		free(v);
		free(steps);
		return -ENOMEM;
	}
	sorted = v + n;
	TFH_EACH (i, r->n_step) {
		if (r->step[i].segment != TFH_SEGMENT_TRAIN || m == n)
			continue;
		v[m].first = in ? v[m].first : i;
		steps[in++] = r->step[i].dur_s;
		if (in < per)
			continue;
		v[m++].s = tfh_quantile(steps, in, 0.5);
		in = 0;
	}
	search(r, v, m, sorted, room);
	for (; k < r->n_change; k++)
		describe(r, &r->change[k], k ? r->change[k - 1].step : 0, r->change[k].step,
			 k + 1 < r->n_change ? r->change[k + 1].step : r->n_step);
	free(v);
	free(steps);
	return 0;
}
