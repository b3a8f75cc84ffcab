/* What must hold: time in which the device computes what steps issued ahead is time of the steps in the run's tree, not between loops;
 * checkpoints have a part of their own, which takes what they take in the verdict, and the loop that fetches the model is not steps; a
 * gap in which the device idles remains one. The tree's steps take as long as the windows': what longer first steps or the end of an
 * epoch take is no time of the steps, even if no call separates it from them; nor is what a step takes that stands still. */
#include "../devgen.h"
#include "../tf_loops.h"

static double seconds(const struct tfh_result *r, enum tfh_branch kind)
{
	double s[TFH_BRANCH_COUNT];

	tfh_spent_all(r, s);
	return s[kind];
}

static void forward_and_back(struct dg *d, double ms)
{
	dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 20, 0.05);
	for (int k = 0; k < 8; k++) {
		struct tfh_op *op = dg_launch(d, 0, 1, ms / 8);
		op->name = k < 4 ? "forward" : "backward";
		d->g->ev[d->g->n - 1].w[0] = 1 + (uint64_t)k;
	}
}

/* The parts of a parent add up to it, and each comes after it. */
static void adds_up(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_tree; i++) {
		double all = 0;
		bool any = false;
		assert_true(r->tree[i].parent <= i);
		for (uint32_t k = i + 1; k < r->n_tree; k++)
			if (r->tree[k].parent == i) {
				all += r->tree[k].wall_s;
				any = true;
			}
		assert_true(!any || fabs(all - r->tree[i].wall_s) < 1e-6);
	}
}

/* The tree's only loop of steps has as many of them as the verdict. */
static void counts_alike(const struct tfh_result *r)
{
	uint32_t loops = 0;

	for (uint32_t i = 1; i < r->n_tree; i++)
		if (r->tree[i].kind == TFH_BRANCH_STEP || r->tree[i].kind == TFH_BRANCH_TRAIN) {
			loops++;
			assert_int_equal(r->tree[i].count, r->steps.total);
		}
	assert_int_equal(loops, 1);
}

/* Four steps are issued within a moment, then waited for. */
static void test_issued_ahead(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 400; i++) {
		forward_and_back(d, 8);
		if (i % 4 == 3)
			dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->steps.total, 400);
	adds_up(r);
	assert_true(seconds(r, TFH_BRANCH_BETWEEN) < 0.02 * 3.2);
	assert_true(seconds(r, TFH_BRANCH_STEP) > 0.95 * 3.2);
	counts_alike(r);
	tfh_result_free(r);
}

/* A step launches one graph; forty are waited for together. */
static void test_few_waits(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 400; i++) {
		struct tfh_op *op = dg_launch(d, 0, 1, 8);
		op->name = i % 2 ? "back" : "forth";
		d->g->ev[d->g->n - 1].w[0] = 1 + (uint64_t)i % 2;
		if (i % 80 == 79)
			dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->steps.total, 200);
	counts_alike(r);
	tfh_result_free(r);
}

/* After each twelfth step the model is fetched tensor by tensor, and written: 60 ms. */
static void test_checkpoints(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 480; i++) {
		forward_and_back(d, 5);
		dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 4, 2 * US);
		if (i % 12 != 11)
			continue;
		for (int k = 0; k < 20; k++) {
			dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 1 << 20, 0.1);
			dg_code(d, 0, 0.1);
			dg_call(d, 0, TFH_FN_cuEventSynchronize, 2 * US);
		}
		dg_code(d, 0, 56);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->steps.total, 480);
	adds_up(r);
	assert_true(fabs(seconds(r, TFH_BRANCH_STEP) - 480 * 5.1e-3) < 0.2);
	assert_true(fabs(seconds(r, TFH_BRANCH_CHECKPOINT) - 40 * 60e-3) < 0.3);
	assert_true(seconds(r, TFH_BRANCH_BETWEEN) < 0.2);
	tfh_result_free(r);
}

