/*
 * A few steps that take much longer than the others, now and then, and cost a fifth of the time are found, with the line of the
 * program that only they spend their time at, or that only in them calls what all steps run. Many such steps, or ones that cost little,
 * are not; long steps in which the thread is where it always is have no line.
 */
#include "../analyze_gen.h"

enum { STEPS = 400, AT_STEP = 1, AT_COPY, AT_ALARM, AT_EVALUATION };

static const gen_stack stacks[] = {
	[AT_STEP] = {{"/job/train.py", "<module>", 20, false}},
	[AT_COPY] = {{"/job/train.py", "<module>", 21, false}},
	[AT_ALARM] = {{"/job/train.py", "on_alarm", 11, false},
		      {"/job/train.py", "<module>", 20, false}},
	[AT_EVALUATION] = {{"/job/train.py", "<module>", 20, false},
			   {"/job/train.py", "evaluate", 31, false},
			   {"/job/train.py", "main", 40, false}},
};

/* What follows the own code of a step: a copy, a launch and a wait, of 2 ms. */
static void end_step(struct gen *g, double own, double *t, double *cpu)
{
	double at = *t += own;

	gen_cpu(g, 0, at, *cpu += own, AT_COPY);
	gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, at, at + 0.1, 4096, false);
	gen_call(g, 0, TFH_FN_cuLaunchKernel, at + 0.11, at + 0.12)->w[0] = 1;
	gen_call(g, 0, TFH_FN_cuStreamSynchronize, at + 0.13, at + 2);
	*t += 2;
	*cpu += 0.2;
}

/* Steps of 3 ms; long ones of `longer` ms more, `apart` steps on average. */
static struct tfh_result *judge(double longer, int apart, uint32_t place)
{
	struct gen *g = gen_new();
	double t = 100, cpu = 0;
	int next = 7;
	uint32_t random = 1;

	GEN_STACKS(&g->feed, stacks);
	for (int i = 0; i < STEPS; i++) {
		double own = 1;
		bool is_long = i == next;
		if (is_long) {
			own += longer;
			random = random * 1103515245u + 12345;
			next += 1 + (int)(random >> 16) % (2 * apart - 1);
		}
		for (double at = is_long ? 0.3 : i % 3 * 0.3; at < own; at += 5)
			gen_sample(g, 0, t + at, TFT_STATE_RUNNING, is_long ? place : AT_STEP, 5);
		end_step(g, own, &t, &cpu);
	}
	return gen_judge(g);
}

static void test_few(void **state)
{
	(void)state;
	struct tfh_result *r = judge(40, 40, AT_ALARM);

	assert_true(r->found.slow.n >= 6 && r->found.slow.n <= 20);
	assert_true(r->found.slow.share > 0.1 && r->found.slow.share < 0.4);
	assert_string_equal(r->found.slow.function, "on_alarm");
	assert_int_equal(r->found.slow.line, 11);
	assert_non_null(gen_remark(r, "steps take 40.0 ms longer than the others (host), "));
	tfh_result_free(r);
}

static void test_shared(void **state)
{
	(void)state;
	struct tfh_result *r = judge(40, 40, AT_EVALUATION);

	assert_string_equal(r->found.slow.function, "evaluate");
	assert_int_equal(r->found.slow.line, 31);
	tfh_result_free(r);
}

static void test_where_always(void **state)
{
	(void)state;
	struct tfh_result *r = judge(40, 40, AT_STEP);

	assert_true(r->found.slow.n >= 6);
	assert_null(r->found.slow.file);
	tfh_result_free(r);
}

static void test_others(void **state)
{
	(void)state;
	struct tfh_result *r = judge(40, 5, AT_ALARM);

	assert_int_equal(r->found.slow.n, 0);
	tfh_result_free(r);
	r = judge(4, 40, AT_ALARM);
	assert_int_equal(r->found.slow.n, 0);
	tfh_result_free(r);
}

/* Own code of 1 ms a step at one line, and of 0 to 8 ms at another, which grows. */
static void test_grows(void **state)
{
	struct gen *g = gen_new();
	double t = 100, cpu = 0;

	(void)state;
	GEN_STACKS(&g->feed, stacks);
	for (int i = 0; i < STEPS; i++) {
		double own = 1 + 8.0 * i / STEPS;
		for (double at = 0.3 + i % 3 * 0.2; at < own; at += 1)
			gen_sample(g, 0, t + at, TFT_STATE_RUNNING, at < 1 ? AT_STEP : AT_ALARM, 1);
		end_step(g, own, &t, &cpu);
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->n_change, 1);
	assert_true(r->change[0].until >= STEPS - 2);
	assert_string_equal(r->change[0].function, "on_alarm");
	assert_int_equal(r->change[0].line, 11);
	assert_non_null(
		gen_remark(r, "(host, mostly at on_alarm, train.py:11): they may go through"));
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_few), cmocka_unit_test(test_grows),
					   cmocka_unit_test(test_where_always),
					   cmocka_unit_test(test_shared),
					   cmocka_unit_test(test_others)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
