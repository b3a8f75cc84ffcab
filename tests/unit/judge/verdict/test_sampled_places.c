/* What must hold of a run in which no call was recorded: the verdict's line is that with most of its cause, or the largest of the
 * function with most; its gain is of a step, without the line or its function, but not without the loop, the whole step, or what is
 * compiled once; what is before the loop, and compiling in its first iterations, is the start. */
#include "sampled_job.h"

/* What is compiled anew in each step is executed each time, also once it is compiled only once. */
static void test_compiling_gain(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		at(i % 10 < 8 ? COMPILES : IN_EPOCH);
		in(2, i / 10 + 1, 99 - i / 10);
	}
	struct tfh_result *r = judge();

	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_COMPILE);
	assert_int_equal(r->line_place, 1);
	assert_true(fabs(r->place[0].gain.about_s - 0.02) < 0.002);
	assert_true(r->place[0].gain.low_s > 0.015);
	tfh_result_free(r);
}

/* 100 steps of ten samples; places in capitals have Python's lock. */
static struct tfh_result *steps_of(const uint32_t where[10], const char *held)
{
	for (uint32_t i = 0; i < 1000; i++) {
		at(where[i % 10]);
		sample[samples - 1].gil = held[i % 10] == 'P' ? TFT_GIL_HELD : TFT_GIL_RELEASED;
		in(2, i / 10 + 1, 99 - i / 10);
	}
	return judge();
}

static void expect_place(struct tfh_result *r, enum tfh_cause cause, const char *of, uint32_t line,
			 double share)
{
	assert_int_equal(r->verdict.cause, cause);
	assert_string_equal(r->found.line.function, of);
	assert_int_equal(r->found.line.line, line);
	assert_int_equal(r->line_place, share > 0);
	if (share > 0)
		assert_true(fabs(r->place[0].s_per_step - share * 0.1) < 0.002);
	tfh_result_free(r);
}

/* The lines of a function that is a part of the steps count together, and its short native calls
 * are Python code. What computes beside the model, and more than it, is the line, with what undoes
 * it. */
static void test_functions(void **state)
{
	(void)state;
	static const uint32_t lines[10] = {HELPS, HELPS, HELPS,	  SCALES,  LOOKS,
					   LOOKS, LOOKS, DIVIDES, DIVIDES, DIVIDES},
			      short_calls[10] = {LAYER,	 LAYER,	  LAYER,   LAYER,   LOOKS,
						 SCALES, DIVIDES, DIVIDES, DIVIDES, DIVIDES},
			      beside[10] = {LAYER,  LAYER,  LAYER,    LAYER,	MERGES,
					    MERGES, MERGES, UNMERGES, UNMERGES, UNMERGES},
			      model[10] = {LAYER, LAYER, LAYER,	 LAYER,	 LAYER,
					   LAYER, LAYER, MERGES, MERGES, UNMERGES};

	struct tfh_result *r = steps_of(lines, "PPPPnPPnPP");
	assert_int_equal(r->n_place, 2); /* with the next one */
	assert_int_equal(r->place[1].line, 70);
	assert_true(fabs(r->place[1].s_per_step - 0.03) < 0.002);
	expect_place(r, TFH_CAUSE_HOST_PYTHON, "Penalty.__call__", 60, 0.7);
	expect_place(steps_of(short_calls, "nnnnPPPnnn"), TFH_CAUSE_HOST_PYTHON, "Penalty.__call__",
		     63, 0.6);
	expect_place(steps_of(short_calls, "nnnnPnnnnn"), TFH_CAUSE_COMPUTE_CPU, "Penalty.__call__",
		     63, 0.5);
	expect_place(steps_of(beside, "nnnnnnnnnn"), TFH_CAUSE_COMPUTE_CPU, "Net.merge", 19, 0.6);
	expect_place(steps_of(model, "nnnnnnnnnn"), TFH_CAUSE_COMPUTE_CPU, "Net.forward", 25, 0);
}

