/* What must hold: where each step launches a kernel of its own, named by a hash as all others are, and the program waits after many
 * steps only, the steps are found; kernels that the next series launches again are layers of one step. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_remade)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
