/* What must hold: where each step launches a kernel of its own, named by a hash as all others are, and the program waits after many
 * steps only, the steps are found; kernels that the next series launches again are layers of one step. A search that loads the same
 * kernels anew for each trial has one loop of steps in the tree, as one that keeps them. */
#include "../analyze_gen.h"

#define KEPT 5
#define NEW 50

/* 50 times five known kernels and one that is new, or one of ten in turn; a wait after each tenth time. */
static uint64_t steps_with(bool remade)
{
	static char text[1 + KEPT + NEW][40];
	struct gen *g = gen_new();
	double t = 100;

	for (int i = 1; i <= KEPT + NEW; i++) {
		snprintf(text[i], sizeof(text[i]), "drjit_%08x1a2b3c4d", 0x9e3779b1u * (unsigned)i);
		g->name[TFT_NAME_FUNCTION][i] = text[i];
	}
	for (int i = 0; i < NEW; i++) {
		for (int k = 0; k <= KEPT; k++, t += 0.02) {
			int own = KEPT + 1 + (remade ? i : i % 10);
			gen_call(g, 0, TFH_FN_cuLaunchKernel, t, t + 0.01)->w[0] =
				(uint64_t)(k < KEPT ? k + 1 : own);
		}
		t += 1;
		if (i % 10 == 9) {
			gen_call(g, 0, TFH_FN_cuMemcpyDtoH_v2, t, t + 5)->w[0] = 4;
			t += 5.02;
		}
	}
	struct tfh_result *r = gen_judge(g);
	uint64_t steps = r->steps.total;
	tfh_result_free(r);
	return steps;
}

static void test_remade(void **state)
{
	(void)state;
	assert_in_range(steps_with(true), NEW - 1, NEW);
	assert_int_equal(steps_with(false), NEW / 10);
}

#define TRIALS 10
#define LAYERS 6

/* The parts of the tree that are steps, of a search whose trials have 25 steps each: a copy, then a kernel for each layer. */
static unsigned loops_of_steps(bool loaded)
{
	static char text[LAYERS][8];
	struct gen *g = gen_new();
	unsigned loops = 0;
	double t = 100;

	for (int i = 0; i < TRIALS * LAYERS; i++) {
		snprintf(text[i % LAYERS], sizeof(text[0]), "gemm_%d", i % LAYERS);
		g->name[TFT_NAME_FUNCTION][1 + i] = text[i % LAYERS];
	}
	for (int trial = 0; trial < TRIALS; trial++, t += 60)
		for (int step = 0; step < 25; step++, t += 1) {
			gen_call(g, 0, TFH_FN_cuMemcpyHtoD_v2, t, t + 0.1)->w[0] = 4096;
			for (int k = 0; k < LAYERS; k++, t += 0.02)
				gen_call(g, 0, TFH_FN_cuLaunchKernel, t + 0.1, t + 0.11)->w[0] =
					(uint64_t)(1 + (loaded ? trial * LAYERS : 0) + k);
		}
	struct tfh_result *r = gen_judge(g);
	assert_in_range(r->steps.total, TRIALS * 25 - 2, TRIALS * 25);
	assert_int_equal(r->found.made_anew, loaded ? TRIALS : 0);
	for (uint32_t i = 0; i < r->n_tree; i++)
		loops += r->tree[i].kind == TFH_BRANCH_STEP;
	tfh_result_free(r);
	return loops;
}

static void test_trials(void **state)
{
	(void)state;
	assert_int_equal(loops_of_steps(false), 1);
	assert_int_equal(loops_of_steps(true), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_remade),
					   cmocka_unit_test(test_trials)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
