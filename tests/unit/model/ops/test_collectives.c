/* Kernels of different ranks that were launched by the same collective have the same number; others
 * have none or another: also in groups, beside messages, and for times between calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/ops/collectives.h"

static void call(struct tfh_collectives *c, enum tfh_fn fn, uint32_t thread, int64_t t0, int64_t t1,
		 uint64_t key, uint64_t number)
{
	struct tfh_event ev = {.t0 = t0,
			       .t1 = t1,
			       .fn = &tfh_fn_table[fn],
			       .thread = thread,
			       .kind = TFT_CALL,
			       .w = {4096, key, number | 0xffffffffull << 32}};

	assert_int_equal(tfh_collectives_add(c, &ev), 0);
}

static void test_numbers(void **state)
{
	(void)state;
	struct tfh_collectives *a = tfh_collectives_new(), *b = tfh_collectives_new();

	call(a, TFH_FN_ncclAllReduce, 1, 100, 110, 7, 1);
	call(a, TFH_FN_cuLaunchKernel, 1, 120, 125, 7, 1);
	call(a, TFH_FN_ncclSend, 1, 150, 160, 7, 1);
	call(a, TFH_FN_ncclAllReduce, 1, 200, 210, 7, 2);
	call(a, TFH_FN_ncclAllReduce, 2, 200, 210, 8, 1);
	call(b, TFH_FN_ncclAllReduce, 5, 1300, 1310, 7, 2);
	call(b, TFH_FN_ncclAllReduce, 5, 1200, 1210, 7, 1);
	uint64_t first = tfh_collective_at(a, 1, 105), second = tfh_collective_at(a, 1, 210);
	assert_true(first && second && first != second);
	assert_true(tfh_collective_at(a, 2, 205) && tfh_collective_at(a, 2, 205) != second);
	assert_true(tfh_collective_at(b, 5, 1200) == first);
	assert_true(tfh_collective_at(b, 5, 1305) == second);
	assert_int_equal(tfh_collective_at(a, 1, 99), 0);
	assert_int_equal(tfh_collective_at(a, 1, 122), 0);
	assert_int_equal(tfh_collective_at(a, 1, 155), 0);
	assert_int_equal(tfh_collective_at(a, 3, 105), 0);
	assert_int_equal(tfh_collective_at(a, UINT32_MAX, INT64_MIN), 0);
	tfh_collectives_free(a);
	tfh_collectives_free(b);
}

static void test_groups(void **state)
{
	(void)state;
	struct tfh_collectives *c = tfh_collectives_new(), *alone = tfh_collectives_new();

	call(c, TFH_FN_ncclGroupStart, 1, 0, 1, 0, 0);
	call(c, TFH_FN_ncclGroupStart, 1, 2, 3, 0, 0);
	call(c, TFH_FN_ncclAllReduce, 1, 4, 5, 7, 1);
	call(c, TFH_FN_ncclAllReduce, 1, 6, 7, 7, 2);
	call(c, TFH_FN_ncclGroupEnd, 1, 8, 9, 0, 0);
	call(c, TFH_FN_ncclGroupEnd, 1, 10, 20, 0, 0);
	call(c, TFH_FN_ncclGroupStart, 1, 30, 31, 0, 0);
	call(c, TFH_FN_ncclSend, 1, 32, 33, 7, 1);
	call(c, TFH_FN_ncclGroupEnd, 1, 34, 40, 0, 0);
	call(alone, TFH_FN_ncclAllReduce, 1, 4, 5, 7, 1);
	assert_int_equal(tfh_collective_at(c, 1, 5), 0);
	assert_int_equal(tfh_collective_at(c, 1, 9), 0);
	assert_true(tfh_collective_at(c, 1, 15) == tfh_collective_at(alone, 1, 5));
	assert_int_equal(tfh_collective_at(c, 1, 35), 0);
	tfh_collectives_free(c);
	tfh_collectives_free(alone);
}

/* A communicator whose beginning was not seen has no key. */
static void test_unknown(void **state)
{
	(void)state;
	struct tfh_collectives *c = tfh_collectives_new();

	call(c, TFH_FN_ncclAllReduce, 1, 0, 10, 0, 0);
	call(c, TFH_FN_ncclAllReduce, 1, 20, 30, 7, 0);
	assert_int_equal(tfh_collective_at(c, 1, 5), 0);
	assert_int_equal(tfh_collective_at(c, 1, 25), 0);
	tfh_collectives_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
