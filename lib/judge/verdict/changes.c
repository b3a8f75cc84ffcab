/*
 * When the steps of a run became slower or faster: change points of their duration. Pettitt's rank
 * test (Pettitt, 1979, A non-parametric approach to the change-point problem) finds the likeliest
 * change point of a series and the probability that it is due to chance. The parts before and after
 * it are searched in turn. Where steps grow or shrink steadily (Kendall's rank correlation with
 * time, as in Mann 1945, Nonparametric tests against trend), any change point would be arbitrary:
 * such a part is one change. The tests use medians of blocks of steps, so that single steps have no
 * effect.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

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

/* Index of the change point; 0: it may be due to chance. Pettitt's statistic is largest near the
 * middle of the longer side's ranks; divided by its standard deviation, it is largest at the
 * border. */
static size_t change_in(const struct step_block *v, size_t n, struct step_block *sorted,
			double *rank)
{
	double u = 0, most = 0, m = (double)n, clearest = 0;
	size_t at = 0;

	rank_all(v, n, sorted, rank);
	for (size_t i = 0; i + 1 < n; i++) {
		u += 2 * rank[i] - (m + 1);
		most = fmax(most, fabs(u));
		double clear = u * u / ((double)(i + 1) * (m - (double)(i + 1)));
		if (clear > clearest) {
			clearest = clear;
			at = i + 1;
		}
	}
	double p = 2 * exp(-6 * most * most / (m * m * m + m * m));
	return p < TFH_VERDICT_CHANGE_CHANCE ? at : 0;
}

/* Sum of squared distances from the mean of v[a, b). */
static double spread_of(const struct step_block *v, size_t a, size_t b)
{
	double mean = 0, sum = 0;

	for (size_t i = a; i < b; i++)
		mean += v[i].s / (double)(b - a);
	for (size_t i = a; i < b; i++)
		sum += (v[i].s - mean) * (v[i].s - mean);
	return sum;
}

/* Whether a straight line describes all of v better than two constants that meet at `at` do. */
static bool is_line(const struct step_block *v, size_t n, size_t at)
{
	double all = spread_of(v, 0, n), middle = (double)(n - 1) / 2, with = 0, square = 0;

	for (size_t i = 0; i < n; i++) {
		with += ((double)i - middle) * v[i].s;
		square += ((double)i - middle) * ((double)i - middle);
	}
	return all - with * with / square < spread_of(v, 0, at) + spread_of(v, at, n);
}

/* Whether nearly every later block is longer than every earlier one, or nearly every one
 * shorter. */
static bool is_steady(const struct step_block *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++)
			sum += (v[j].s > v[i].s) - (v[j].s < v[i].s);
	return fabs(sum) >= TFH_VERDICT_TREND * (double)n * (double)(n - 1) / 2;
}

static bool differ(double from, double to)
{
	return fabs(to - from) >= TFH_VERDICT_CHANGE_SHARE * fmin(from, to);
}

static void add_change(struct tfh_result *r, uint64_t step, uint64_t until)
{
	if (r->n_change < TFH_CHANGES)
		r->change[r->n_change++] = (struct tfh_change){.step = step, .until = until};
}

/* The blocks v[0, n) end before step `end`. */
static void search(struct tfh_result *r, const struct step_block *v, size_t n, size_t end,
		   struct step_block *sorted, double *room)
{
	size_t at = n >= TFH_VERDICT_CHANGE_BLOCKS ? change_in(v, n, sorted, room) : 0;

	if (!at)
		return;
	if (is_line(v, n, at) && is_steady(v, n)) {
		if (differ(median_of(v, n / 10 + 1, room),
			   median_of(v + n - n / 10 - 1, n / 10 + 1, room)))
			add_change(r, v[0].first, end);
		return;
	}
	if (!differ(median_of(v, at, room), median_of(v + at, n - at, room)))
		return;
	search(r, v, at, v[at].first, sorted, room);
	add_change(r, v[at].first, 0);
	search(r, v + at, n - at, end, sorted, room);
}

/* A range of steps: their mean duration, and what it consists of. */
struct step_range {
	double s, part[TFH_PART_COUNT];
	double own_s; /* without the share of the time in which the thread waited for a CPU */
};

/* Of the training steps [a, b). */
static struct step_range mean_of(const struct tfh_accounts *accounts, const struct tfh_result *r,
				 size_t a, size_t b)
{
	struct step_range m = {0};
	size_t n = 0;

	for (size_t i = a; i < b; i++)
		n += r->step[i].segment == TFH_SEGMENT_TRAIN;
	for (size_t i = a; i < b; i++) {
		const struct tfh_step *s = &r->step[i];
		if (s->segment != TFH_SEGMENT_TRAIN)
			continue;
		m.s += s->dur_s / (double)n;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			m.part[p] += (double)s->breakdown[p] / (double)n;
	}
	const struct tfh_step *last = b > a ? &r->step[b - 1] : NULL;
	double waits = last ? tfh_driver_wait(accounts->facts, (int64_t)(r->step[a].start_s * 1e9),
					      (int64_t)((last->start_s + last->dur_s) * 1e9))
			    : 0;
	m.own_s = m.s * (1 - waits);
	return m;
}

/* Durations before and after the change at index k, and the part that changed most. False: other
 * programs' use of the CPUs explains it. */
static bool describe(const struct tfh_accounts *accounts, struct tfh_result *r, uint32_t k)
{
	struct tfh_change *x = &r->change[k];
	size_t a = 0, b = x->step, c = b, d = r->n_step;
	double most = 0;

	if (x->until) {
		d = x->until;
		a = b;
		b += (d - b) / 10 + 1;
		c = d - (b - a);
	} else {
		for (uint32_t i = 0; i < r->n_change; i++) {
			a = r->change[i].step < x->step ? r->change[i].step : a;
			if (r->change[i].step > x->step && d > r->change[i].step)
				d = r->change[i].step;
		}
	}
	struct step_range from = mean_of(accounts, r, a, b), to = mean_of(accounts, r, c, d);
	x->from_s = from.s;
	x->to_s = to.s;
	x->at_s = tfh_into_run(r, r->step[x->step].start_s);
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		double off = to.part[p] - from.part[p];
		off = to.s > from.s ? off : -off;
		if (off <= most)
			continue;
		most = off;
		x->part = p;
	}
	return !TFH_DETECT_CONTENTION || differ(from.own_s, to.own_s);
}

int tfh_find_changes(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	size_t n = r->steps.count / TFH_CHANGE_STEPS, per = TFH_CHANGE_STEPS, m = 0, in = 0;
	bool real[TFH_CHANGES];
	uint32_t kept = 0;
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
	search(r, v, m, r->n_step, sorted, room);
	for (uint32_t i = 0; i < r->n_change; i++)
		real[i] = describe(accounts, r, i);
	for (uint32_t i = 0; i < r->n_change; i++)
		if (real[i])
			r->change[kept++] = r->change[i];
	r->n_change = kept;
	free(v);
	free(steps);
	return 0;
}
