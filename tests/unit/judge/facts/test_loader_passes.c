/* Passes through PyTorch's loaders whose batches go to kernels that are no work of PyTorch's: those behind which only a part of the
 * training is launched evaluate, also as many as train. The same launches, others only, or fewer in the same pass are steps like the others. */
#include "../analyze_gen.h"

enum { EPOCHS = 12, BATCHES = 10, TESTED = 3 };
enum { FORWARD = 1, LOSS, BACKWARD, UPDATE, METRIC, OTHER };
enum kind { EVALUATES, AS_MANY, THE_SAME, OTHER_ONLY, ACCUMULATES, ONCE, KINDS };

static double t;

static void launch(struct gen *g, uint64_t kernel)
{
	gen_call(g, 0, TFH_FN_cuLaunchKernel, t, t + 0.01)->w[0] = kernel;
	t += 0.02;
}

static void batch(struct gen *g, bool tests, bool updates)
{
	gen_call(g, 0, TFH_FN_torch_single, t, t + 2);
	t += 2.01;
	gen_copy(g, TFH_FN_cuMemcpyHtoDAsync_v2, t, t + 0.02, 65536, false);
	t += 0.03;
	launch(g, FORWARD);
	if (tests) {
		launch(g, METRIC);
	} else {
		launch(g, LOSS);
		launch(g, BACKWARD);
		if (updates)
			launch(g, UPDATE);
	}
	gen_call(g, 0, TFH_FN_cuStreamSynchronize, t, t + 4);
	t += 4.01;
}

static void end(struct gen *g)
{
	gen_call(g, 0, TFH_FN_torch_single, t, t + 0.2)->flags = TFT_F_OPTIONAL;
	t += 0.3;
}

static void test_passes(void **state)
{
	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		struct gen *g = gen_new();
		t = 100;
		for (int epoch = 0; epoch < EPOCHS; epoch++) {
			for (int i = 0; i < BATCHES; i++)
				batch(g, false, kind != ACCUMULATES || i % 2);
			end(g);
			for (int i = 0;
			     i < (kind == AS_MANY ? BATCHES : TESTED) && (kind != ONCE || !epoch);
			     i++) {
				if (kind == OTHER_ONLY) {
					gen_call(g, 0, TFH_FN_torch_single, t, t + 2);
					t += 2.01;
					launch(g, OTHER);
					gen_call(g, 0, TFH_FN_cuStreamSynchronize, t, t + 4);
					t += 4.01;
				} else {
					batch(g, kind <= AS_MANY || kind == ONCE, true);
				}
			}
			if (kind != ONCE || !epoch)
				end(g);
		}
		struct tfh_result *r = gen_judge(g);
		uint64_t more = kind <= AS_MANY ? 0 : kind == ONCE ? TESTED : EPOCHS * TESTED;
		assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_ITERATOR);
		assert_int_equal(r->steps.total, EPOCHS * BATCHES + more);
		uint64_t evals = 0;
		for (uint32_t i = 0; i < r->n_segments; i++)
			evals += r->segments[i].kind == TFH_SEGMENT_EVAL ? r->segments[i].count : 0;
		assert_int_equal(evals, kind <= AS_MANY ? EPOCHS : 0);
		gen_closed(r);
		tfh_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_passes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
