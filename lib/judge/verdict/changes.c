/*
 * When the steps of a run became slower or faster: change points of their duration. Pettitt's rank
 * test (Pettitt, 1979, A non-parametric approach to the change-point problem) finds the likeliest
 * change point of a series and the probability that it is due to chance. The parts before and after
 * it are searched in turn. Where steps grow or shrink steadily, any change point would be
 * arbitrary: if a straight line explains a part better than all levels found in it, it is one
 * change. The tests use medians of blocks of steps, so that single steps have no effect.
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

/* A description of blocks: the squared distances that it leaves, and how many numbers it takes. */
struct level_fit {
	double left;
	uint32_t numbers;
};

/* Their mean. */
static struct level_fit level_of(const struct step_block *v, size_t n)
{
	double mean = 0, sum = 0;

	for (size_t i = 0; i < n; i++)
		mean += v[i].s / (double)n;
	for (size_t i = 0; i < n; i++)
		sum += (v[i].s - mean) * (v[i].s - mean);
	return (struct level_fit){sum, 1};
}

static struct level_fit line_of(const struct step_block *v, size_t n)
{
	double middle = (double)(n - 1) / 2, with = 0, square = 0;

	for (size_t i = 0; i < n; i++) {
		with += ((double)i - middle) * v[i].s;
		square += ((double)i - middle) * ((double)i - middle);
	}
	return (struct level_fit){fmax(level_of(v, n).left - with * with / square, 0), 2};
}

/* By the Bayesian information criterion (Schwarz, 1978, Estimating the dimension of a model), which
 * weighs what a description leaves against the numbers that it takes. */
static bool explains_better(const struct level_fit *a, const struct level_fit *b, size_t n)
{
	double blocks = (double)n;

	return blocks * log(a->left) + a->numbers * log(blocks) + TFH_VERDICT_TREND <
	       blocks * log(b->left) + b->numbers * log(blocks);
}

/* The best two levels. */
static struct level_fit two_levels_of(const struct step_block *v, size_t n)
{
	double all = 0, before = 0, most = 0;

	for (size_t i = 0; i < n; i++)
		all += v[i].s;
	for (size_t i = 1; i < n; i++) {
		before += v[i - 1].s;
		double off = before / (double)i - (all - before) / (double)(n - i);
		most = fmax(most, off * off * (double)i * (double)(n - i) / (double)n);
	}
	return (struct level_fit){fmax(level_of(v, n).left - most, 0), 3};
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

/* The blocks v[0, n) end before step `end`. Returns the levels found in them. Steps that grow
 * steadily can be cut into any number of levels. */
static struct level_fit search(struct tfh_result *r, const struct step_block *v, size_t n,
			       size_t end, struct step_block *sorted, double *room)
{
	size_t at = n >= TFH_VERDICT_CHANGE_BLOCKS ? change_in(v, n, sorted, room) : 0;
	struct level_fit line = line_of(v, n), two = two_levels_of(v, n), levels = level_of(v, n);
	uint32_t before = r->n_change;

	if (!at)
		return levels;
	if (differ(median_of(v, at, room), median_of(v + at, n - at, room))) {
		struct level_fit part = search(r, v, at, v[at].first, sorted, room);
		add_change(r, v[at].first, 0);
		struct level_fit rest = search(r, v + at, n - at, end, sorted, room);
		levels.left = part.left + rest.left;
		levels.numbers = part.numbers + rest.numbers + 1;
	}
	if (explains_better(&line, &levels, n) && explains_better(&line, &two, n)) {
		r->n_change = before;
		if (differ(median_of(v, n / 10 + 1, room),
			   median_of(v + n - n / 10 - 1, n / 10 + 1, room)))
			add_change(r, v[0].first, end);
	}
	return levels;
}

/* A range of steps: their mean duration, and what it consists of. */
struct step_range {
	struct tfh_steps_at at;
	double part[TFH_PART_COUNT];
	double own_s; /* without the share of the time in which the thread waited for a CPU */
};

/* Of the training steps [a, b). */
static struct step_range mean_of(const struct tfh_accounts *accounts, const struct tfh_result *r,
				 size_t a, size_t b)
{
	struct step_range m = {.at = {.begin = a, .end = b}};

	for (size_t i = a; i < b; i++)
		m.at.n += r->step[i].segment == TFH_SEGMENT_TRAIN;
	double n = (double)m.at.n;
	for (size_t i = a; i < b; i++) {
		const struct tfh_step *s = &r->step[i];
		if (s->segment != TFH_SEGMENT_TRAIN)
			continue;
		m.at.mean_s += s->dur_s / n;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			m.part[p] += (double)s->breakdown[p] / n;
	}
	const struct tfh_step *last = b > a ? &r->step[b - 1] : NULL;
	double waits = last ? tfh_driver_wait(accounts->facts, (int64_t)(r->step[a].start_s * 1e9),
					      (int64_t)((last->start_s + last->dur_s) * 1e9))
			    : 0;
	m.own_s = m.at.mean_s * (1 - waits);
	return m;
}

/* Steps of evaluations before a step, which are no steps of training. */
static uint64_t evaluates_before(const struct tfh_result *r, uint64_t step)
{
	uint64_t n = 0;

	for (size_t i = 0; i < step && i < r->n_step; i++)
		n += r->step[i].segment == TFH_SEGMENT_EVAL;
	return n;
}

/* Durations before and after the change at index k, the part and the line that changed most. False:
 * other programs' use of the CPUs explains it. */
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
	x->from_s = from.at.mean_s;
	x->to_s = to.at.mean_s;
	x->evaluates = evaluates_before(r, x->step);
	x->until_evaluates = evaluates_before(r, x->until);
	x->at_s = tfh_into_run(r, r->step[x->step].start_s);
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		double off = to.part[p] - from.part[p];
		off = x->to_s > x->from_s ? off : -off;
		if (off <= most)
			continue;
		most = off;
		x->part = p;
	}
	if (TFH_DETECT_CONTENTION && !differ(from.own_s, to.own_s))
		return false;
	if (x->until) { /* halves hold more samples */
		size_t half = a + (d - a) / 2;
		from = mean_of(accounts, r, a, half);
		to = mean_of(accounts, r, half, d);
	}
	tfh_find_changed_line(accounts, r, &from.at, &to.at, x);
	return true;
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
