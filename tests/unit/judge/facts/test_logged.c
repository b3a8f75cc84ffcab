/* Ops that a program executes one by one after its step's function or last update, up to one that writes a summary, are logging; without a
 * summary they compute. Ops of a step that trains op by op, before its updates, compute in any case. */
#include "../analyze_gen.h"

enum { OP_GET = 1, OP_TRAIN, OP_MUL, OP_UPDATE, OP_PNG, OP_SUMMARY, OP_MATMUL };

/* ms of logging in steps of a get-next, 5 ms of training and 40 of a picture, of which one op is long. */
static double logging(bool function, bool summary)
{
	struct gen *g = gen_new();
	double t = 100;

	g->name[TFT_NAME_OP][OP_GET] = "IteratorGetNext";
	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_train_12";
	g->name[TFT_NAME_OP][OP_MUL] = "Mul";
	g->name[TFT_NAME_OP][OP_MATMUL] = "MatMul";
	g->name[TFT_NAME_OP][OP_UPDATE] = "ResourceApplyAdam";
	g->name[TFT_NAME_OP][OP_PNG] = "EncodePng";
	g->name[TFT_NAME_OP][OP_SUMMARY] = "WriteSummary";
	for (int i = 0; i < 100; i++, t += 46.1) {
		gen_get(g, 0, 1, 1, t, t + 0.1);
		gen_exec(g, OP_GET, t, t + 0.1);
		gen_exec(g, function ? OP_TRAIN : OP_MATMUL, t + 0.11, t + 5);
		gen_exec(g, function ? OP_MUL : OP_UPDATE, t + 5.01, t + 6);
		for (int k = 0; k < 9; k++)
			gen_exec(g, OP_MUL, t + 6.01 + k, t + 7 + k);
		gen_exec(g, OP_PNG, t + 15.01, t + 45);
		gen_exec(g, summary ? OP_SUMMARY : OP_MUL, t + 45.01, t + 46);
	}
	struct tfh_result *r = gen_judge(g);
	double ms = 1e3 * r->found.cause_s[TFH_CAUSE_HOST_LOGGING];
	tfh_result_free(r);
	return ms;
}

static void about(double value, double expected)
{
	if (!(fabs(value - expected) < 0.5))
		fail_msg("%g ms where %g were expected", value, expected);
}

static void test_function(void **state)
{
	(void)state;
	about(logging(true, true), 41);
	about(logging(true, false), 0);
}

static void test_op_by_op(void **state)
{
	(void)state;
	about(logging(false, true), 40);
	about(logging(false, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function),
		cmocka_unit_test(test_op_by_op),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
