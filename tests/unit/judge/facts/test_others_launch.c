/*
 * A step whose ops other threads execute one by one, as replicas do that were not compiled, while the main thread waits for them: it
 * is launching. Where others execute a few ops, it is a wait for a thread.
 */
#include "../analyze_gen.h"
#include "../tf_loops.h"

static struct tfh_result *judge(int ops)
{
	struct gen *g = tf();
	double t = 100;

	for (int i = 0; i < 60; i++, t += 33) {
		gen_get(g, 0, 1, ROOT, t, t + 0.1);
		gen_exec(g, OP_GET, t, t + 0.12);
		for (int k = 0; k < 6; k++)
			gen_sample(g, 0, t + 1 + 4.5 * k + fmod(i * 0.37, 4), TFT_STATE_LOCK, 0, 5);
		for (int k = 0; k < ops; k++) {
			double at = t + 1 + 29. * k / ops;
			gen_call(g, 1, TFH_FN_TFE_Execute, at, at + 0.05)->w[0] = OP_SMALL;
		}
		gen_exec(g, OP_SMALL, t + 31, t + 32.5);
	}
	return gen_judge(g);
}

static void test_replicas(void **state)
{
	(void)state;
	struct tfh_result *r = judge(40);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
	tfh_result_free(r);
}

static void test_few(void **state)
{
	(void)state;
	struct tfh_result *r = judge(2);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOCK);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_replicas),
					   cmocka_unit_test(test_few)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
