/*
 * PyTorch with a loader, where two batches are accumulated for each step: the steps, the windows and the run's tree are those of
 * the optimizer, whether both batches are taken before the first backward pass or each before its own. No batch of training
 * counts as evaluation, and no step as an epoch. Where a generator reads the loader again and again, a step's batches may be of two
 * iterators, also if the loader fetches a batch ahead: the optimizer tells the steps, and no iterator is an epoch. What is left over
 * at the end of an epoch is no step of its own.
 */
#include "../analyze_gen.h"

enum order { TOGETHER, IN_TURN, EVALUATED, ORDERS };

static double batch(struct gen *g, double t)
{
	gen_call(g, 0, TFH_FN_torch_single, t, t + 0.5);
	return t + 0.5;
}

/* The first pass of a step takes longer. */
static double pass(struct gen *g, double t, int k)
{
	double ns = k ? 3 : 5;

	gen_call(g, 0, TFH_FN_torch_backward, t + 1, t + 1 + ns)->w[0] = 1;
	return t + 1 + ns;
}

static double steps(struct gen *g, enum order order, int n, double t)
{
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < 2 && order != IN_TURN; k++)
			t = batch(g, t);
		for (int k = 0; k < 2; k++) {
			t = order == IN_TURN ? batch(g, t) : t;
			t = pass(g, t, k);
		}
		struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_range, t, t + 0.5);
		ev->kind = TFT_RANGE;
		ev->w[0] = 3;
		t += 1;
	}
	return t;
}

/* The steps of the tree's parts of this kind. */
static uint64_t in_tree(const struct tfh_result *r, enum tfh_branch kind)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->n_tree; i++)
		n += r->tree[i].kind == kind ? r->tree[i].count : 0;
	return n;
}

static void test_accumulated(void **state)
{
	(void)state;
	for (enum order order = TOGETHER; order < ORDERS; order++) {
		struct gen *g = gen_new();
		double t;

		g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
		g->name[TFT_NAME_OP][1] = "Engine::execute";
		t = steps(g, order, 60, 0);
		for (int i = 0; i < 9 && order == EVALUATED; i++)
			t = batch(g, t) + 4;
		steps(g, order, 60, t);
		struct tfh_result *r = gen_judge(g);
		assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_ITERATOR);
		assert_int_equal(r->steps.total, 120);
		assert_int_equal(in_tree(r, TFH_BRANCH_STEP) + in_tree(r, TFH_BRANCH_TRAIN), 120);
		assert_int_equal(in_tree(r, TFH_BRANCH_EPOCH), 0);
		assert_int_equal(in_tree(r, TFH_BRANCH_FIRST), 0);
		if (order != EVALUATED)
			assert_int_equal(in_tree(r, TFH_BRANCH_EVALUATE), 0);
		gen_closed(r);
		tfh_result_free(r);
	}
}

/* An iterator's call: a batch, or its end. */
static double call(struct gen *g, double t, bool end)
{
	struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_single, t, t + 0.5);

	ev->flags |= end ? TFT_F_OPTIONAL : 0;
	return t + 0.5;
}

/* The pass of a batch, and the update of every second one. */
static double train(struct gen *g, double t, uint32_t *n)
{
	t = pass(g, t, 0);
	if (++*n % 2)
		return t;
	struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_range, t, t + 0.5);
	ev->kind = TFT_RANGE;
	ev->w[0] = 3;
	return t + 1;
}

/* 12 iterators of 13 batches. `ahead`: the loader fetches the next batch first; `again`: each epoch counts its batches anew. */
static struct tfh_result *cycle(bool ahead, bool again)
{
	struct gen *g = gen_new();
	uint32_t n = 0;
	double t = 0;

	g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int k = 0; k < 12; k++) {
		n = again ? 0 : n;
		t = ahead ? call(g, t, false) : t;
		for (int i = 0; i < 13; i++) {
			t = call(g, t, ahead && i == 12);
			t = train(g, t, &n);
		}
		t = ahead ? t : call(g, t, true);
	}
	return gen_judge(g);
}

static void test_endless(void **state)
{
	(void)state;
	for (int ahead = 0; ahead < 2; ahead++) {
		struct tfh_result *r = cycle(ahead, false);
		assert_int_equal(r->steps.total, 78);
		assert_int_equal(in_tree(r, TFH_BRANCH_STEP) + in_tree(r, TFH_BRANCH_TRAIN), 78);
		assert_int_equal(in_tree(r, TFH_BRANCH_EPOCH), 0);
		assert_int_equal(in_tree(r, TFH_BRANCH_EVALUATE), 0);
		gen_closed(r);
		tfh_result_free(r);
	}
}

static void test_left_over(void **state)
{
	(void)state;
	struct tfh_result *r = cycle(false, true);

	/* that of the last epoch may still be followed by an update */
	assert_in_range(r->steps.total, 72, 73);
	gen_closed(r);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accumulated),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_left_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
