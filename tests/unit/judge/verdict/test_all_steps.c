/*
 * A library has the loop over the steps, and the program calls it in one line: that line runs all steps, so it has no gain of its own
 * and no advice, and the verdict also names the library's callback that takes the time. If the program has the loop, and calls the
 * library for each step, its line is the verdict's.
 */
#include "../analyze_gen.h"

#define LIB "/v/lib/python3.11/site-packages/engine/"
#define TORCH "/v/lib/python3.11/site-packages/torch/"

enum { ASKS = 1, TAKES, HANDLES, STEPS, PLACES };

static const gen_stack stacks[PLACES] = {
	[ASKS] = {{TORCH "utils/data/dataloader.py", "_BaseDataLoaderIter.__next__", 721, true},
		  {LIB "engine.py", "Engine._run", 40, true},
		  {LIB "engine.py", "Engine.run", 10, true},
		  {"/job/train.py", "main", 20, false}},
	[TAKES] = {{TORCH "utils/data/dataloader.py", "_BaseDataLoaderIter.__next__", 721, true},
		   {"/job/train.py", "main", 19, false}},
	[HANDLES] = {{"/usr/lib/python3.11/statistics.py", "median", 427, true},
		     {LIB "handlers.py", "Histogram.__call__", 7, true},
		     {LIB "engine.py", "Engine._fire", 50, true},
		     {LIB "engine.py", "Engine._run", 42, true},
		     {LIB "engine.py", "Engine.run", 10, true},
		     {"/job/train.py", "main", 20, false}},
	[STEPS] = {{TORCH "_tensor.py", "Tensor.backward", 581, true},
		   {LIB "engine.py", "Engine._run", 41, true},
		   {LIB "engine.py", "Engine.run", 10, true},
		   {"/job/train.py", "main", 20, false}},
};

/* 120 steps of 10 ms: a batch, a backward pass of 3 ms, an optimizer step, and 6 ms in the library's handler. */
static struct tfh_result *judge(uint32_t asked)
{
	struct gen *g = gen_new();
	double t = 100;

	GEN_STACKS(&g->feed, stacks);
	g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int i = 0; i < 120; i++, t += 10) {
		gen_cpu(g, 0, t - 0.01, t - 0.01, asked);
		gen_call(g, 0, TFH_FN_torch_single, t, t + 0.4);
		gen_cpu(g, 0, t + 0.45, t + 0.45, STEPS);
		gen_call(g, 0, TFH_FN_torch_backward, t + 0.5, t + 3.5)->w[0] = 1;
		struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_range, t + 3.6, t + 3.8);
		ev->kind = TFT_RANGE;
		ev->w[0] = 3;
		for (int k = 0; k < 3; k++)
			gen_sample(g, 0, t + 4.2 + 1.7 * k + 0.01 * (i % 9), TFT_STATE_RUNNING,
				   HANDLES, 2.5);
	}
	return gen_judge(g);
}

static void test_engine(void **state)
{
	(void)state;
	struct tfh_result *r = judge(ASKS);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
	assert_string_equal(r->found.line.callee, "Histogram.__call__");
	assert_int_equal(r->found.line.callee_line, 7);
	assert_string_equal(r->found.line.function, "main");
	assert_true(r->found.line.not_own);
	assert_int_equal(r->n_place, 0);
	assert_null(gen_says(r, "make handlers.py:7 faster"));
	tfh_result_free(r);
}

static void test_own_loop(void **state)
{
	(void)state;
	struct tfh_result *r = judge(TAKES);

	assert_string_equal(r->found.line.function, "main");
	assert_int_equal(r->found.line.line, 20);
	assert_int_equal(r->n_place, 1);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_engine),
					   cmocka_unit_test(test_own_loop)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
