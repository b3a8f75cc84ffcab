/* A program that launches nothing, but copies and waits in a loop, has the loop's rounds as steps. Copies of different arrays, each
 * waited for, are no loop, and copies without a wait are none either. Nothing shows what its step is without copies. */
#include "../devgen.h"

enum kind { LOOP, TWO_COPIES, ARRAYS, NO_WAITS };

static struct tfh_result *copies(enum kind kind)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 120; i++) {
		uint64_t bytes = kind == ARRAYS ? 1000 + 100 * (uint64_t)i : 1000000;
		dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, bytes, 0.3);
		if (kind == TWO_COPIES)
			dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, bytes / 2, 0.1);
		if (kind != NO_WAITS)
			dg_sync(d, 0, 1);
		dg_code(d, 0, 2);
	}
	return dg_judge(d);
}

static void test_copies(void **state)
{
	(void)state;
	for (enum kind kind = LOOP; kind <= NO_WAITS; kind++) {
		struct tfh_result *r = copies(kind);
		bool loop = kind == LOOP || kind == TWO_COPIES;
		assert_int_equal(r->steps.total, loop ? 120 : 0);
		assert_int_equal(r->steps.clock,
				 loop ? TFH_STEP_CLOCK_PERIOD : TFH_STEP_CLOCK_NONE);
		if (loop) {
			gen_closed(r);
			assert_int_equal(r->verdict.cls, TFH_CLASS_HOST_BOUND);
			assert_non_null(dg_whatif(r, TFH_REMOVE_TRANSFER)->no_bound);
			assert_null(dg_whatif(r, TFH_REMOVE_HOST)->no_bound);
		}
		tfh_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
