/* Short pauses between a driver's calls are launching, unless ten samples of them, or five that all agree, show other work: then they
 * are divided as the samples are. */
#include "../analyze_gen.h"

enum { LOGS = 1, LAUNCHES, PLACES };

static const gen_stack stacks[PLACES] = {
	[LOGS] = {{"/usr/lib/python3.11/logging/__init__.py", "Logger.info", 1489, true},
		  {"/job/train.py", "main", 20, false}},
	[LAUNCHES] = {{"/job/train.py", "main", 12, false}},
};

/* Part of the short pauses' time that is logging, in 100 steps of 100 calls with 20 us between each, while the device has no work; so many samples show logging and
 * launching. */
static double logged(uint32_t logs, uint32_t launches)
{
	struct gen *g = gen_new();
	double t = 100;

	GEN_STACKS(&g->feed, stacks);
	for (uint32_t i = 0; i < 100; i++, t += 3) {
		for (int k = 0; k < 100; k++)
			gen_call(g, 0, TFH_FN_cuEventQuery, t + 0.025 * k, t + 0.025 * k + 0.005);
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t + 2.5, t + 2.505);
		gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 2.51, t + 2.99);
		if (i >= 20 && i < 20 + logs + launches)
			gen_sample(g, 0, t + 0.51, TFT_STATE_RUNNING,
				   i < 20 + logs ? LOGS : LAUNCHES, 2.5);
	}
	struct tfh_result *r = gen_judge(g);
	double part = r->found.cause_s[TFH_CAUSE_HOST_LOGGING] / (99 * 20e-6);
	tfh_result_free(r);
	return part;
}

static void test_shares(void **state)
{
	(void)state;
	assert_float_equal(logged(6, 6), 0.5, 0.05);
	assert_float_equal(logged(4, 4), 0, 0);
	assert_float_equal(logged(0, 12), 0, 0);
}

static void test_few(void **state)
{
	(void)state;
	assert_float_equal(logged(5, 0), 1, 0.05);
	assert_float_equal(logged(4, 0), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
