/* Runs of TensorFlow on the CPU that predict: in or after each step, or as all that they do. The number of steps and the phases are
 * those that the trace was made from. */
#include "../tf_loops.h"

/* After every step a new iterator of four batches is predicted: no step has a closing batch, but they are judged. */
static void test_predicts_each_step(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (uint32_t step = 0; step < 40; step++) {
		gen_get(g, 0, 1, ROOT, t, t + 6);
		gen_exec(g, OP_GET, t, t + 6);
		gen_exec(g, OP_TRAIN, t + 6.01, t + 10);
		t += 12;
		t = evaluate(g, t, 10 + step, 4, 3);
		t += 1;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 40);
	assert_true(r->steps.count >= 36);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	tfh_result_free(r);
}

/* A callback of Keras predicts in each step, through an iterator of its own: these are steps, neither evaluations nor predictions. */
static void test_predicts_in_steps(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100, steps = 0;

	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_one_step_on_iterator_10";
	g->name[TFT_NAME_OP][OP_TEST] = "__inference_one_step_on_data_distributed_20";
	for (int i = 0; i < 60; i++, t += 20) {
		gen_get(g, 0, 1, ROOT, t, t + 0.1);
		gen_exec(g, OP_GET, t, t + 0.1);
		gen_exec(g, OP_TRAIN, t + 0.2, t + 9);
		gen_get(g, 0, 2, EVAL_ROOT, t + 10, t + 10.1);
		gen_exec(g, OP_GET, t + 10, t + 10.1);
		gen_exec(g, OP_TEST, t + 10.2, t + 19);
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 60);
	for (uint32_t i = 1; i < r->n_tree; i++) {
		assert_int_not_equal(r->tree[i].kind, TFH_BRANCH_EVALUATE);
		assert_int_not_equal(r->tree[i].kind, TFH_BRANCH_PREDICT);
		steps += r->tree[i].kind == TFH_BRANCH_STEP ? r->tree[i].wall_s : 0;
	}
	assert_true(steps > 1);
	tfh_result_free(r);
}

/* Each step calls predict(), which makes a pipeline of its own. One size of batch has a function of its own: it does not train. */
static void test_predicts_only(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_one_step_on_data_distributed_10";
	g->name[TFT_NAME_OP][OP_TEST] = "__inference_one_step_on_data_distributed_20";
	for (uint32_t i = 0; i < 120; i++, t += 20) {
		gen_get(g, 0, 1 + i, ROOT, t, t + 0.1);
		gen_exec(g, OP_GET, t, t + 0.1);
		gen_exec(g, i % 12 ? OP_TEST : OP_TRAIN, t + 0.2, t + 2);
		gen_get(g, 0, 1 + i, ROOT, t + 3, t + 3.1)->flags = TFT_F_OPTIONAL;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 120);
	assert_int_equal(r->lead, 0);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_predicts_each_step),
		cmocka_unit_test(test_predicts_in_steps),
		cmocka_unit_test(test_predicts_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
