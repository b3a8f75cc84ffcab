/*
 * A job that fetches results, sends them to a child process over a socket, and copies to the device what comes back. A child that
 * works while the job waits, waits while the job works, and works at the same lines, is no loader: the job waits for another process,
 * and the gain is that of the work at both ends. A child that works all the time, or at lines of its own, makes batches.
 */
#include "../devgen.h"

enum { AT_SEND = 1, AT_RECEIVE, AT_STEP, AT_SERVE };

#define MAIN "/job/net.py", "main", 90, false

static const gen_stack stacks[] = {
	[AT_SEND] = {{"/job/net.py", "Net.send", 29, false}, {MAIN}},
	[AT_RECEIVE] = {{"/job/net.py", "Net.recv", 19, false}, {MAIN}},
	[AT_STEP] = {{"/job/net.py", "step", 70, false}, {MAIN}},
	[AT_SERVE] = {{"/job/net.py", "serve", 51, false}, {MAIN}},
};

static void both(struct dg *d, double t, double ms, uint32_t own, enum tft_state state,
		 uint32_t other, enum tft_state others)
{
	gen_sample(d->g, 0, t, state, own, ms);
	struct tfh_event *ev = gen_sample(d->g, 0, t + 0.05, others, other, ms);

	ev->kind = TFT_CHILD;
	ev->ctx = GEN_PID + 1;
	ev->stream = GEN_PID + 5;
}

/* Steps of 13 ms: 4 ms of packing, 6 ms at the socket, a copy, 2 ms of computing, results. */
static struct tfh_result *judge(uint32_t other, bool ahead)
{
	struct dg *d = dg_new();

	GEN_STACKS(&d->g->feed, stacks);
	for (int i = 0; i < 120; i++) {
		double t = d->now[0], at = fmod(i * 0.618, 1);
		both(d, t + at * 4, 4, AT_SEND, TFT_STATE_RUNNING, ahead ? other : AT_RECEIVE,
		     ahead ? TFT_STATE_RUNNING : TFT_STATE_SOCKET);
		both(d, t + 4 + at * 6, 6, AT_RECEIVE, TFT_STATE_SOCKET, other, TFT_STATE_RUNNING);
		dg_code(d, 0, 10);
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 16, 0.1);
		for (int k = 0; k < 4; k++)
			dg_launch(d, 0, 1, 0.5);
		dg_copy(d, 0, 1, TFH_DIR_D2H, 1 << 16, 0.1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};
	if (tfh_analyze_feed(dg_feed(d), &r, &err))
		print_error("%s\n", err.text);
	dg_free(d);
	assert_non_null(r);
	return r;
}

static void test_both_ends(void **state)
{
	(void)state;
	struct tfh_result *r = judge(AT_SEND, false);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_WAIT);
	gen_part(r, TFH_PART_HOST, 10);
	assert_true(r->found.both_s > 0.009 && r->found.both_s < 0.0101);
	assert_true(r->line_place > 0);
	const struct tfh_whatif *w = &r->place[r->line_place - 1].gain;
	assert_true(w->about_s > 0.002 && w->about_s < 0.004);
	assert_non_null(gen_says(r, "take turns"));
	tfh_result_free(r);
}

static void test_other_work(void **state)
{
	(void)state;
	struct tfh_result *r = judge(AT_SERVE, false);

	assert_int_equal(r->verdict.cls, TFH_CLASS_INPUT_BOUND);
	assert_true(r->found.both_s == 0);
	tfh_result_free(r);
}

static void test_works_ahead(void **state)
{
	(void)state;
	struct tfh_result *r = judge(AT_SEND, true);

	assert_int_equal(r->verdict.cls, TFH_CLASS_INPUT_BOUND);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_ends),
					   cmocka_unit_test(test_other_work),
					   cmocka_unit_test(test_works_ahead)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
