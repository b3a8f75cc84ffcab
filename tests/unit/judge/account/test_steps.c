/* Steps that are judged together with their neighbours: each gets a cause of the class it ends
 * with, whatever the order in which they are judged, and no class that none of them has alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "judge/account/account.h"

#define STEPS 400

static struct tfh_step step[STEPS];
static struct tfh_window window[STEPS];
static struct tfh_use use[STEPS];

static struct tfh_accounts *job_of(size_t n)
{
	static struct tfh_loops loops;
	static struct tfh_accounts job;

	memset(&loops, 0, sizeof(loops));
	memset(&job, 0, sizeof(job));
	memset(window, 0, sizeof(window));
	job.step.v = step;
	job.use = use;
	job.loops = &loops;
	loops.window.v = window;
	job.step.n = loops.window.n = n;
	loops.median = 10 * 1000000;
	for (size_t i = 0; i < n; i++) {
		window[i].segment = use[i].segment = TFH_SEGMENT_TRAIN;
		window[i].steps = 1;
	}
	return &job;
}

/* Shares of a step of 10 ms, and what that makes it by itself. */
static struct tfh_step alone(float compute, float input, float copies, float host)
{
	struct tfh_step s = {.dur_s = 0.01, .segment = TFH_SEGMENT_TRAIN, .tier = 'A'};
	double part[TFH_PART_COUNT];

	s.breakdown[TFH_PART_COMPUTE] = 0.01f * compute;
	s.breakdown[TFH_PART_INPUT] = 0.01f * input;
	s.breakdown[TFH_PART_TRANSFER] = 0.01f * copies;
	s.breakdown[TFH_PART_HOST] = 0.01f * host;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		part[p] = (double)s.breakdown[p];
	s.cls = (int8_t)tfh_class_of(part, s.dur_s);
	s.cause = s.cls == TFH_CLASS_INPUT_BOUND      ? TFH_CAUSE_INPUT_UNKNOWN
		  : s.cls == TFH_CLASS_TRANSFER_BOUND ? TFH_CAUSE_TRANSFER_D2H
		  : s.cls == TFH_CLASS_HOST_BOUND     ? TFH_CAUSE_HOST_CALLBACK
						      : TFH_CAUSE_NONE;
	return s;
}

static void expect_causes(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (step[i].cls == TFH_CLASS_COMPUTE_BOUND || step[i].cls == TFH_CLASS_BALANCED) {
			assert_int_equal(step[i].cause, TFH_CAUSE_NONE);
			continue;
		}
		assert_true(step[i].cause >= 0);
		assert_int_equal(tfh_cause_class(step[i].cause), step[i].cls);
	}
}

static void test_cause_of_class(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < STEPS; i++) {
			float a = (float)(rand() % 100) / 100, b = (float)(rand() % 100) / 100,
			      c = (float)(rand() % 100) / 100, d = (float)(rand() % 20) / 100,
			      sum = a + b + c + d + 0.01f;
			step[i] = alone(d / sum, a / sum, b / sum, c / sum);
		}
		tfh_smooth_classes(job_of(STEPS));
		expect_causes(STEPS);
	}
}

/* One step that waited does not stand apart from those around it; one that took three times as long
 * does. */
static void test_one_of_many(void **state)
{
	(void)state;
	for (int i = 0; i < 21; i++)
		step[i] = alone(0.2f, 0.1f, 0, 0.7f);
	step[10] = alone(0.2f, 0.6f, 0, 0.2f);
	tfh_smooth_classes(job_of(21));
	assert_int_equal(step[10].cls, TFH_CLASS_HOST_BOUND);
	assert_int_equal(step[10].cause, TFH_CAUSE_HOST_CALLBACK);

	step[10] = alone(0.2f, 0.6f, 0, 0.2f);
	step[10].dur_s = 0.03;
	tfh_smooth_classes(job_of(21));
	assert_int_equal(step[10].cls, TFH_CLASS_INPUT_BOUND);
	assert_int_equal(step[10].cause, TFH_CAUSE_INPUT_UNKNOWN);
}

/* Host code is second in all of these and most in their sum: but none is host-bound. */
static void test_no_class_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		step[i] = i & 1 ? alone(0.1f, 0.5f, 0, 0.4f) : alone(0.1f, 0, 0.5f, 0.4f);
	tfh_smooth_classes(job_of(20));
	for (int i = 0; i < 20; i++)
		assert_int_equal(step[i].cls,
				 i & 1 ? TFH_CLASS_INPUT_BOUND : TFH_CLASS_TRANSFER_BOUND);
	expect_causes(20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cause_of_class),
		cmocka_unit_test(test_one_of_many),
		cmocka_unit_test(test_no_class_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
