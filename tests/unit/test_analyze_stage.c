/* The slow stage of pipelines whose stages do not lie one behind the other: the one named is the
 * one that the batches were waited for. */
#include "analyze_gen.h"

enum { OP_GET = 1, OP_TRAIN };
enum { ROOT = 1, UPPER, HALF, LOWER };

static struct gen *pipeline(const char *upper, const char *half, const char *lower)
{
	struct gen *g = gen_new();

	g->name[TFT_NAME_OP][OP_GET] = "IteratorGetNext";
	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_train_step_12";
	g->name[TFT_NAME_STAGE][ROOT] = "Iterator::Root#id=1,parent_id=0#";
	g->name[TFT_NAME_STAGE][UPPER] = upper;
	g->name[TFT_NAME_STAGE][HALF] = half;
	g->name[TFT_NAME_STAGE][LOWER] = lower;
	return g;
}

/* The loop waits 16 of 20 ms; on its own thread the stages have so much of it. */
static struct tfh_result *judge(struct gen *g, double upper, double half, double lower)
{
	for (int i = 0; i < 60; i++) {
		double t = 100 + 20 * i;
		gen_get(g, 0, 1, ROOT, t, t + 16);
		gen_exec(g, OP_GET, t, t + 16);
		gen_stage(g, 0, LOWER, t, t + lower, lower);
		gen_stage(g, 0, HALF, t, t + half + lower, half);
		gen_stage(g, 0, UPPER, t, t + upper + half + lower, upper);
		gen_stage(g, 0, ROOT, t, t + 16, 0.01);
		gen_exec(g, OP_TRAIN, t + 16.02, t + 20);
	}
	return gen_judge(g);
}

static void expect_stage(struct tfh_result *r, enum tfh_cause cause, const char *name)
{
	gen_expect(r, TFH_CLASS_INPUT_BOUND, cause);
	assert_true(r->n_input > 0 && r->input[0].guilty);
	assert_string_equal(r->input[0].name, name);
	tfh_result_free(r);
}

/* TensorFlow names the two halves of a cache beside it, "MemoryCache" and "MemoryCacheImpl::...":
 * what fills it is still below it. */
static void test_cache(void **state)
{
	(void)state;
	struct gen *g = pipeline("Iterator::Root::MemoryCache#id=2#",
				 "Iterator::Root::MemoryCacheImpl#id=3#",
				 "Iterator::Root::MemoryCacheImpl::Map#id=4#");

	g->consumer[UPPER] = ROOT;
	g->consumer[HALF] = UPPER;
	g->consumer[LOWER] = HALF;
	expect_stage(judge(g, 0.2, 0.1, 15.6), TFH_CAUSE_INPUT_MAP, "Map");
}

/* A recording that says a stage delivers to itself, or two to each other, is read all the same. */
static void test_circle(void **state)
{
	(void)state;
	struct gen *g = pipeline("Iterator::Root::Batch#id=2#", "Iterator::Root::Batch::Skip#id=3#",
				 "Iterator::Root::Batch::Skip::Map#id=4#");

	g->consumer[ROOT] = LOWER;
	g->consumer[UPPER] = UPPER;
	g->consumer[HALF] = LOWER;
	g->consumer[LOWER] = HALF;
	expect_stage(judge(g, 0.2, 0.1, 15.6), TFH_CAUSE_INPUT_MAP, "Map");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_circle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
