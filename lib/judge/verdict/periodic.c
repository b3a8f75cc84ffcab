/*
 * Steps that are slow at regular intervals: every n-th one writes a log, collects garbage,
 * evaluates a metric. If there are none, a few much longer ones at irregular times. Outliers are
 * found by the median absolute deviation, because a single slow step among few would inflate a
 * standard deviation enough to hide itself. Their distances show whether they are regular.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/verdict/verdict.h"

static double limit_of(const struct tfh_result *r, double *median)
{
	double *v = tfh_big_array(r->n_step, sizeof(*v)), limit = INFINITY;
	size_t n = 0;

	TFH_EACH (i, v ? r->n_step : 0)
		if (r->step[i].segment == TFH_SEGMENT_TRAIN)
			v[n++] = r->step[i].dur_s;
	if (n >= TFH_VERDICT_STEPS_PER_SLOW * TFH_VERDICT_SLOW_STEPS) {
		*median = tfh_quantile(v, n, 0.5);
		TFH_EACH (i, n)
			v[i] = fabs(v[i] - *median);
		limit = *median + fmax(TFH_OUTLIER_MAD * TFH_MAD_SIGMA * tfh_quantile(v, n, 0.5),
				       TFH_OUTLIER_SHARE * *median);
	}
	tfh_big_free(v);
	return limit;
}

/* The typical distance between slow steps, 0 if there is none; *regular: how many of them keep
 * it. */
static double period(const struct tfh_slow_step_at *s, size_t n, double *regular)
{
	double *gap = tfh_big_array(n, sizeof(*gap)), p = 0;
	size_t near = 0;

	for (size_t i = 1; gap && i < n; tfh_big_pass(++i))
		gap[i - 1] = (double)(s[i].index - s[i - 1].index);
	if (gap) {
		p = tfh_quantile(gap, n - 1, 0.5);
		TFH_EACH (i, n - 1)
			near += fabs(gap[i] - p) <= TFH_REGULAR_OFF;
	}
	tfh_big_free(gap);
	*regular = (double)near / (double)(n - 1);
	return *regular >= TFH_REGULAR_SHARE && p >= TFH_VERDICT_LEAST_DISTANCE ? p : 0;
}

/* The part of these steps that exceeds its usual time most. */
static enum tfh_part excess(const struct tfh_result *r, const struct tfh_slow_step_at *s, size_t n)
{
	double sum[TFH_PART_COUNT] = {0};
	enum tfh_part best = TFH_PART_COMPUTE;

	/* Each step may touch a page of its own. */
	for (size_t i = 0; i < n; tfh_big_pass(++i << 6))
		for (int p = 0; p < TFH_PART_COUNT; p++)
			sum[p] += (double)r->step[s[i].index].breakdown[p] -
				  r->breakdown[p].s_per_step;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		if (sum[p] > sum[best])
			best = p;
	return best;
}

