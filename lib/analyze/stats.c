#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/device.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Type-7 quantile (linear between order statistics), as numpy's default. NAN of nothing. */
double tfh_quantile(double *v, size_t n, double q)
{
	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), by_value);
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;
	if (i + 1 >= n)
		return v[n - 1];
	return v[i] + (at - (double)i) * (v[i + 1] - v[i]);
}

/* printf into the result's memory; "" when there is none. */
const char *tfh_text(struct tfh_job *job, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	const char *s = tfh_arena_strdup(&job->arena, text);
	return s ? s : "";
}

/* Sorts what mostly is in order already. */
void tfh_sort(void *v, size_t n, size_t size, int (*cmp)(const void *, const void *, void *),
	      void *arg)
{
	const char *p = v;
	size_t i = 1;

	while (i < n && cmp(p + (i - 1) * size, p + i * size, arg) <= 0)
		i++;
	if (i < n)
		qsort_r(v, n, size, cmp, arg);
}

/* Bin of a duration: exact below 8, then eight to the octave. */
static size_t bin_of(int64_t ns)
{
	uint64_t v = ns > 0 ? (uint64_t)ns : 0;

	if (v < 8)
		return v;
	size_t top = 63 - (size_t)__builtin_clzll(v);
	size_t bin = (top - 2) * 8 + ((v >> (top - 3)) & 7);
	return bin < TFH_HIST_BINS ? bin : TFH_HIST_BINS - 1;
}

void tfh_hist_add(struct tfh_hist *h, int64_t ns)
{
	h->n++;
	h->bin[bin_of(ns)]++;
}

double tfh_hist_quantile(const struct tfh_hist *h, double q)
{
	double want = q * (double)h->n, seen = 0;

	for (size_t i = 0; i < TFH_HIST_BINS && h->n; i++) {
		seen += h->bin[i];
		if (seen < want || !h->bin[i])
			continue;
		if (i < 8)
			return (double)i;
		double base = (double)(8 + i % 8) * (double)(1ull << (i / 8 - 1));
		return base * (1 + 0.5 / (double)(8 + i % 8)); /* middle of the bin */
	}
	return 0;
}
