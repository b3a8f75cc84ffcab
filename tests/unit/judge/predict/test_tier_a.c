/* Jobs with device times from a small simulation: parts and classes are those of the simulated job,
 * and every predicted gain equals that of the same job simulated without the cost, to 1 %. */
#include "../devgen.h"

struct shape {
	int steps;
	double get; /* get-next on the training thread */
	double h2d; /* pinned copy on the computing stream */
	double h2d_blocking;
	int kernels;
	double kernel, think; /* per launch: its time; the program's before it */
	double callback;
	bool sync;
};

static struct tfh_result *loop(const struct shape *s)
{
	struct dg *d = dg_new();

	for (int i = 0; i < s->steps; i++) {
		dg_get(d, 0, s->get);
		if (s->h2d > 0)
			dg_copy(d, 0, 1, TFH_DIR_H2D, 50 << 20, s->h2d);
		if (s->h2d_blocking > 0)
			dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 50 << 20, s->h2d_blocking);
		for (int k = 0; k < s->kernels; k++) {
			dg_code(d, 0, s->think);
			dg_launch(d, 0, 1, s->kernel);
		}
		if (s->sync)
			dg_sync(d, 0, 1);
		dg_code(d, 0, s->callback);
	}
	return dg_judge(d);
}

static void check(const struct tfh_result *r)
{
	gen_closed(r);
	assert_int_equal(r->verdict.tier, 'A');
	assert_string_equal(r->quality.gpu_times, "cupti");
}

/* The step of the job as the simulation has it. */
static double step_of(const struct shape *s)
{
	struct tfh_result *r = loop(s);
	double ms = r->steps.median_s * 1e3;

	tfh_result_free(r);
	return ms;
}

static void test_input(void **state)
{
	(void)state;
	struct shape s = {.steps = 60, .get = 10, .kernels = 10, .kernel = 1, .sync = true};
	struct shape fixed = s;
	struct tfh_result *r = loop(&s);

	fixed.get = 3 * US;
	check(r);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	gen_part(r, TFH_PART_INPUT, 10);
	gen_part(r, TFH_PART_COMPUTE, 10);
	assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_HIGH);
	dg_predicts(r, TFH_REMOVE_INPUT, step_of(&fixed));
	tfh_result_free(r);
}

/* Nobody waits for the device: the host prepares the next batch while it computes. */
static void test_input_half_hidden(void **state)
{
	(void)state;
	struct shape s = {.steps = 60, .get = 16, .kernels = 10, .kernel = 1};
	struct shape fixed = s;
	struct tfh_result *r = loop(&s);

	fixed.get = 3 * US;
	check(r);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	gen_part(r, TFH_PART_INPUT, 6);
	gen_part(r, TFH_PART_COMPUTE, 10);
	dg_predicts(r, TFH_REMOVE_INPUT, step_of(&fixed));
	tfh_result_free(r);
}

/* The host is ahead: the slow get-next costs nothing. */
static void test_hidden_input(void **state)
{
	(void)state;
	struct shape s = {.steps = 60, .get = 8, .kernels = 10, .kernel = 1};
	struct tfh_result *r = loop(&s);

	check(r);
	assert_string_equal(tfh_class_name(r->verdict.cls), "compute-bound");
	assert_int_equal(r->verdict.cause, TFH_CAUSE_COMPUTE_DENSE);
	gen_part(r, TFH_PART_COMPUTE, 10);
	gen_part(r, TFH_PART_INPUT, 0);
	assert_null(dg_whatif(r, TFH_REMOVE_INPUT));
	tfh_result_free(r);
}

static void test_pageable(void **state)
{
	(void)state;
	struct shape s = {.steps = 60,
			  .get = 3 * US,
			  .h2d_blocking = 6,
			  .kernels = 8,
			  .kernel = 1,
			  .sync = true};
	struct shape fixed = s;
	struct tfh_result *r = loop(&s);

	fixed.h2d_blocking = 0;
	check(r);
	gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_H2D_PAGEABLE);
	gen_part(r, TFH_PART_TRANSFER, 6);
	dg_predicts(r, TFH_REMOVE_TRANSFER, step_of(&fixed));
	tfh_result_free(r);
}

/* Behind 50 MB copied through the processor's caches the program's own code is slow: a fix may make up to half a millisecond of it
 * faster, so both ends, as it was and as it may be, are within the range. Not so behind the device's own copies. */
static void test_cold_caches(void **state)
{
	(void)state;
	struct shape s = {.steps = 60,
			  .get = 3 * US,
			  .h2d_blocking = 6,
			  .kernels = 4,
			  .kernel = 1,
			  .callback = 2,
			  .sync = true};
	struct shape fixed = s;
	struct tfh_result *r = loop(&s);

	fixed.h2d_blocking = 0;
	check(r);
	double ms = step_of(&fixed);
	const struct tfh_whatif *w = dg_whatif(r, TFH_REMOVE_TRANSFER);
	assert_true(w->low_s * 1e3 <= ms - 0.5 && w->high_s * 1e3 >= ms);
	assert_true(w->low_s * 1e3 >= ms * 0.98 - 0.5);
	tfh_result_free(r);
	s.h2d_blocking = 0;
	s.h2d = 6;
	r = loop(&s);
	assert_true(dg_whatif(r, TFH_REMOVE_TRANSFER)->low_s * 1e3 >= ms * 0.98);
	tfh_result_free(r);
}