static int by_index(const void *a, const void *b)
{
	const struct tfh_slow_step_at *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

/* Moves the slowest steps to the front, slowest first, at most TFH_VERDICT_SLOWEST. Returns their
 * number. */
static size_t slowest(struct tfh_slow_step_at *s, size_t n)
{
	struct tfh_slow_step_at top[TFH_VERDICT_SLOWEST];
	size_t m = 0;

	TFH_EACH (i, n) {
		size_t k = m;
		while (k && top[k - 1].extra < s[i].extra)
			k--;
		if (k == TFH_VERDICT_SLOWEST)
			continue;
		m += m < TFH_VERDICT_SLOWEST;
		memmove(top + k + 1, top + k, (m - 1 - k) * sizeof(*top));
		top[k] = s[i];
	}
	memcpy(s, top, m * sizeof(*top));
	return m;
}

/* Whether slow steps occur every p steps throughout the run. */
static bool throughout(const struct tfh_slow_step_at *s, size_t n, double p, uint64_t steps)
{
	double off = TFH_VERDICT_ENDS * p;

	return (double)s[0].index <= off && (double)(steps - s[n - 1].index) <= off + 1 &&
	       fabs((double)steps / p - (double)n) <= TFH_VERDICT_ENDS;
}

/*
 * Finds the slow steps that are regular: all of them, or only the slowest ones if others are slow
 * for another reason, such as a busy machine. Leaves them at the front, in order. Returns their
 * number; 0: there is no period.
 */
static size_t in_turn(struct tfh_slow_step_at *s, size_t n, uint64_t steps, double *every)
{
	size_t best = 0;
	double regular = 0, most = 0;

	*every = 0;
	if (n < TFH_VERDICT_SLOW_STEPS)
		return 0; /* there is no array to sort */
	*every = period(s, n, &regular);
	if (*every > 0)
		return n;
	n = slowest(s, n);
	for (size_t k = TFH_VERDICT_SLOW_STEPS; k <= n && k <= TFH_VERDICT_SLOWEST; k++) {
		struct tfh_slow_step_at top[TFH_VERDICT_SLOWEST];
		memcpy(top, s, k * sizeof(*s));
		qsort(top, k, sizeof(*s), by_index);
		double p = period(top, k, &regular);
		if (p > 0 && regular >= most && throughout(top, k, p, steps)) {
			best = k;
			most = regular;
			*every = p;
		}
	}
	qsort(s, best, sizeof(*s), by_index);
	return best;
}

/* Whether the other steps hardly compute, although they train, too, and together take less time
 * than these: they only queue their work, and each of these waits for all of it. Nothing would be
 * saved by doing that less often. */
static bool only_queue(const struct tfh_result *r, const struct tfh_slow_step_at *s, size_t n)
{
	double all = 0, computes = 0, longer = 0;
	size_t at = 0;

	TFH_EACH (i, r->n_step) {
		const struct tfh_step *step = &r->step[i];
		bool slow = at < n && s[at].index == i;
		if (slow)
			longer += s[at++].extra;
		if (slow || step->segment != TFH_SEGMENT_TRAIN)
			continue;
		all += step->dur_s;
		computes += (double)step->breakdown[TFH_PART_COMPUTE];
	}
	return all < longer && computes < TFH_VERDICT_QUEUES_SHARE * all;
}

/* Leaves the steps that are much longer than others. Returns their number; 0: they are not few,
 * or do not cost much. */
static size_t few_long(const struct tfh_result *r, double median, struct tfh_slow_step_at *s,
		       size_t n)
{
	double extra = 0;
	size_t all = 0, m = 0;

	TFH_EACH (i, r->n_step)
		all += r->step[i].segment == TFH_SEGMENT_TRAIN;
	TFH_EACH (i, n)
		if (s[i].extra > (TFH_ACCOUNT_LONG_TIMES - 1) * median) {
			extra += s[i].extra;
			s[m++] = s[i];
		}
	bool few = m >= TFH_VERDICT_SLOW_STEPS && (double)m <= TFH_VERDICT_LONG_STEPS * (double)all;
	return few && extra >= TFH_REPORT_SLOW_ADVICE * r->steps.total_s ? m : 0;
}

struct slow {
	TFH_VEC(struct tfh_slow_step_at) at;
};

/* Steps at one place of each round. */
struct at_place {
	uint64_t n, slow;
	double extra;
};

/* Which place of the rounds has the long steps; SIZE_MAX: none, or out of memory. */
static size_t slow_place(const struct tfh_result *r, uint64_t each, double limit, double median)
{
	struct at_place *p = tfh_big_array(each, sizeof(*p));
	size_t best = SIZE_MAX;
	uint64_t k = 0;

	TFH_EACH (i, p ? r->n_step : 0) {
		const struct tfh_step *s = &r->step[i];
		struct at_place *at = &p[k % each];
		k += s->segment != TFH_SEGMENT_EVAL;
		if (s->segment != TFH_SEGMENT_TRAIN)
			continue;
		at->n++;
		at->slow += s->dur_s > limit;
		at->extra += s->dur_s - median;
	}
	for (size_t i = 0; p && i < each; i++)
		if (p[i].slow >= TFH_VERDICT_SLOW_STEPS &&
		    (double)p[i].slow >= TFH_REGULAR_SHARE * (double)p[i].n &&
		    (best == SIZE_MAX || p[i].extra > p[best].extra))
			best = i;
	tfh_big_free(p);
	return best;
}

/* Leaves the steps at that place, each as long as it is: the others may be long for other
 * reasons. */
static size_t in_rounds(const struct tfh_result *r, uint64_t each, double limit, double median,
			struct slow *slow)
{
	size_t place = each ? slow_place(r, each, limit, median) : SIZE_MAX;
	uint64_t k = 0;

	slow->at.n = 0;
	TFH_EACH (i, place < SIZE_MAX ? r->n_step : 0) {
		const struct tfh_step *s = &r->step[i];
		if (s->segment == TFH_SEGMENT_EVAL || k++ % each != place ||
		    s->segment != TFH_SEGMENT_TRAIN)
			continue;
		if (TFH_PUSH_BIG(slow->at, ((struct tfh_slow_step_at){i, s->dur_s - median})))
			break;
	}
	return slow->at.n;
}

static void collect(const struct tfh_result *r, double limit, double median, struct slow *slow)
{
	slow->at.n = 0;
	TFH_EACH (i, r->n_step) {
		const struct tfh_step *s = &r->step[i];
		if (s->segment != TFH_SEGMENT_TRAIN || s->dur_s <= limit)
			continue;
		if (TFH_PUSH_BIG(slow->at, ((struct tfh_slow_step_at){i, s->dur_s - median})))
			break;
	}
}

void tfh_find_slow_steps(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	uint64_t each = accounts->loops->per_round;
	struct slow slow = {0};
	double median = 0, limit = limit_of(r, &median), extra = 0, every = (double)each;
	size_t n = isfinite(limit) ? in_rounds(r, each, limit, median, &slow) : 0;
	bool rounds = n;

	if (!n) {
		collect(r, limit, median, &slow);
		n = in_turn(slow.at.v, slow.at.n, r->n_step, &every);
	}
	if (!n) {
		collect(r, limit, median, &slow); /* the search moved them */
		n = few_long(r, median, slow.at.v, slow.at.n);
	}
	enum tfh_part part = n ? excess(r, slow.at.v, n) : TFH_PART_COMPUTE;
	if (n && part == TFH_PART_COMPUTE && only_queue(r, slow.at.v, n))
		n = 0;
	TFH_EACH (i, n)
		extra += slow.at.v[i].extra;
	if (n) {
		r->found.slow = (struct tfh_slow_found){.every = every,
							.n = n,
							.longer_s = extra / (double)n,
							.share = extra / r->steps.total_s,
							.part = part};
		tfh_find_slow_line(accounts, slow.at.v, n, r);
	}
	if (rounds && r->found.slow.share >= TFH_BLOCKING_SHARE) {
		r->steps.rounds = accounts->loops->rounds;
		r->steps.per_round = each;
	}
	tfh_big_free(slow.at.v);
}
