/* What must hold: samples of the main thread in evaluations, and only these, tell at which lines the evaluations are; if steps are at
 * that line, too, it is the line that calls it there. What follows the last step at the lines of the gaps between epochs is one more
 * gap, in every table, and counts as one where few gaps are seen; what the program does after it is not. All gaps together have their
 * lines; where a function has most of them, these are not those that call it. Lines around the loop lead to steps and gaps, and tell
 * neither. */
#include "../tf_loops.h"

enum { AT_METRIC = 1, AT_METRIC_TOO, AT_STEP, AT_SAVE, AT_SHARED, IN_STEP, IN_GAP };

static const gen_stack stacks[] = {
	[AT_METRIC] = {{"/job/train.py", "metric", 38, false},
		       {"/job/train.py", "main", 91, false}},
	[AT_METRIC_TOO] = {{"/job/train.py", "metric", 39, false},
			   {"/job/train.py", "main", 91, false}},
	[AT_STEP] = {{"/job/train.py", "step", 20, false}},
	[AT_SAVE] = {{"/job/train.py", "save", 50, false}},
	[AT_SHARED] = {{"/job/train.py", "step", 20, false},
		       {"/job/train.py", "evaluate", 44, false},
		       {"/job/train.py", "main", 90, false}},
	[IN_STEP] = {{"/job/train.py", "step", 20, false},
		     {"/job/train.py", "main", 85, false},
		     {"/job/train.py", "<module>", 99, false}},
	[IN_GAP] = {{"/job/train.py", "step", 20, false},
		    {"/job/train.py", "evaluate", 44, false},
		    {"/job/train.py", "main", 90, false},
		    {"/job/train.py", "<module>", 99, false}},
};

/* A step of 10 ms. */
static void step(struct gen *g, double t)
{
	gen_call(g, 0, TFH_FN_torch_single, t, t + 0.5);
	gen_sample(g, 0, t + 3, TFT_STATE_RUNNING, AT_STEP, 4);
	gen_call(g, 0, TFH_FN_torch_backward, t + 5, t + 9.3)->w[0] = 1;
	struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_range, t + 9.4, t + 9.9);
	ev->kind = TFT_RANGE;
	ev->w[0] = 3;
}

/* Evaluations are at `place`, in that state, which concerns descriptor `fd` (-1: none). */
static struct tfh_result *evaluates(uint32_t place, enum tft_state state, int fd)
{
	struct gen *g = gen_new();
	double t = 100;

	GEN_STACKS(&g->feed, stacks);
	g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int epoch = 0; epoch < 8; epoch++) {
		for (int i = 0; i < 30; i++, t += 10)
			step(g, t);
		for (int i = 0; i < 10; i++, t += 6) {
			gen_call(g, 0, TFH_FN_torch_single, t, t + 0.5);
			gen_sample(g, 0, t + 2, state, place, 4)->w[1] = (uint64_t)(uint32_t)fd
									 << 32;
		}
	}
	return gen_judge(g);
}

static void evaluates_at(uint32_t place, const char *function, uint32_t line)
{
	struct tfh_result *r = evaluates(place, TFT_STATE_RUNNING, -1);
	const struct tfh_seen_start *s = &r->found.start[TFH_SEEN_EVALUATE];
	assert_int_equal(r->steps.total, 240);
	assert_int_equal(s->kind, TFH_BRANCH_EVALUATE);
	assert_float_equal(s->wall_s, 8 * 54e-3, 0.03);
	assert_int_equal(s->n_line, 1);
	assert_string_equal(s->line[0].function, function);
	assert_int_equal(s->line[0].line, line);
	assert_true(s->line[0].share > 0.5 && s->line[0].share <= 1);
	tfh_result_free(r);
}

static void test_line(void **state)
{
	(void)state;
	evaluates_at(AT_METRIC, "metric", 38);
	evaluates_at(AT_SHARED, "evaluate", 44);
}

/* A part has the kernel's state of a sample that tells a log, too, so shares add up. */
static void test_states(void **state)
{
	(void)state;
	struct tfh_result *r = evaluates(AT_METRIC, TFT_STATE_WRITE, 2);
	assert_true(r->found.start[TFH_SEEN_EVALUATE].state[TFT_STATE_WRITE] > 0.5);
	tfh_result_free(r);
}

/* Epochs, each with a pause of 300 ms behind it; then the program saves for 500 ms. */
static struct tfh_result *with_gaps(int epochs, uint32_t step, uint32_t gap, uint32_t gap_too)
{
	struct gen *g = tf();
	double t = 100;

	GEN_STACKS(&g->feed, stacks);
	for (int epoch = 0; epoch < epochs; epoch++) {
		for (int i = 0; i < 40; i++) {
			gen_sample(g, 0, t + 4, TFT_STATE_RUNNING, step, 8);
			t = eager_step(g, t, 0.5, 9, 0.2);
		}
		end_of_data(g, t);
		t += 0.05;
		for (int i = 0; i < 10; i++, t += 30)
			gen_sample(g, 0, t + 15, TFT_STATE_RUNNING, i % 2 ? gap : gap_too, 30);
	}
	for (int i = 0; i < 10; i++, t += 50)
		gen_sample(g, 0, t + 25, TFT_STATE_RUNNING, AT_SAVE, 50);
	struct tfh_result *r = gen_judge(g);
	uint32_t gaps = tfh_recurring_of(r, TFH_SEGMENT_BETWEEN), found = 0;
	assert_true(gaps > 0);
	assert_int_equal(r->recurring[gaps - 1].count, epochs);
	for (uint32_t i = 0; i < r->n_segments; i++)
		if (r->segments[i].kind == TFH_SEGMENT_BETWEEN) {
			assert_int_equal(r->segments[i].count, epochs);
			assert_float_equal(r->segments[i].total_s, epochs * 0.3, 0.1);
			found++;
		}
	assert_int_equal(found, 1);
	return r;
}

static void test_last_gap(void **state)
{
	(void)state;
	struct tfh_result *r = with_gaps(4, AT_STEP, AT_METRIC, AT_METRIC_TOO);
	const struct tfh_seen_start *s = &r->found.start[TFH_SEEN_BETWEEN];
	assert_int_equal(s->kind, TFH_BRANCH_BETWEEN);
	assert_int_equal(s->n_line, 2);
	assert_true(tfh_start_together(&s->line[0], &s->line[1]));
	assert_string_equal(s->line[0].function, "metric");
	assert_true(s->line[0].share + s->line[1].share > 0.9);
	tfh_result_free(r);
}

static void test_shared_lines(void **state)
{
	(void)state;
	struct tfh_result *r = with_gaps(3, IN_STEP, IN_GAP, IN_GAP);
	const struct tfh_seen_start *s = &r->found.start[TFH_SEEN_BETWEEN];

	assert_int_equal(s->n_line, 1);
	assert_string_equal(s->line[0].function, "evaluate");
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line), cmocka_unit_test(test_states),
		cmocka_unit_test(test_last_gap), cmocka_unit_test(test_shared_lines)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
