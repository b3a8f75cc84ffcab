/* The slowest steps of a rank. Ranks wait for each other, so a slow step is slow for all of them,
 * and hosts that choose independently mostly choose the same steps. */
#include <stdlib.h>

#include "digest/slow_steps.h"

void tfh_slow_steps_add(struct tfh_slow_steps *x, uint32_t most, const struct tfh_slow_step *step)
{
	uint32_t i;

	most = most < TFH_SLOW_STEPS ? most : TFH_SLOW_STEPS;
	if (!most || (x->n == most && !(step->s > x->v[most - 1].s)))
		return;
	for (i = x->n < most ? x->n++ : most - 1; i && step->s > x->v[i - 1].s; i--)
		x->v[i] = x->v[i - 1];
	x->v[i] = *step;
}

static int by_time(const void *a, const void *b)
{
	const struct tfh_slow_step *x = a, *y = b;

	return x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

void tfh_slow_steps_sort(struct tfh_slow_steps *x)
{
	qsort(x->v, x->n, sizeof(*x->v), by_time);
}

uint32_t tfh_slow_steps_at(const struct tfh_slow_steps *x, int64_t t)
{
	uint32_t from = 0, to = x->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;
		if (x->v[middle].t1 <= t)
			from = middle + 1;
		else
			to = middle;
	}
	return from < x->n && x->v[from].t0 <= t ? from : UINT32_MAX;
}
