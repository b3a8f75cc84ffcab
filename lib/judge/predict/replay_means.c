/* The mean of the replays of sampled windows and its standard error, and what follows from them for
 * all steps of the run. */
#include <math.h>
#include <stdlib.h>

#include "judge/predict/predict.h"

static double *times(const struct tfh_replays *s)
{
	double *v = malloc((s->of.n + 1) * sizeof(*v));

	for (size_t i = 0; v && i < s->of.n; i++)
		v[i] = s->of.v[i].s;
	return v;
}

/* Whether the steps beyond the edge have a constant distance: then they belong to the job. */
static bool regular(const struct tfh_replays *s, double edge, size_t over)
{
	double *gap = malloc((over + 1) * sizeof(*gap)), median;
	size_t n = 0, near = 0, last = 0;

	for (size_t i = 0; gap && i < s->of.n; i++) {
		if (s->of.v[i].s <= edge)
			continue;
		if (last)
			gap[n++] = (double)(i + 1 - last);
		last = i + 1;
	}
	median = gap ? tfh_quantile(gap, n, 0.5) : 0;
	for (size_t i = 0; gap && i < n; i++)
		near += fabs(gap[i] - median) <= TFH_REGULAR_OFF;
	free(gap);
	return n >= TFH_PREDICT_DISTANCES && (double)near >= TFH_REGULAR_SHARE * (double)n;
}

/* Longer steps are clipped to this duration. */
static double edge_of(const struct tfh_replays *s)
{
	double *v = times(s), median, edge;
	size_t n = s->of.n, over = 0;

	if (!v || !n) {
		free(v);
		return INFINITY;
	}
	median = tfh_quantile(v, n, 0.5);
	for (size_t i = 0; i < n; i++)
		v[i] = fabs(v[i] - median);
	edge = median + fmax(TFH_OUTLIER_MAD * TFH_MAD_SIGMA * tfh_quantile(v, n, 0.5),
			     TFH_OUTLIER_SHARE * median);
	for (size_t i = 0; i < n; i++)
		over += s->of.v[i].s > edge;
	free(v);
	bool rare = over * TFH_PREDICT_RARE_PART <= n || (over == 1 && n >= TFH_PREDICT_ONE_OF);
	return rare && !regular(s, edge, over) ? edge : INFINITY;
}

static double spread(double sum, double sum2, size_t n)
{
	double m = sum / (double)n, var = n > 1 ? sum2 / (double)n - m * m : 0;

	return var > 0 ? sqrt(var / (double)(n - 1)) : 0;
}

void tfh_settle_replays(struct tfh_replays *s)
{
	double sum = 0, sum2 = 0, raw = 0, was = 0, block = 0, blocks = 0, blocks2 = 0,
	       edge = edge_of(s);
	size_t n = s->of.n, full = 0;

	for (size_t i = 0; i < n; i++) {
		struct tfh_replayed *x = &s->of.v[i];
		raw += x->s;
		x->s = fmin(x->s, edge);
		sum += x->s;
		sum2 += x->s * x->s;
		was += x->was;
		s->steps += x->steps;
		block += x->s / TFH_PREDICT_BLOCK;
		if (i % TFH_PREDICT_BLOCK != TFH_PREDICT_BLOCK - 1)
			continue;
		blocks += block;
		blocks2 += block * block;
		full++;
		block = 0;
	}
	s->mean = n ? sum / (double)n : NAN;
	s->raw = n ? raw / (double)n : NAN;
	s->was = n ? was / (double)n : NAN;
	s->error = !n				       ? NAN
		   : full >= TFH_PREDICT_FEWEST_BLOCKS ? spread(blocks, blocks2, full)
						       : spread(sum, sum2, n);
}

double tfh_for_all_steps(const struct tfh_replays *s, double step)
{
	double var = 0, cov = 0, slope;

	for (size_t i = 0; i < s->of.n; i++) {
		double off = s->of.v[i].was - s->was;
		var += off * off;
		cov += off * (s->of.v[i].s - s->mean);
	}
	/* Equal steps in the sample do not show how much others vary. */
	double least = s->was * TFH_PREDICT_ALIKE * s->was * TFH_PREDICT_ALIKE * (double)s->of.n;
	slope = var > least ? fmin(fmax(cov / var, 0), 1) : 0;
	return s->mean + slope * (step - s->was);
}
