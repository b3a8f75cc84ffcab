#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sort.h"
#include "judge/stats.h"
#include "judge/vec.h"

#include "model/big.h"

int tfh_vec_reserve(void **v, size_t *cap, size_t want, size_t size)
{
	const uintptr_t page = 2u << 20; /* a large one */
	void *p = realloc(*v, want * size);

	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = want;
	uintptr_t from = ((uintptr_t)p + page - 1) & ~(page - 1);
	uintptr_t to = ((uintptr_t)p + want * size) & ~(page - 1);
	if (to > from)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
	return 0;
}

int tfh_vec_grow(void **v, size_t *cap, size_t n, size_t size)
{
	size_t want = *cap ? *cap * 2 : 64;
	void *p;

	if (want <= n)
		want = n + 1;
	p = realloc(*v, want * size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = want;
	return 0;
}

enum { DIGIT = 16 }; /* bits */
/* Bits of a number in the order of numbers, and back. */
static uint64_t key_of(double x)
{
	uint64_t k;

	memcpy(&k, &x, sizeof(k));
	return k >> 63 ? ~k : k | 1ull << 63;
}

static double of_key(uint64_t k)
{
	double x;

	k = k >> 63 ? k & ~(1ull << 63) : ~k;
	memcpy(&x, &k, sizeof(x));
	return x;
}

/* The k-th smallest by its digits, the highest first: a pass over all for each of four. */
static double by_digits(const double *v, size_t n, size_t k)
{
	uint64_t *count = malloc(sizeof(*count) << DIGIT), prefix = 0, known = 0, digit;

	if (!count)
		return NAN;
	for (int shift = 64 - DIGIT; shift >= 0; shift -= DIGIT) {
		memset(count, 0, sizeof(*count) << DIGIT);
		TFH_EACH (i, n) {
			uint64_t key = key_of(v[i]);
			if ((key & known) == prefix)
				count[key >> shift & ((1u << DIGIT) - 1)]++;
		}
		for (digit = 0; k >= count[digit]; digit++)
			k -= count[digit];
		prefix |= digit << shift;
		known |= (uint64_t)((1u << DIGIT) - 1) << shift;
	}
	free(count);
	return of_key(prefix);
}

double tfh_select(double *v, size_t n, size_t k)
{
	if (n > TFH_SORTED_MOST)
		return by_digits(v, n, k);
	qsort(v, n, sizeof(*v), tfh_by_value);
	return v[k];
}

/* What follows the i-th smallest, which is x. */
static double next_of(const double *v, size_t n, size_t i, double x)
{
	double least = INFINITY;
	size_t upto = 0;

	TFH_EACH (j, n) {
		upto += v[j] <= x;
		if (v[j] > x && v[j] < least)
			least = v[j];
	}
	return upto > i + 1 ? x : least;
}

/* Type-7 quantile (linear between order statistics), as numpy's default. NAN of nothing. */
double tfh_quantile(double *v, size_t n, double q)
{
	if (!n)
		return NAN;
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;
	double x = tfh_select(v, n, i);
	if (i + 1 >= n)
		return x;
	double next = n > TFH_SORTED_MOST ? next_of(v, n, i, x) : v[i + 1];
	return x + (at - (double)i) * (next - x);
}

/* Moves each element down to its place. False: given up, as they are far from it. */
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

/* Sorts what mostly is in order already; where there is much of it without a copy of it. */
void tfh_sort(void *v, size_t n, size_t size, int (*cmp)(const void *, const void *, void *),
	      void *arg)
{
	const char *p = v;
	size_t i = 1;

	while (i < n && cmp(p + (i - 1) * size, p + i * size, arg) <= 0)
		tfh_big_pass(++i);
	if (i < n && (n * size < TFH_SORTED_MOST * sizeof(double) || !settle(v, n, size, cmp, arg)))
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
