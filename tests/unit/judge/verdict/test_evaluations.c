/* What must hold: samples of the main thread in evaluations, and only these, tell at which lines the evaluations are. */
#include "../analyze_gen.h"

enum { AT_METRIC = 1, AT_STEP };

static const gen_stack stacks[] = {
	[AT_METRIC] = {{"/job/train.py", "metric", 38, false}},
	[AT_STEP] = {{"/job/train.py", "step", 20, false}},
};

static void test_line(void **state)
{
	(void)state;
	struct gen *g = gen_new();
	double t = 100;

	GEN_STACKS(&g->feed, stacks);
	g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int epoch = 0; epoch < 8; epoch++) {
		for (int i = 0; i < 30; i++, t += 10) {
			gen_call(g, 0, TFH_FN_torch_single, t, t + 0.5);
			gen_sample(g, 0, t + 3, TFT_STATE_RUNNING, AT_STEP, 4);
			gen_call(g, 0, TFH_FN_torch_backward, t + 5, t + 9.3)->w[0] = 1;
			struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_range, t + 9.4, t + 9.9);
			ev->kind = TFT_RANGE;
			ev->w[0] = 3;
		}
		for (int i = 0; i < 10; i++, t += 6) {
			gen_call(g, 0, TFH_FN_torch_single, t, t + 0.5);
			gen_sample(g, 0, t + 2, TFT_STATE_RUNNING, AT_METRIC, 4);
		}
	}
	struct tfh_result *r = gen_judge(g);
	const struct tfh_seen_start *s = &r->found.start[TFH_SEEN_EVALUATE];
	assert_int_equal(r->steps.total, 240);
	assert_int_equal(s->kind, TFH_BRANCH_EVALUATE);
	assert_float_equal(s->wall_s, 8 * 54e-3, 0.03);
	assert_int_equal(s->n_line, 1);
	assert_string_equal(s->line[0].function, "metric");
	assert_int_equal(s->line[0].line, 38);
	assert_true(s->line[0].share > 0.5 && s->line[0].share <= 1);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_line)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