/* From step 240 on, each step's fetch is larger, and it is written to a file: 20 ms. The calls are the same in all steps. */
static void test_saved_by_steps(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 400; i++) {
		forward_and_back(d, 5);
		dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, i < 240 ? 8192 : 3 << 19, 0.1);
		dg_code(d, 0, i < 240 ? 0.1 : 20);
	}
	struct tfh_result *r = dg_judge(d);
	const struct tfh_recurring *saved = NULL;
	for (uint32_t i = 0; i < r->n_recurring; i++)
		if (r->recurring[i].kind == TFH_SEGMENT_CHECKPOINT)
			saved = &r->recurring[i];
	assert_non_null(saved);
	assert_true(fabs(saved->total_s - 160 * 20e-3) < 0.2);
	assert_true(fabs(seconds(r, TFH_BRANCH_CHECKPOINT) - saved->total_s) < 1e-6);
	assert_true(fabs(seconds(r, TFH_BRANCH_STEP) - 400 * 5.1e-3) < 0.2);
	adds_up(r);
	tfh_result_free(r);
}

/* Rounds of 20 steps; before each, something is set up for 60 ms. */
static void test_gap(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 400; i++) {
		if (i % 20 == 0) {
			dg_copy(d, 0, 1, TFH_DIR_H2D, 64, 2 * US);
			dg_code(d, 0, 60);
			dg_call(d, 0, TFH_FN_cuEventSynchronize, 2 * US);
		}
		forward_and_back(d, 5);
		dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 4, 2 * US);
	}
	struct tfh_result *r = dg_judge(d);
	adds_up(r);
	assert_true(fabs(seconds(r, TFH_BRANCH_BETWEEN) - 20 * 60e-3) < 0.2);
	assert_true(fabs(seconds(r, TFH_BRANCH_STEP) - 400 * 5.1e-3) < 0.2);
	tfh_result_free(r);
}

/* Three steps stand still for a second each, within the code that all steps run. */
static void test_stalls(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 400; i++) {
		forward_and_back(d, 5);
		dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 4, 2 * US);
		dg_code(d, 0, i == 97 || i == 250 || i == 311 ? 1003 : 3);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->steps.total, 400);
	adds_up(r);
	assert_true(fabs(seconds(r, TFH_BRANCH_STALL) - 3) < 0.05);
	assert_true(fabs(seconds(r, TFH_BRANCH_STEP) - 400 * 8.1e-3) < 0.2);
	for (uint32_t i = 0; i < r->n_tree; i++)
		if (r->tree[i].kind == TFH_BRANCH_STALL)
			assert_int_equal(r->tree[i].count, 3);
	tfh_result_free(r);
}

/* Epochs of 20 steps of 10 ms whose iterators never report their end; after each, Keras works for 300 ms without any call. The first
 * two steps set something up for 600 ms each. */
static void test_silent_end(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (uint32_t epoch = 0; epoch < 10; epoch++, t += 300)
		for (int i = 0; i < 20; i++) {
			gen_get(g, 0, 1 + epoch, ROOT, t, t + 1);
			gen_exec(g, OP_GET, t, t + 1);
			t += epoch == 0 && i < 2 ? 601 : 1;
			gen_exec(g, OP_TRAIN, t, t + 9);
			t += 9;
		}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 200);
	adds_up(r);
	assert_true(fabs(seconds(r, TFH_BRANCH_STEP) + seconds(r, TFH_BRANCH_TRAIN) - 200 * 10e-3) <
		    0.05);
	assert_true(fabs(seconds(r, TFH_BRANCH_BETWEEN) - 9 * 0.3) < 0.05);
	assert_true(fabs(seconds(r, TFH_BRANCH_FIRST) - 2 * 0.6) < 0.05);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_issued_ahead), cmocka_unit_test(test_few_waits),
		cmocka_unit_test(test_checkpoints),  cmocka_unit_test(test_saved_by_steps),
		cmocka_unit_test(test_gap),	     cmocka_unit_test(test_stalls),
		cmocka_unit_test(test_silent_end)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
