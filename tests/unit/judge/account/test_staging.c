/* Data in pageable memory that a library's own thread copies to pinned memory before the device's copy, while the loop waits, is
 * transfer-bound by copies from pageable memory, and the gain is that of a step without them. It is not if the other thread runs
 * Python (a loader of the program); and if the loop itself was running, its own code is what the copy waited for. In a job of two
 * ranks, a thread that waited for the stream before sends back what it exchanged: communication. */
#include "../devgen.h"

enum { DRIVER, OTHER };

enum { IN_LOADER = 1 };

static const gen_stack stacks[] = {[IN_LOADER] = {{"/home/me/train.py", "load", 12, false}}};

/* Steps of 9 ms: the copy is prepared for 6 ms, made in 1 ms, then 2 ms are computed. */
static bool waits_first; /* the other thread waits for its stream before the copy is prepared */
static int ranks;

static struct tfh_result *judge(enum tft_state state, bool python)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 120; i++) {
		double from = d->now[DRIVER];
		gen_sample(d->g, DRIVER, from + fmod(i * 0.618, 1) * 6, state, 0, 10);
		if (waits_first)
			dg_sync(d, OTHER, 2);
		dg_code_until(d, OTHER, from + 6);
		size_t first = d->g->n;
		dg_copy(d, OTHER, 2, TFH_DIR_H2D, 1 << 26, 1);
		d->g->ev[first].stack = python ? IN_LOADER : 0;
		dg_record(d, OTHER, 3, 2);
		dg_code_until(d, DRIVER, d->now[OTHER] + 0.02);
		dg_wait(d, DRIVER, 1, 3);
		for (int k = 0; k < 4; k++)
			dg_launch(d, DRIVER, 1, 0.5);
		dg_sync(d, DRIVER, 1);
	}
	if (python)
		GEN_STACKS(&d->g->feed, stacks);
	d->g->process.world = ranks;
	return dg_judge(d);
}

static double gain_ms(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == TFH_REMOVE_TRANSFER)
			return 1e3 * r->whatif[i].step_s;
	return NAN;
}

static void test_staged(void **state)
{
	(void)state;
	struct tfh_result *r = judge(TFT_STATE_LOCK, false);

	gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_H2D_PAGEABLE);
	gen_part(r, TFH_PART_TRANSFER, 7);
	assert_true(gain_ms(r) > 1.9 && gain_ms(r) < 2.3);
	assert_non_null(gen_says(r, "a thread of the library first copies it to pinned memory"));
	tfh_result_free(r);
}

static void test_loader(void **state)
{
	(void)state;
	struct tfh_result *r = judge(TFT_STATE_LOCK, true);

	assert_int_not_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_H2D_PAGEABLE);
	tfh_result_free(r);
}

static void test_running(void **state)
{
	(void)state;
	struct tfh_result *r = judge(TFT_STATE_RUNNING, false);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
	gen_part(r, TFH_PART_HOST, 6);
	tfh_result_free(r);
}

static void test_exchange(void **state)
{
	(void)state;
	struct tfh_result *r;

	waits_first = true;
	for (ranks = 1; ranks <= 2; ranks++) {
		r = judge(TFT_STATE_LOCK, false);
		if (ranks == 2) {
			gen_expect(r, TFH_CLASS_COMMUNICATION_BOUND,
				   TFH_CAUSE_COMMUNICATION_TRANSFER);
			gen_part(r, TFH_PART_COMMUNICATION, 6);
		} else {
			gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_H2D_PAGEABLE);
		}
		tfh_result_free(r);
	}
	waits_first = false;
	ranks = 2; /* without that wait it is a copy, however many ranks there are */
	r = judge(TFT_STATE_LOCK, false);
	gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_H2D_PAGEABLE);
	tfh_result_free(r);
	ranks = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_staged),
		cmocka_unit_test(test_loader),
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_exchange),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
