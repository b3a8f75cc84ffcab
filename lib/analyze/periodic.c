/*
 * Steps that are slow in turn: every n-th one writes a log, collects garbage, evaluates a metric.
 * Outliers by the median absolute deviation, as one slow step among few would hide itself in a
 * standard deviation; their spacing tells whether they come regularly.
 */
#include <math.h>
#include <stdlib.h>

#include "analyze/internal.h"

#define OUTLIER_MAD 6
#define OUTLIER_SHARE 0.2 /* and this part of a usual step */
#define FEWEST 3
/* Spacings this near to their median, most of them, make a period. */
#define REGULAR 0.8

struct slow {
	uint64_t index;
	double extra;
	int8_t cause;
};

static double limit_of(const struct tfh_result *r, double *median)
{
	double *v = tfh_big_array(r->n_step, sizeof(*v)), limit = INFINITY;
	size_t n = 0;

	TFH_EACH (i, v ? r->n_step : 0)
		if (r->step[i].segment == TFH_SEGMENT_TRAIN)
			v[n++] = r->step[i].dur_s;
	if (n >= 2 * FEWEST) {
		*median = tfh_quantile(v, n, 0.5);
		TFH_EACH (i, n)
			v[i] = fabs(v[i] - *median);
		limit = *median + fmax(OUTLIER_MAD * 1.4826 * tfh_quantile(v, n, 0.5),
				       OUTLIER_SHARE * *median);
	}
	tfh_big_free(v);
	return limit;
}

/* The usual distance between slow steps, 0 if there is none. */
static double period(const struct slow *s, size_t n)
{
	double *gap = tfh_big_array(n, sizeof(*gap)), p = 0;
	size_t near = 0;

	for (size_t i = 1; gap && i < n; tfh_big_pass(++i))
		gap[i - 1] = (double)(s[i].index - s[i - 1].index);
	if (gap) {
		p = tfh_quantile(gap, n - 1, 0.5);
		TFH_EACH (i, n - 1)
			near += fabs(gap[i] - p) <= 1;
	}
	tfh_big_free(gap);
	return near >= REGULAR * (double)(n - 1) && p >= 2 ? p : 0;
}

/* Which part of these steps is longer than usual. */
static enum tfh_part excess(const struct tfh_result *r, const struct slow *s, size_t n)
{
	double sum[TFH_PART_COUNT] = {0};
	enum tfh_part best = TFH_PART_COMPUTE;

	/* Each may touch a page of its own. */
	for (size_t i = 0; i < n; tfh_big_pass(++i << 6))
		for (int p = 0; p < TFH_PART_COUNT; p++)
			sum[p] += (double)r->step[s[i].index].breakdown[p] -
				  r->breakdown[p].s_per_step;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		if (sum[p] > sum[best])
			best = p;
	return best;
}

void tfh_find_periodic(struct tfh_job *job, struct tfh_result *r)
{
	TFH_VEC(struct slow) slow = {0};
	double median = 0, limit = limit_of(r, &median), extra = 0;

	TFH_EACH (i, r->n_step) {
		const struct tfh_step *s = &r->step[i];
		if (s->segment != TFH_SEGMENT_TRAIN || s->dur_s <= limit)
			continue;
		extra += s->dur_s - median;
		if (TFH_PUSH_BIG(slow, (struct slow){i, s->dur_s - median, s->cause}))
			break;
	}
	double every = slow.n >= FEWEST ? period(slow.v, slow.n) : 0;
	if (every > 0 && extra > 0.005 * r->steps.total_s &&
	    r->n_remark < sizeof(r->remark) / sizeof(r->remark[0]))
		r->remark[r->n_remark++] = tfh_text(
			job,
			"every %.0fth step takes %.1f ms longer than usual (%s), %.1f %% of "
			"training time",
			every, 1e3 * extra / (double)slow.n,
			tfh_part_name(excess(r, slow.v, slow.n)), 100 * extra / r->steps.total_s);
	tfh_big_free(slow.v);
}
