/* A pause before the batch's copy that samples divide into waiting for a pipe and the program's own code: without either, the step is
 * shorter by its share alone, whichever is more. */
#include "../devgen.h"

/* Steps of a pause of 10 ms, of which the thread waits for a pipe in `waits`, and 2 ms of computing. */
static struct tfh_result *judge(double waits)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 200; i++) {
		double from = d->now[0], at = fmod(i * 0.618, 1);
		gen_sample(d->g, 0, from + at * 10,
			   fmod(i * 0.414, 1) < waits ? TFT_STATE_PIPE : TFT_STATE_RUNNING, 0, 10);
		dg_code_until(d, 0, from + 10);
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 12, 0.01);
		dg_launches(d, 1, 4, 0.5);
		dg_sync(d, 0, 1);
	}
	return dg_judge(d);
}

static double gain_ms(const struct tfh_result *r, enum tfh_remove what)
{
	const struct tfh_whatif *w = dg_whatif(r, what);

	assert_non_null(w);
	return dg_step_ms(r) - 1e3 * (isnan(w->step_s) ? w->about_s : w->step_s);
}

static void test_parts(void **state)
{
	(void)state;
	for (double waits = 0.3; waits < 0.75; waits += 0.4) {
		struct tfh_result *r = judge(waits);
		double input = 1e3 * r->breakdown[TFH_PART_INPUT].s_per_step,
		       host = 1e3 * r->breakdown[TFH_PART_HOST].s_per_step;
		assert_float_equal(input, 10 * waits, 0.5);
		assert_float_equal(gain_ms(r, TFH_REMOVE_HOST), host, 0.3);
		assert_float_equal(gain_ms(r, TFH_REMOVE_INPUT), input, 0.3);
		tfh_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
