#include "diff/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "base/sort.h"

/* ---- Student's t ---- */

/* Abramowitz and Stegun 26.2.23: the normal deviate beyond which `tail` lies, to 4.5e-4. */
static double normal(double tail)
{
	double t = sqrt(-2 * log(tail));

	return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
			   (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

double tfh_student(double chance, double df)
{
	double tail = chance / 2, x = normal(tail), x2 = x * x, v = floor(df);

	if (!(v >= 1))
		return NAN;
	if (v < 2)
		return 1 / tan(M_PI * tail);
	if (v < 3)
		return (1 - 2 * tail) * sqrt(2 / (4 * tail * (1 - tail)));
	/* Abramowitz and Stegun 26.7.5 */
	return x + x * (x2 + 1) / (4 * v) + x * ((5 * x2 + 16) * x2 + 3) / (96 * v * v) +
	       x * (((3 * x2 + 19) * x2 + 17) * x2 - 15) / (384 * v * v * v);
}

/* ---- blocks ---- */

static uint32_t cut_of(uint32_t n)
{
	return (uint32_t)(TFH_DIFF_TRIM * n);
}

/* The factor by which correlation of neighbouring blocks increases the variance: (1 + r) / (1 - r)
 * for a first-order process (Bartlett 1946). `v` is in time order and Winsorized. */
static double inertia(const double *v, uint32_t n)
{
	double mean = 0, all = 0, next = 0;

	for (uint32_t i = 0; i < n; i++)
		mean += v[i] / n;
	for (uint32_t i = 0; i < n; i++) {
		all += (v[i] - mean) * (v[i] - mean);
		next += i ? (v[i] - mean) * (v[i - 1] - mean) : 0;
	}
	double r = all > 0 ? next / all : 0;
	r = r < 0 ? 0 : r > TFH_DIFF_CORRELATION_MOST ? TFH_DIFF_CORRELATION_MOST : r;
	return (1 + r) / (1 - r);
}

/* Variance of the trimmed mean of one part. */
static double variance_of(const double block_s[][TFH_DIFF_PARTS], uint32_t n, int part,
			  double *inert)
{
	double v[TFH_DIFF_BLOCKS], sorted[TFH_DIFF_BLOCKS], mean = 0, sum = 0;
	uint32_t cut = cut_of(n), kept = n - 2 * cut;

	for (uint32_t i = 0; i < n; i++)
		sorted[i] = block_s[i][part];
	qsort(sorted, n, sizeof(*sorted), tfh_by_value);
	for (uint32_t i = 0; i < n; i++) {
		v[i] = fmin(fmax(block_s[i][part], sorted[cut]), sorted[n - 1 - cut]);
		mean += v[i] / n;
	}
	for (uint32_t i = 0; i < n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	*inert = inertia(v, n);
	return sum / ((double)kept * (kept - 1)) * *inert;
}

/* Orders blocks by their step length. A step's parts use the same blocks as the step, so that they
 * add up. */
static void order_blocks(const double block_s[][TFH_DIFF_PARTS], uint32_t n,
			 uint32_t at[TFH_DIFF_BLOCKS])
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = i;
		for (; k && block_s[at[k - 1]][TFH_DIFF_STEP] > block_s[i][TFH_DIFF_STEP]; k--)
			at[k] = at[k - 1];
		at[k] = i;
	}
}

void tfh_means_of(const double block_s[][TFH_DIFF_PARTS], uint32_t n, struct tfh_diff_means *out)
{
	uint32_t at[TFH_DIFF_BLOCKS], cut = cut_of(n), kept = n - 2 * cut;
	double inert = 1;

	order_blocks(block_s, n, at);
	for (int p = 0; p < TFH_DIFF_PARTS; p++) {
		out->mean_s[p] = n ? 0 : block_s[0][p];
		for (uint32_t i = cut; n && i < n - cut; i++)
			out->mean_s[p] += block_s[at[i]][p] / kept;
		out->var[p] = n ? variance_of(block_s, n, p, &inert) : NAN;
	}
	/* `inert` is that of the last part, the step. */
	out->df = n ? fmax((kept - 1) / inert, fmin(kept - 1, TFH_DIFF_LEAST_DF)) : NAN;
}
