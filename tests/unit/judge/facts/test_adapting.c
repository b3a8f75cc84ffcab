/*
 * A preprocessing layer of Keras adapts to rows one by one, in more iterations and for longer than fit() trains; a second one adapts
 * to batches, as long as fit's. Samples show adapt() on the stack between these batches. The steps are fit's, with Keras' own
 * function; what adapts is start-up, neither steps nor evaluation. Without such samples nothing tells adapting from training.
 */
#include "../tf_loops.h"

enum { ADAPTS = 1, FITS, PLACES };
enum { STEPS = 60, ROWS = 1000 };

#define KERAS "/v/lib/python3.12/site-packages/keras/src/"

static const gen_stack stacks[PLACES] = {
	[ADAPTS] = {{KERAS "layers/preprocessing/index_lookup.py", "IndexLookup.update_state", 684,
		     true},
		    {KERAS "layers/preprocessing/string_lookup.py", "StringLookup.adapt", 378,
		     true},
		    {"/job/train.py", "main", 36, false}},
	[FITS] = {{KERAS "backend/tensorflow/trainer.py", "TensorFlowTrainer.fit", 399, true},
		  {"/job/train.py", "main", 48, false}},
};

/* Rows of an iterator that ops are executed with one by one. */
static double adapt(struct gen *g, double t, uint32_t iterator, int n, double ms, bool sampled)
{
	for (int i = 0; i < n; i++, t += ms) {
		gen_get(g, 0, iterator, EVAL_ROOT, t, t + 0.1)->depth = 1;
		gen_exec(g, OP_GET, t, t + 0.1);
		if (sampled)
			gen_sample(g, 0, t + 0.2, TFT_STATE_RUNNING, ADAPTS, 0.3);
		for (int k = 0; k < 3; k++)
			gen_exec(g, OP_SMALL, t + 0.5 + 0.1 * k, t + 0.55 + 0.1 * k);
	}
	gen_get(g, 0, iterator, EVAL_ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
	return t + 1;
}

static struct tfh_result *judge(bool sampled)
{
	struct gen *g = tf();
	double t = 100;

	GEN_STACKS(&g->feed, stacks);
	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_multi_step_on_iterator_111346";
	t = adapt(g, t, 7, STEPS, 5, sampled);
	t = adapt(g, t, 8, ROWS, 1.5, sampled);
	for (int i = 0; i < STEPS; i++) {
		if (sampled)
			gen_sample(g, 0, t + 12.5, TFT_STATE_RUNNING, FITS, 1);
		t = eager_step(g, t, 1, 10, 2);
	}
	end_of_data(g, t);
	return gen_judge(g);
}

static double time_of(const struct tfh_result *r, enum tfh_branch kind)
{
	double s = 0;

	for (uint32_t i = 1; i < r->n_tree; i++)
		s += r->tree[i].kind == kind ? r->tree[i].wall_s : 0;
	return s;
}

static void test_adapting(void **state)
{
	(void)state;
	struct tfh_result *r = judge(true);

	assert_int_equal(r->steps.total, STEPS);
	assert_float_equal(time_of(r, TFH_BRANCH_STARTUP), 1.8, 0.05);
	assert_float_equal(time_of(r, TFH_BRANCH_EVALUATE), 0, 1e-9);
	assert_int_equal(r->found.start[TFH_SEEN_STARTUP].line[0].line, 36);
	tfh_result_free(r);
}

static void test_unknown(void **state)
{
	(void)state;
	struct tfh_result *r = judge(false);

	assert_int_equal(r->steps.total, ROWS + STEPS);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adapting),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