static void test_start_and_gain(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 200; i++)
		at(LATER);
	for (uint32_t i = 0; i < 100; i++) {
		at(COMPILES);
		in(2, 1, 99);
	}
	for (uint32_t i = 0; i < 500; i++) {
		at(i % 5 ? CALLS : IN_EPOCH);
		in(2, i / 5 + 1, 99 - i / 5);
	}
	struct tfh_result *r = judge();

	assert_int_equal(r->steps.total, 100);
	assert_true(fabs(r->steps.median_s - 0.05) < 0.001);
	assert_true(fabs(r->found.sampled.start_s - 3) < 0.1);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_PYTHON);
	assert_int_equal(r->n_tree, 5);
	assert_true(fabs(r->tree[1].wall_s + r->tree[2].wall_s + r->tree[3].wall_s +
			 r->tree[4].wall_s - r->tree[0].wall_s) < 1e-6);
	assert_int_equal(r->tree[2].kind, TFH_BRANCH_FIRST);
	assert_true(fabs(r->tree[2].wall_s - 1) < 0.1);
	assert_int_equal(r->tree[3].count, 100);
	assert_int_equal(r->line_place, 1);
	assert_true(fabs(r->place[0].s_per_step - 0.05) <
		    0.002); /* both lines are one line of main */
	assert_true(r->place[0].gain.high_s >= r->place[0].gain.about_s);
	tfh_result_free(r);
}

/* A function of two lines, one of which has 50 ms of a step of 100, goes with both (`ms` together), and the line is the larger one;
 * but not if it is the whole step. */
static void of_two_lines(uint32_t ms, bool whole)
{
	for (uint32_t i = 0; i < 1000; i++) {
		at(i % 10 < 5 ? IN_EPOCH : i % 10 < ms / 10 ? BELOW : MAIN);
		in(1, i / 10 + 1, 99 - i / 10);
	}
	struct tfh_result *r = judge();

	assert_int_equal(r->found.line.line, 50);
	assert_int_equal(r->place[0].whole, whole);
	assert_true(fabs(r->place[0].s_per_step - (whole ? ms / 1e3 : 0.05)) < 0.002);
	tfh_result_free(r);
}

static void test_function(void **state)
{
	(void)state;
	of_two_lines(80, true);
	of_two_lines(100, false);
}

/* 100 steps of 100 ms, in each so many tenths at one place and the rest at another. Returns the gain's step, ms;
 * 0: none. */
static double beside(uint32_t tenths, uint32_t where, uint32_t other)
{
	for (uint32_t i = 0; i < 1000; i++) {
		at(i % 10 < tenths ? where : other);
		sample[samples - 1].gil = TFT_GIL_RELEASED;
		in(1, i / 10 + 1, 99 - i / 10);
	}
	struct tfh_result *r = judge();
	double left = r->line_place ? 1e3 * r->place[0].gain.about_s : 0;

	assert_int_equal(r->verdict.cause, TFH_CAUSE_COMPUTE_CPU);
	tfh_result_free(r);
	return left;
}

/* A measure may be taken less often; training, arithmetic of arrays and what is the whole step may not. */
static void test_beside(void **state)
{
	(void)state;
	assert_true(fabs(beside(6, MEASURES, FITS) - 40) < 2);
	assert_true(beside(6, FITS, MEASURES) == 0);
	assert_true(beside(6, SORTS, FITS) == 0);
	assert_true(beside(9, MEASURES, FITS) == 0);
}

/* 100 steps of 100 ms, 80 of which a library's call takes, most of them to trace the program's model. */
static void test_model_call(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		at(i % 10 < 6 ? RETRACES : i % 10 < 8 ? FORWARD : LATER);
		in(1, i / 10 + 1, 99 - i / 10);
	}
	struct tfh_result *r = judge();

	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_COMPILE);
	assert_string_equal(r->found.line.function, "epoch");
	assert_int_equal(r->found.line.line, 50);
	assert_true(fabs(r->place[0].s_per_step - 0.08) < 0.002); /* with what it runs there */
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compiling_gain), cmocka_unit_test(test_functions),
		cmocka_unit_test(test_start_and_gain), cmocka_unit_test(test_function),
		cmocka_unit_test(test_beside),	       cmocka_unit_test(test_model_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
