/* The first execution of one of many functions of the same base name is compiling: the function was traced anew for another shape or
 * value. Functions that take turns are not. */
#include "../analyze_gen.h"

/* Each step executes a function; `names` of them in turn, each after the first takes as long. */
static double compiled_ms(int names)
{
	struct gen *g = gen_new();
	static char text[60][40];

	for (int i = 0; i < 60; i++) {
		snprintf(text[i], sizeof(text[i]), "__inference_train_step_%d", 100 + 7 * i);
		g->name[TFT_NAME_OP][1 + i] = text[i];
	}
	g->name[TFT_NAME_OP][61] = "AddV2";
	for (int i = 0; i < 60; i++) {
		gen_exec(g, 61, 100 + 10 * i, 100.5 + 10 * i);
		gen_exec(g, (uint32_t)(1 + i % names), 101 + 10 * i, 109 + 10 * i);
	}
	struct tfh_result *r = gen_judge(g);
	double ms = 1e3 * r->found.cause_s[TFH_CAUSE_HOST_COMPILE];
	tfh_result_free(r);
	return ms;
}

static void test_retraced(void **state)
{
	(void)state;
	assert_true(compiled_ms(2) == 0);
	assert_true(compiled_ms(1) == 0);
	assert_true(compiled_ms(60) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retraced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
