/* Order statistics: the k-th smallest and a quantile are those of the sorted values, whatever their order was, with ties,
 * infinities and orders that part badly; a list keeps its elements when it gets room in large pages. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/sort.h"
#include "judge/stats.h"
#include "model/vec.h"

enum { MOST = 3000 };

enum order { RANDOM, UP, DOWN, PIPE, TIES, SAME, INFINITE, TWO, ORDERS };

static double value(enum order order, size_t i, size_t n)
{
	switch (order) {
	case UP:
		return (double)i;
	case DOWN:
		return (double)(n - i);
	case PIPE:
		return (double)(i < n / 2 ? i : n - i);
	case TIES:
		return rand() % 5;
	case SAME:
		return 7;
	case INFINITE:
		return rand() % 3 ? rand() % 100 - 50 : rand() % 2 ? INFINITY : -INFINITY;
	case TWO:
		return i % 2;
	default:
		return (double)rand() - RAND_MAX / 2;
	}
}

static void selected(void **state)
{
	static double was[MOST], sorted[MOST], v[MOST];
	(void)state;

	srand(1);
	for (int round = 0; round < 400; round++) {
		size_t n = round < 100 ? 1 + (size_t)round % 20 : 1 + (size_t)rand() % MOST;
		for (size_t i = 0; i < n; i++)
			was[i] = value(round % ORDERS, i, n);
		memcpy(sorted, was, n * sizeof(*v));
		qsort(sorted, n, sizeof(*v), tfh_by_value);
		for (int try = 0; try < 8; try++) {
			size_t k = try < 2 ? (n - 1) * (size_t)
			try:
				(size_t) rand() % n;
			memcpy(v, was, n * sizeof(*v));
			assert_true(tfh_select(v, n, k) == sorted[k]);
			qsort(v, n, sizeof(*v), tfh_by_value);
			assert_memory_equal(v, sorted, n * sizeof(*v));
		}
	}
}

static void quantiles(void **state)
{
	static double was[MOST], v[MOST];
	const double q[] = {0, 0.05, 0.25, 0.5, 0.95, 1};
	(void)state;

	assert_true(isnan(tfh_quantile(v, 0, 0.5)));
	for (size_t n = 1; n <= MOST; n = n * 3 + 1) {
		for (size_t i = 0; i < n; i++)
			was[i] = (double)((i * 7919) % n);
		for (size_t i = 0; i < sizeof(q) / sizeof(*q); i++) {
			memcpy(v, was, n * sizeof(*v));
			/* values are 0 to n - 1, if n is no multiple of 7919 */
			assert_true(fabs(tfh_quantile(v, n, q[i]) - q[i] * (double)(n - 1)) < 1e-9);
		}
	}
}

static void room(void **state)
{
	TFH_VEC(uint64_t) list = {0};
	(void)state;

	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(TFH_PUSH(list, i), 0);
	for (size_t want = 2000; want < 4u << 20; want *= 8) {
		assert_int_equal(TFH_RESERVE(list, want), 0);
		assert_true(list.cap >= want);
		for (size_t i = list.n; i < want; i++)
			assert_int_equal(TFH_PUSH(list, i), 0);
		for (size_t i = 0; i < want; i++)
			assert_int_equal(list.v[i], i);
	}
	free(list.v);
}

/* A histogram's bins are an eighth wide: equal durations have their exact median, long ones among short ones do not move it. */
static void medians(void **state)
{
	struct tfh_hist equal = {0}, mixed = {0};
	int64_t sum = 0;
	(void)state;

	for (int i = 0; i < 9; i++) {
		tfh_hist_add(&equal, 3180048);
		tfh_hist_add(&mixed, i < 5 ? 1000000 : 9000000);
		sum += i < 5 ? 1000000 : 9000000;
	}
	assert_true(tfh_hist_median(&equal, 9 * 3180048) == 3180048);
	assert_true(fabs(tfh_hist_median(&mixed, sum) - 1000000) < 1000000 / 15.);
	assert_true(tfh_hist_median(&(struct tfh_hist){0}, 0) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selected),
		cmocka_unit_test(quantiles),
		cmocka_unit_test(room),
		cmocka_unit_test(medians),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
