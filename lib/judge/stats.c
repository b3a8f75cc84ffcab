#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "judge/stats.h"
#include "model/vec.h"

static double middle_of(double a, double b, double c)
{
	return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* Partitions v, which has more than two values, at a pivot. Values before index *to are at most the
 * pivot, values from index *from on are at least the pivot, and those in between equal it. A long
 * array is not kept in memory on the way. */
static void part(double *v, int64_t n, int64_t *to, int64_t *from)
{
	double pivot = middle_of(v[0], v[n / 2], v[n - 1]);
	int64_t i = 0, j = n - 1;

	while (i <= j) {
		while (v[i] < pivot)
			tfh_big_pass((size_t)++i);
		while (pivot < v[j])
			tfh_big_pass((size_t)--j);
		if (i > j)
			break;
		double x = v[i];
		v[i++] = v[j];
		v[j--] = x;
	}
	*to = j + 1;
	*from = i;
}

/* Hoare's FIND (Communications of the ACM 4, 1961, algorithm 65). If the pivots keep partitioning
 * badly, the rest is sorted. */
double tfh_select(double *v, size_t n, size_t k)
{
	int64_t begin = 0, end = (int64_t)n, at = (int64_t)k, work = 0, to, from;

	while (end - begin > TFH_SELECT_FEW && work < TFH_SELECT_WORK * (int64_t)n) {
		work += end - begin;
		part(v + begin, end - begin, &to, &from);
		if (at < begin + to)
			end = begin + to;
		else if (at >= begin + from)
			begin += from;
		else
			return v[k];
	}
	qsort(v + begin, (size_t)(end - begin), sizeof(*v), tfh_by_value);
	return v[k];
}

/* The smallest of n values. */
static double least_of(const double *v, size_t n)
{
	double least = v[0];

	TFH_EACH (i, n)
		least = fmin(least, v[i]);
	return least;
}

double tfh_share_error(double share, double n)
{
	return 2 * sqrt((share * (1 - share) + 1 / n) / n);
}

double tfh_lead_error(double share, double other, double n)
{
	return 2 * sqrt((share + other - (share - other) * (share - other) + 1 / n) / n);
}

/* The type-7 quantile, NumPy's default. */
double tfh_quantile(double *v, size_t n, double q)
{
	if (!n)
		return NAN;
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;
	double x = tfh_select(v, n, i);
	if (i + 1 >= n)
		return x;
	double next = least_of(v + i + 1, n - i - 1);
	return x + (at - (double)i) * (next - x);
}

/* Insertion sort. Returns false if it gave up because elements are too far from their places. */
static bool settle(char *v, size_t n, size_t size, int (*cmp)(const void *, const void *, void *),
		   void *arg)
{
	char x[128];
	size_t moves = 0;

	if (size > sizeof(x))
		return false;
	for (size_t i = 1; i < n; tfh_big_pass(++i)) {
		size_t k = i;
		while (k && cmp(v + (k - 1) * size, v + i * size, arg) > 0)
			k--;
		if (k == i)
			continue;
		moves += i - k;
		if (moves > TFH_SORT_MOVES * n)
			return false;
		memcpy(x, v + i * size, size);
		memmove(v + (k + 1) * size, v + k * size, (i - k) * size);
		memcpy(v + k * size, x, size);
	}
	return true;
}

/* Sorts data that is mostly in order; large arrays without a copy. */
void tfh_sort(void *v, size_t n, size_t size, int (*cmp)(const void *, const void *, void *),
	      void *arg)
{
	const char *p = v;
	size_t i = 1;

	while (i < n && cmp(p + (i - 1) * size, p + i * size, arg) <= 0)
		tfh_big_pass(++i);
	if (i < n && (n * size < TFH_SORT_COPY || !settle(v, n, size, cmp, arg)))
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

double tfh_hist_median(const struct tfh_hist *h, int64_t ns)
{
	double median = tfh_hist_quantile(h, 0.5), mean = h->n ? (double)ns / (double)h->n : 0;

	return bin_of((int64_t)mean) == bin_of((int64_t)median) ? mean : median;
}
