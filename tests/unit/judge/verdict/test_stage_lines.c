/*
 * A slow stage of tf.data without Python has the line that made it, as samples of the main thread show: the only line that made
 * such stages or, in a pipeline without branches, the line of the same rank from the source on. Otherwise no line is claimed.
 * Where threads run a function of the program, but no line of it was seen often, the function is named.
 */
#include "../analyze_gen.h"

#define OPS "/lib/python3.11/site-packages/tensorflow/python/data/ops/"

enum { OP_GET = 1, OP_TRAIN };
enum { ROOT = 1, UPPER, LOWER };
enum { MAP_44 = 1, MAP_45, ROWS }; /* ROWS + k: line k of a generator */

static uint32_t places(void *arg, uint32_t process, uint32_t place, struct tfh_model_line *frame,
		       uint32_t most)
{
	(void)arg;
	(void)process;
	if (!place || most < 4)
		return 0;
	if (place >= ROWS) {
		frame[0] = (struct tfh_model_line){"/job/train.py", "rows", place, false};
		frame[1] = (struct tfh_model_line){OPS "from_generator_op.py", "next", 198, true};
		return 2;
	}
	frame[0] = (struct tfh_model_line){
		"/tmp/__autograph_generated_fileq1.py",
		"outer_factory.<locals>.inner_factory.<locals>.tf__photo", 13, false};
	frame[1] = (struct tfh_model_line){OPS "map_op.py", "_MapDataset.__init__", 157, true};
	frame[2] = (struct tfh_model_line){OPS "dataset_ops.py", "DatasetV2.map", 2341, true};
	frame[3] = (struct tfh_model_line){"/job/train.py", "main", 43 + place, false};
	return 4;
}

static void sample(struct gen *g, double t, uint32_t place, uint32_t child)
{
	struct tfh_event *ev = gen_call(g, 0, TFH_FN_NONE, t, t);

	ev->kind = child ? TFT_CHILD : TFT_STATE;
	ev->result = TFT_STATE_RUNNING;
	ev->stack = place;
	ev->stream = child;
	ev->w[1] = child ? 0 : 0xffffffffull << 32;
	ev->w[2] = 2500000;
}

/* 60 steps that wait 16 of 20 ms for a batch, most of it for the lower or the upper stage. `made`: samples before them. `rows`: lines
 * of a generator that another thread is seen at. */
static struct tfh_result *judge(const char *upper, const char *lower, bool slow_upper,
				uint32_t made, uint32_t rows)
{
	struct gen *g = gen_new();

	g->feed.place = g->feed.lines = places;
	g->name[TFT_NAME_OP][OP_GET] = "IteratorGetNext";
	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_train_step_12";
	g->name[TFT_NAME_STAGE][ROOT] = "Iterator::Root#id=1,parent_id=0#";
	g->name[TFT_NAME_STAGE][UPPER] = upper;
	g->name[TFT_NAME_STAGE][LOWER] = lower;
	for (uint32_t k = 1; k <= made; k++)
		sample(g, 10 * k, k, 0);
	for (uint32_t i = 0; i < 60; i++) {
		double t = 100 + 20 * i, up = slow_upper ? 15.6 : 0.2, low = 15.8 - up;
		gen_get(g, 0, 1, ROOT, t, t + 16);
		if (rows)
			sample(g, t + 4, ROWS + i % rows, GEN_PID + 5);
		gen_exec(g, OP_GET, t, t + 16);
		gen_stage(g, 0, LOWER, t, t + low, low);
		gen_stage(g, 0, UPPER, t, t + up + low, up);
		gen_stage(g, 0, ROOT, t, t + 16, 0.01);
		gen_exec(g, OP_TRAIN, t + 16.02, t + 20);
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->verdict.cls, TFH_CLASS_INPUT_BOUND);
	return r;
}

static void is(struct tfh_result *r, uint32_t line)
{
	const struct tfh_seen_line *l = &r->found.line;

	assert_int_equal(l->kind == TFH_LINE_MAKES, line > 0);
	if (line) {
		assert_int_equal(l->line, line);
		assert_string_equal(l->file, "/job/train.py");
		assert_string_equal(l->given, "photo");
	}
	tfh_result_free(r);
}

static void test_makers(void **state)
{
	(void)state;
	const char *map = "Iterator::Root::Map#id=2#", *range = "Iterator::Root::Map::Range#id=3#";

	is(judge(map, range, true, 1, 0), 44);
	is(judge(map, range, true, 0, 0), 0);
	is(judge(map, range, true, 2, 0), 0); /* either may have made it */
	is(judge(map, "Iterator::Root::Map::Map#id=3#", true, 2, 0), 45);
	is(judge(map, "Iterator::Root::Map::Map#id=3#", false, 2, 0), 44);
	is(judge(map, "Iterator::Root::ParallelMapV2#id=3#", true, 2, 0), 0); /* branches */
}

static void test_spread(void **state)
{
	(void)state;
	struct tfh_result *r = judge("Iterator::Root::FlatMap#id=2#",
				     "Iterator::Root::FlatMap::Generator#id=3#", false, 0, 15);

	assert_non_null(r->found.line.function);
	assert_string_equal(r->found.line.function, "rows");
	assert_int_equal(r->found.line.kind, TFH_LINE_IS);
	assert_true(r->found.line.s_per_step > 0.015);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_makers),
		cmocka_unit_test(test_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
