#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/internal.h"

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
