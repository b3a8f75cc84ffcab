/*
 * A thread that waits before it copies to the device. A wait for another thread of its process is called input, since a loader's thread is
 * the usual reason, but not with high confidence unless a thread or process was seen making batches: the other thread may as well take
 * results. What comes through a socket was made elsewhere.
 */
#include "../devgen.h"

enum { STEPS = 120, MAKER = 1 };

static const gen_stack stacks[] = {
	[MAKER] = {{"/job/train.py", "crop", 7, false},
		   {"/usr/lib/python3.11/threading.py", "Thread._bootstrap", 1032, true}},
};

/* Steps that wait for 8 ms, copy a batch, compute for 2 ms and fetch 64 KiB. */
static struct dg *job(enum tft_state state, bool maker)
{
	struct dg *d = dg_new();

	GEN_STACKS(&d->g->feed, stacks);
	d->g->process.exe = "job";
	for (int i = 0; i < STEPS; i++) {
		gen_sample(d->g, 0, d->now[0] + 0.5 + fmod(i * 0.37, 7), state, 0, 10);
		if (maker) {
			struct tfh_event *ev =
				gen_sample(d->g, 0, d->now[0] + 1, TFT_STATE_RUNNING, MAKER, 10);
			ev->kind = TFT_CHILD;
			ev->ctx = GEN_PID;
			ev->stream = GEN_PID + 5;
		}
		dg_code(d, 0, 8);
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 20, 0.1);
		dg_launch(d, 0, 1, 2);
		dg_copy(d, 0, 1, TFH_DIR_D2H, 1 << 16, 0.1);
		dg_sync(d, 0, 1);
	}
	return d;
}

static void test_lock(void **state)
{
	(void)state;
	struct tfh_result *r = dg_judge(job(TFT_STATE_LOCK, false));

	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_MEDIUM);
	assert_true(r->found.supposed);
	tfh_result_free(r);
	r = dg_judge(job(TFT_STATE_LOCK, true));
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
	assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_HIGH);
	assert_false(r->found.supposed);
	tfh_result_free(r);
	/* another program sends the batch, unless one of the job's was seen making it */
	r = dg_judge(job(TFT_STATE_SOCKET, true));
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
	tfh_result_free(r);
	r = dg_judge(job(TFT_STATE_SOCKET, false));
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_REMOTE);
	assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_HIGH);
	assert_false(r->found.supposed);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_lock)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
