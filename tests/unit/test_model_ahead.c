/* Blocks that are prepared ahead come complete and in order, with and without a thread; a reader
 * that stops early does not wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/ahead.h"

struct numbers {
	unsigned next, end;
};

static bool fill(void *arg, void *block)
{
	struct numbers *n = arg;

	*(unsigned *)block = n->next++;
	return n->next < n->end;
}

static void read_all(uint32_t blocks, unsigned count)
{
	struct numbers n = {.end = count};
	struct tfh_ahead a = {0};
	const unsigned *b;
	unsigned got = 0;

	assert_int_equal(tfh_ahead_start(&a, fill, &n, blocks, sizeof(unsigned)), 0);
	while ((b = tfh_ahead_next(&a)))
		assert_int_equal(*b, got++);
	assert_int_equal(got, count);
	assert_null(tfh_ahead_next(&a));
	tfh_ahead_stop(&a);
}

static void test_all(void **unused)
{
	(void)unused;
	for (uint32_t blocks = 1; blocks <= TFH_AHEAD_MOST; blocks++)
		for (unsigned count = 1; count < 60; count += 7)
			read_all(blocks, count);
	read_all(8, 20000);
}

static void test_early_stop(void **unused)
{
	(void)unused;
	for (unsigned reads = 0; reads < 20; reads++) {
		struct numbers n = {.end = 1000000};
		struct tfh_ahead a = {0};
		assert_int_equal(tfh_ahead_start(&a, fill, &n, 8, sizeof(unsigned)), 0);
		for (unsigned i = 0; i < reads; i++)
			assert_non_null(tfh_ahead_next(&a));
		tfh_ahead_stop(&a);
		assert_true(n.next <= reads + 8);
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
