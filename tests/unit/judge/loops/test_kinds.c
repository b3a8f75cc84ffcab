/*
 * What must hold of steps that differ: what evaluates, parts of one step, and steps of which no two are alike are told apart, in the
 * verdict as in the run's tree.
 */
#include "period_jobs.h"

/* The steps of the tree's parts of this kind. */
static uint64_t in_tree(const struct tfh_result *r, enum tfh_branch kind)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->n_tree; i++)
		n += r->tree[i].kind == kind ? r->tree[i].count : 0;
	return n;
}

/* The first 20 of 40 steps launch and wait differently each: they are steps in the run's tree, too. */
static void test_early(void **state)
{
	struct job j = job_new();

	(void)state;
	for (uint32_t i = 0; i < 40; i++) {
		up(&j, 100000);
		for (uint32_t k = 0; k < 4; k++) {
			there(&j, 3 + k, 0.3);
			if (i < 20)
				kernel(&j, METRIC + 20 + 4 * i + k, 64, 0.3);
			if (k < 3 && (i + k) % 3)
				wait(&j);
		}
		fetch(&j, 4);
	}
	struct tfh_result *r = judge(&j, 40, 0);
	double before = 0;
	for (uint32_t i = 0; i < r->n_tree; i++)
		before += r->tree[i].kind == TFH_BRANCH_STARTUP ? r->tree[i].wall_s : 0;
	assert_true(before < 4 * r->steps.median_s);
	assert_true(in_tree(r, TFH_BRANCH_STEP) >= 36);
	tfh_result_free(r);
}

/* A small network is evaluated for longer than it trains, and half of what that launches computes the
 * metric: an evaluation if names show which of the two trains. */
static void test_metric(void **state)
{
	(void)state;
	for (int named = 0; named < 2; named++) {
		struct job j = job_new();
		if (named)
			j.g->name[TFT_NAME_FUNCTION][UPDATE] = "momentum_sgd";
		for (uint32_t epoch = 0; epoch < 5; epoch++) {
			for (int i = 0; i < 20; i++) {
				up(&j, 100000);
				train(&j, 1, 0.3);
				fetch(&j, 4);
			}
			for (int i = 0; i < 80; i++) {
				up(&j, 100000);
				there(&j, 1, 0.3);
				kernel(&j, METRIC, 64, 0.1);
				fetch(&j, 4);
			}
		}
		struct tfh_result *r = judge(&j, named ? 100 : 500, 0);
		assert_int_equal(evaluations(r), named ? 5 : 0);
		assert_int_equal(in_tree(r, TFH_BRANCH_TRAIN), named ? 100 : 0);
		assert_int_equal(in_tree(r, TFH_BRANCH_EVALUATE), named ? 400 : 0);
		tfh_result_free(r);
	}
}

/* Between series of steps that train, an agent acts, by a kernel of its own that training does not launch, whichever number it has. */
static void test_acting(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 40; k++) {
		struct job j = job_new();
		j.g->name[TFT_NAME_FUNCTION][UPDATE] = "momentum_sgd";
		for (uint32_t round = 0; round < 5; round++) {
			for (int i = 0; i < 20; i++) {
				up(&j, 4000);
				kernel(&j, METRIC + k, 64, 0.1);
				fetch(&j, 64);
			}
			for (int i = 0; i < 10; i++) {
				up(&j, 100000);
				train(&j, 1, 0.3);
				fetch(&j, 4);
			}
		}
		tfh_result_free(judge(&j, 50, 0));
	}
}

/* Two phases of one network, one of the other, which takes noise of its own, and is read: they are one
 * step if names show that each updates a model. */
static void test_phases(void **state)
{
	(void)state;
	for (int named = 0; named < 2; named++) {
		struct job j = job_new();
		if (named) {
			j.g->name[TFT_NAME_FUNCTION][UPDATE] = "g_adam";
			j.g->name[TFT_NAME_FUNCTION][OTHER] = "d_adam";
		}
		for (int i = 0; i < 40; i++) {
			for (int k = 0; k < 2; k++) {
				up(&j, 100000);
				there(&j, 4, 0.2);
				kernel(&j, OTHER, 64, 0.1);
				wait(&j);
			}
			up(&j, 8000);
			there(&j, 3, 0.2);
			kernel(&j, UPDATE, 64, 0.1);
			fetch(&j, 4);
		}
		tfh_result_free(judge(&j, named ? 40 : 120, 0));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_metric),
		cmocka_unit_test(test_acting),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_phases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
