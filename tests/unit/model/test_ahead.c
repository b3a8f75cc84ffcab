/* Blocks that are prepared ahead come complete and in order, with no thread, one and several; a reader
 * that stops early does not wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/ahead.h"

struct numbers {
	unsigned filled, end;
};

static bool fill(void *arg, void *block, uint64_t i)
{
	struct numbers *n = arg;

	*(unsigned *)block = (unsigned)i;
	__atomic_fetch_add(&n->filled, 1, __ATOMIC_RELAXED);
	return i + 1 < n->end;
}

static struct tfh_ahead_plan plan(struct numbers *n, uint32_t blocks, uint32_t threads)
{
	return (struct tfh_ahead_plan){.fill = fill,
				       .arg = n,
				       .bytes = sizeof(unsigned),
				       .blocks = blocks,
				       .threads = threads,
				       .count = threads > 1 ? n->end : UINT64_MAX};
}

static void read_all(uint32_t blocks, uint32_t threads, unsigned count)
{
	struct numbers n = {.end = count};
	const struct tfh_ahead_plan p = plan(&n, blocks, threads);
	struct tfh_ahead a = {0};
	const unsigned *b;
	unsigned got = 0;

	assert_int_equal(tfh_ahead_start(&a, &p), 0);
	while ((b = tfh_ahead_next(&a)))
		assert_int_equal(*b, got++);
	assert_int_equal(got, count);
	assert_null(tfh_ahead_next(&a));
	tfh_ahead_stop(&a);
	assert_int_equal(n.filled, count);
}

static void test_all(void **unused)
{
	(void)unused;
	for (uint32_t threads = 1; threads <= TFH_AHEAD_THREADS; threads++) {
		for (uint32_t blocks = 1; blocks <= TFH_AHEAD_MOST; blocks++)
			for (unsigned count = 1; count < 60; count += 7)
				read_all(blocks, threads, count);
		read_all(8, threads, 20000);
	}
}

static void test_early_stop(void **unused)
{
	(void)unused;
	for (unsigned reads = 0; reads < 40; reads++) {
		struct numbers n = {.end = 1000000};
		const struct tfh_ahead_plan p = plan(&n, 8, 1 + reads % 3);
		struct tfh_ahead a = {0};
		assert_int_equal(tfh_ahead_start(&a, &p), 0);
		for (unsigned i = 0; i < reads; i++)
			assert_non_null(tfh_ahead_next(&a));
		tfh_ahead_stop(&a);
		assert_true(n.filled <= reads + 8);
	}
}

static void test_never_started(void **unused)
{
	struct tfh_ahead a = {0};

	(void)unused;
	tfh_ahead_stop(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_early_stop),
		cmocka_unit_test(test_never_started),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
