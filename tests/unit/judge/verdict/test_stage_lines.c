/*
 * A slow stage of tf.data without Python has the line of the program that made it: that of the op with the stage's number, as
 * TensorFlow names it, or a later number if pipelines made stages themselves; never that of an op of another type. Samples of the
 * main thread in TensorFlow's class of the stage show which function it was given. Where threads run a function of the program, but
 * no line of it was seen often, the function is named.
 */
#include "../analyze_gen.h"

#define OPS "/lib/python3.11/site-packages/tensorflow/python/data/ops/"

enum { OP_GET = 1, OP_TRAIN, OP_RANGE, OP_MAP, OP_BATCH, OP_FLAT_MAP };
enum { ROOT = 1, UPPER, LOWER };
enum { MADE_44 = 1, MADE_45, MADE_46, ROWS }; /* ROWS + k: line k of a generator */

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

/* Stacks of calls, taken when the function was traced already. */
static uint32_t stacks(void *arg, uint32_t process, uint32_t stack, struct tfh_model_line *frame,
		       uint32_t most)
{
	struct tfh_model_line all[4];
	uint32_t n = places(arg, process, stack, all, most < 4 ? most : 4);

	for (uint32_t i = 1; i < n; i++)
		frame[i - 1] = all[i];
	return n ? n - 1 : 0;
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

/* 60 steps that wait 16 of 20 ms for a batch, most of it for the lower or the upper stage. `made`: ops before them that make
 * stages, the n-th at line 43 + n. `traced`: the function was seen while it was traced. `rows`: lines of a generator that another
 * thread is seen at. */
static struct tfh_result *judge(const char *upper, const char *lower, bool slow_upper,
				const uint32_t *made, bool traced, uint32_t rows)
{
	struct gen *g = gen_new();

	g->feed.place = places;
	g->feed.lines = stacks;
	g->name[TFT_NAME_OP][OP_GET] = "IteratorGetNext";
	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_train_step_12";
	g->name[TFT_NAME_OP][OP_RANGE] = "RangeDataset";
	g->name[TFT_NAME_OP][OP_MAP] = "MapDataset";
	g->name[TFT_NAME_OP][OP_BATCH] = "BatchDatasetV2";
	g->name[TFT_NAME_OP][OP_FLAT_MAP] = "FlatMapDataset";
	g->name[TFT_NAME_STAGE][ROOT] = "Iterator::Root#id=1,parent_id=0#";
	g->name[TFT_NAME_STAGE][UPPER] = upper;
	g->name[TFT_NAME_STAGE][LOWER] = lower;
	for (uint32_t k = 0; made && made[k]; k++) {
		gen_exec(g, made[k], 10 * k + 1, 10 * k + 2);
		g->ev[g->n - 1].stack = k + 1;
		if (traced)
			sample(g, 10 * k + 5, k + 1, 0);
	}
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

static void is(struct tfh_result *r, uint32_t line, const char *given)
{
	const struct tfh_seen_line *l = &r->found.line;

	assert_int_equal(l->kind == TFH_LINE_MAKES, line > 0);
	assert_int_equal(r->input[0].line, line);
	if (line) {
		assert_int_equal(l->line, line);
		assert_string_equal(l->file, "/job/train.py");
		assert_int_equal(l->given != NULL, given != NULL);
	}
	if (line && given)
		assert_string_equal(l->given, given);
	tfh_result_free(r);
}

#define MAP "Iterator::Root::Map#name=MapDataset:"
#define LOWER_MAP "Iterator::Root::Map::Map#name=MapDataset:"

static void test_made(void **state)
{
	(void)state;
	const uint32_t one[] = {OP_RANGE, OP_MAP, 0}, two[] = {OP_RANGE, OP_MAP, OP_MAP, 0},
		       other[] = {OP_RANGE, OP_BATCH, 0};
	const char *range = "Iterator::Root::Map::Range#name=RangeDataset:0,shapes=[]#";

	is(judge(MAP "1,shapes=[8]#", range, true, one, true, 0), 45, "photo");
	is(judge(MAP "1,shapes=[8]#", range, true, one, false, 0), 45, NULL);
	is(judge("Iterator::Root::MapAndBatch#name=fused(MapDataset:1,BatchDatasetV2:2)#", range,
		 true, one, true, 0),
	   45, "photo");
	is(judge(MAP "2#", LOWER_MAP "1#", true, two, true, 0), 46, "photo");
	is(judge(MAP "2#", LOWER_MAP "1#", false, two, true, 0), 45, "photo");
	is(judge(MAP "1#", range, true, NULL, true, 0), 0, NULL);
	is(judge(MAP "1#", range, true, other, true, 0), 0, NULL);
	is(judge("Iterator::Root::Map#id=2#", range, true, one, true, 0), 0, NULL);
}

/* Stages 1 to 6 were made by a flat_map that ran meanwhile. */
static void test_between(void **state)
{
	(void)state;
	const uint32_t made[] = {OP_MAP, OP_RANGE, OP_MAP, 0};

	is(judge(MAP "8#", "Iterator::Root::Map::Range#name=RangeDataset:7#", true, made, true, 0),
	   46, "photo");
	/* what the flat_map made has its line */
	const uint32_t flat[] = {OP_RANGE, OP_FLAT_MAP, 0};
	is(judge("Iterator::Root::FlatMap#name=FlatMapDataset:1#",
		 "Iterator::Root::FlatMap[0]::Map#name=MapDataset:2#", false, flat, false, 0),
	   45, NULL);
	/* a single stage says nothing about the others */
	is(judge(MAP "8#", "Iterator::Root::Map::Range#id=3#", true, made, true, 0), 0, NULL);
}

static void test_spread(void **state)
{
	(void)state;
	struct tfh_result *r =
		judge("Iterator::Root::FlatMap#id=2#", "Iterator::Root::FlatMap::Generator#id=3#",
		      false, NULL, false, 15);

	assert_non_null(r->found.line.function);
	assert_string_equal(r->found.line.function, "rows");
	assert_int_equal(r->found.line.kind, TFH_LINE_IS);
	assert_true(r->found.line.s_per_step > 0.015);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made),
		cmocka_unit_test(test_between),
		cmocka_unit_test(test_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