static void test_pinned_in_line(void **state)
{
	(void)state;
	struct shape s = {.steps = 60, .get = 3 * US, .h2d = 4, .kernels = 8, .kernel = 1};
	struct shape fixed = s;
	struct tfh_result *r = loop(&s);

	fixed.h2d = 0;
	check(r);
	gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_H2D_PINNED);
	gen_part(r, TFH_PART_TRANSFER, 4);
	dg_predicts(r, TFH_REMOVE_TRANSFER, step_of(&fixed));
	tfh_result_free(r);
}

/* A copy of a sixth of the step, half of which the program needs in any case before it launches: no fix makes the step faster by more
 * than a twelfth, so it is bound by computing. If the program needs no time, the whole sixth is to be gained. */
static void test_small_gain(void **state)
{
	(void)state;
	for (int code = 0; code < 2; code++) {
		struct dg *d = dg_new();
		for (int i = 0; i < 60; i++) {
			dg_copy(d, 0, 1, TFH_DIR_H2D, 50 << 20, 2);
			dg_code(d, 0, code ? 1 : 0.01);
			for (int k = 0; k < 10; k++)
				dg_launch(d, 0, 1, 1);
			dg_sync(d, 0, 1);
		}
		struct tfh_result *r = dg_judge(d);
		check(r);
		if (code) {
			gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
			assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_MEDIUM);
			assert_int_equal(r->verdict.n_also, 1);
			assert_int_equal(r->verdict.also[0], TFH_CLASS_TRANSFER_BOUND);
		} else {
			gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_H2D_PINNED);
		}
		tfh_result_free(r);
	}
}

static void test_launches(void **state)
{
	(void)state;
	struct shape s = {
		.steps = 60, .get = 3 * US, .kernels = 1000, .kernel = 5 * US, .think = 8 * US};
	struct tfh_result *r = loop(&s);

	check(r);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
	gen_part(r, TFH_PART_LAUNCH, 7);
	gen_part(r, TFH_PART_COMPUTE, 5);
	dg_predicts(r, TFH_REMOVE_LAUNCH, 1000 * (5 * US + DG_NEXT));
	tfh_result_free(r);
}

/* Launches that hold up a quarter of a step are what any framework needs: such a step is bound by computing, and the host is
 * mentioned. Launches that hold up more than a third are the verdict. */
static void test_usual_launches(void **state)
{
	(void)state;
	struct shape s = {
		.steps = 60, .get = 3 * US, .kernels = 1000, .kernel = 9 * US, .think = 8 * US};
	struct tfh_result *r = loop(&s);

	check(r);
	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
	gen_part(r, TFH_PART_LAUNCH, 3);
	assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_MEDIUM);
	assert_int_equal(r->verdict.n_also, 1);
	assert_int_equal(r->verdict.also[0], TFH_CLASS_HOST_BOUND);
	tfh_result_free(r);
	s.kernel = 7.5 * US;
	r = loop(&s);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
	tfh_result_free(r);
}

static void test_callback(void **state)
{
	(void)state;
	struct shape s = {
		.steps = 60, .get = 0.1, .kernels = 10, .kernel = 1, .callback = 5, .sync = true};
	struct shape fixed = s;
	struct tfh_result *r = loop(&s);

	fixed.callback = 0;
	check(r);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CALLBACK);
	gen_part(r, TFH_PART_HOST, 5);
	dg_predicts(r, TFH_REMOVE_HOST, step_of(&fixed));
	tfh_result_free(r);
}

/* A full queue holds the launching thread up for long: that is the device being busy. */
static void test_full_queue(void **state)
{
	(void)state;
	struct shape s = {.steps = 40, .get = 0.1, .kernels = 400, .kernel = 50 * US};
	struct tfh_result *r = loop(&s);

	check(r);
	assert_string_equal(tfh_class_name(r->verdict.cls), "compute-bound");
	gen_part(r, TFH_PART_LAUNCH, 0.4);
	tfh_result_free(r);
}

/* A process that makes a context and runs nothing on the device computes what it executes. */
static void test_unused_device(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->g->name[TFT_NAME_OP][1] = "__inference_train_step_7";
	for (int i = 0; i < 100; i++) {
		dg_call(d, 0, TFH_FN_TFE_Execute, 8)->w[0] = 1;
		dg_code(d, 0, 0.2);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->verdict.cls, TFH_CLASS_COMPUTE_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_COMPUTE_CPU);
	assert_int_equal(r->verdict.tier, 'C');
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unused_device),	  cmocka_unit_test(test_input),
		cmocka_unit_test(test_input_half_hidden), cmocka_unit_test(test_hidden_input),
		cmocka_unit_test(test_pageable),	  cmocka_unit_test(test_cold_caches),
		cmocka_unit_test(test_pinned_in_line),	  cmocka_unit_test(test_small_gain),
		cmocka_unit_test(test_launches),	  cmocka_unit_test(test_usual_launches),
		cmocka_unit_test(test_callback),	  cmocka_unit_test(test_full_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
