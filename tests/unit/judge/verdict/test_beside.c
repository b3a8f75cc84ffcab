/*
 * A loop whose library calls a function of the program after every few steps (a callback), which makes an iterator and evaluates.
 * One line of that function takes the time between loops and that of the evaluations: it is one piece of work, a callback, and
 * gives the verdict with all of that time. If the library evaluates by itself, only the time between loops is the callback's.
 */
#include "../tf_loops.h"

#define LIB "/v/lib/python3.11/site-packages"

enum { AT_TRACK = 1, AT_FIT };

#define FIT LIB "/keras/trainer.py", "fit", 399, true
#define MAIN "/job/train.py", "main", 20, false

static const gen_stack stacks[] = {
	[AT_TRACK] = {{LIB "/keras/trainer.py", "predict", 584, true},
		      {"/job/train.py", "Tracker.track", 51, false},
		      {FIT},
		      {MAIN}},
	[AT_FIT] = {{FIT}, {MAIN}},
};

/* A pause, in which a sample every 2.5 ms sees the thread run at `place`. */
static double pause(struct gen *g, double t, double ms, uint32_t place)
{
	for (double s = t + 0.3; s < t + ms; s += 2.5)
		gen_sample(g, 0, s, TFT_STATE_RUNNING, place, 2.5);
	gen_cpu(g, 0, t + ms - 0.01, t + ms, 0);
	return t + ms;
}

static double step(struct gen *g, double t, uint32_t iterator, uint32_t stage, uint32_t op)
{
	gen_get(g, 0, iterator, stage, t, t + 0.05);
	gen_exec(g, OP_GET, t, t + 0.05);
	gen_exec(g, op, t + 0.06, t + 2);
	return t + 2.01;
}

/* 40 times 13 steps of 2 ms, 30 ms to make an iterator, and 5 evaluation steps of 2 ms with 3 ms of code each. */
static struct tfh_result *judge(uint32_t evaluates_at)
{
	struct gen *g = tf();
	double t = 100;

	GEN_STACKS(&g->feed, stacks);
	for (uint32_t round = 0; round < 40; round++) {
		for (int i = 0; i < 13; i++)
			t = step(g, t, 1 + round, ROOT, OP_TRAIN);
		gen_get(g, 0, 1 + round, ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
		t = pause(g, t + 0.05, 30, AT_TRACK);
		for (int i = 0; i < 5; i++)
			t = pause(g, step(g, t, 100 + round, EVAL_ROOT, OP_TEST), 3, evaluates_at);
		gen_get(g, 0, 100 + round, EVAL_ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
		t += 0.05;
	}
	return gen_judge(g);
}

static void test_one_piece(void **state)
{
	(void)state;
	struct tfh_result *r = judge(AT_TRACK);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CALLBACK);
	assert_int_equal(r->found.line.line, 51);
	assert_true(r->lead > 0);
	const struct tfh_recurring *x = &r->recurring[r->lead - 1];
	assert_true(x->total_s > 0.9 * 40 * 55e-3 && x->total_s < 1.1 * 40 * 55e-3);
	assert_true(x->evaluates_s > 0.9 * 40 * 25e-3 && x->evaluates_s < 1.1 * 40 * 25e-3);
	assert_non_null(gen_says(r, "a function that the library calls takes"));
	tfh_result_free(r);
}

static void test_two_pieces(void **state)
{
	(void)state;
	struct tfh_result *r = judge(AT_FIT);

	for (uint32_t i = 0; i < r->n_recurring; i++)
		assert_true(!(r->recurring[i].evaluates_s > 0) &&
			    r->recurring[i].total_s < 1.1 * 40 * 30e-3);
	tfh_result_free(r);
}

/* 16 times 10 steps of 2 ms, and 4 evaluation steps of 2 ms, behind which something is computed from all results for some time; the training goes
 * on with its iterator, or each time with a new one. */
static struct tfh_result *with_metrics(bool epochs, double ms)
{
	struct gen *g = tf();
	double t = 100;

	for (uint32_t round = 0; round < 16; round++) {
		uint32_t iterator = epochs ? 1 + round : 1;
		for (int i = 0; i < 10; i++)
			t = step(g, t, iterator, ROOT, OP_TRAIN);
		if (epochs) {
			gen_get(g, 0, iterator, ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
			t += 0.05;
		}
		for (int i = 0; i < 4; i++)
			t = step(g, t, 100 + round, EVAL_ROOT, OP_TEST);
		gen_get(g, 0, 100 + round, EVAL_ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
		t += ms;
	}
	for (int i = 0; i < 10; i++)
		t = step(g, t, epochs ? 17 : 1, ROOT, OP_TRAIN);
	return gen_judge(g);
}

static double total_s(const struct tfh_result *r, enum tfh_segment kind)
{
	uint32_t i = tfh_recurring_of(r, kind);

	return i ? r->recurring[i - 1].total_s : 0;
}

static void test_metrics(void **state)
{
	(void)state;
	struct tfh_result *r = with_metrics(false, 30);

	assert_int_equal(r->steps.total, 170);
	assert_true(fabs(total_s(r, TFH_SEGMENT_EVAL) - 16 * 38e-3) < 0.03);
	assert_true(total_s(r, TFH_SEGMENT_BETWEEN) < 0.02);
	assert_true(fabs(tfh_spent(r, TFH_BRANCH_EVALUATE) - 16 * 38e-3) < 0.03);
	assert_true(tfh_spent(r, TFH_BRANCH_BETWEEN) < 0.03);
	assert_non_null(gen_says(r, "evaluation takes 1.8 times as long as training"));
	tfh_result_free(r);
	r = with_metrics(true, 30);
	assert_true(fabs(total_s(r, TFH_SEGMENT_EVAL) - 16 * 8e-3) < 0.03);
	assert_true(fabs(total_s(r, TFH_SEGMENT_BETWEEN) - 16 * 30e-3) < 0.06);
	tfh_result_free(r);
	r = with_metrics(false, 8); /* shorter than the training, whose steps only compute */
	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	assert_non_null(gen_says(r, "evaluation takes"));
	tfh_result_free(r);
	r = with_metrics(false, 0.01);
	assert_null(gen_says(r, "evaluation takes"));
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_piece),
					   cmocka_unit_test(test_two_pieces),
					   cmocka_unit_test(test_metrics)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
