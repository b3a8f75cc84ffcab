/* The slow stage of pipelines with branches: the stage named is the one that the batches were
 * waited for. */
#include "../analyze_gen.h"

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
	gen_expect_stage(judge(g, 0.2, 0.1, 15.6), TFH_CAUSE_INPUT_MAP, "Map");
}

/* What a stage spends itself is the function that it calls, and what to do about it depends on how
 * the stage calls it. */
static void expect_advice(const char *type, enum tfh_cause cause, const char *todo)
{
	char name[128];
	snprintf(name, sizeof(name), "Iterator::Root::%s#id=2#", type);
	struct tfh_result *r = judge(pipeline(name, "Iterator::Root::Skip#id=3#",
					      "Iterator::Root::Skip::FromTensor#id=4#"),
				     15.6, 0.1, 0.2);

	struct tfh_wording w;
	tfh_wording_make(&w, r);
	assert_true(w.n_advice > 0);
	if (!strstr(w.advice[0].todo, todo))
		fail_msg("%s: %s", type, w.advice[0].todo);
	tfh_wording_free(&w);
	gen_expect_stage(r, cause, type);
}

static void test_functions(void **state)
{
	(void)state;
	expect_advice("Map", TFH_CAUSE_INPUT_MAP, "num_parallel_calls");
	expect_advice("Scan", TFH_CAUSE_INPUT_MAP, "needs no state");
	expect_advice("Filter", TFH_CAUSE_INPUT_MAP, "before it");
	expect_advice("FlatMap", TFH_CAUSE_INPUT_MAP, "instead of flat_map()");
	expect_advice("GroupByWindow", TFH_CAUSE_INPUT_MAP, "num_parallel_calls");
	expect_advice("CSV", TFH_CAUSE_INPUT_READ, "interleave");
}

/* skip() asks for what it drops in its own time: the map below it makes that. */
static void test_skip(void **state)
{
	(void)state;
	struct tfh_result *r = judge(pipeline("Iterator::Root::FiniteSkip#id=2#",
					      "Iterator::Root::FiniteSkip::Map#id=3#",
					      "Iterator::Root::FiniteSkip::Map::Range#id=4#"),
				     15.6, 0.1, 0.2);

	struct tfh_wording w;
	tfh_wording_make(&w, r);
	assert_non_null(strstr(w.advice[0].todo, "skip() before map()"));
	tfh_wording_free(&w);
	gen_expect_stage(r, TFH_CAUSE_INPUT_MAP, "FiniteSkip");
}

/* A shuffle buffer of a whole epoch behind the map: the map works only for the first batch of each of 8 epochs (for `fill` ms), steps take
 * theirs from the buffer and compute for `compute` ms. */
static struct tfh_result *filled(double fill, double compute)
{
	struct gen *g =
		pipeline("Iterator::Root::BatchV2#id=2#", "Iterator::Root::BatchV2::Shuffle#id=3#",
			 "Iterator::Root::BatchV2::Shuffle::Map#id=4#");
	double t = 100;

	for (int epoch = 0; epoch < 8; epoch++) {
		for (int i = 0; i < 20; i++) {
			double wait = i ? 0.3 : fill, map = i ? 0 : fill - 2;
			gen_get(g, 0, 1, ROOT, t, t + wait);
			gen_exec(g, OP_GET, t, t + wait);
			if (map > 0)
				gen_stage(g, 0, LOWER, t, t + map, map);
			gen_stage(g, 0, HALF, t, t + map + 0.05, 0.05);
			gen_stage(g, 0, UPPER, t, t + map + 0.25, 0.2);
			gen_stage(g, 0, ROOT, t, t + wait, 0.01);
			gen_exec(g, OP_TRAIN, t + wait + 0.02, t + wait + compute);
			t += wait + compute;
		}
		gen_get(g, 0, 1, ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
		gen_exec(g, OP_GET, t, t + 0.03);
		t += 0.1;
	}
	return gen_judge(g);
}

/* The stage that takes most time in steps is not the one that epochs begin with. At best all of the time between epochs goes, and not
 * only the wait in it, and as much at the first epoch's beginning. */
static void test_epoch_beginnings(void **state)
{
	(void)state;
	struct tfh_result *r = filled(300, 2);

	assert_int_equal(r->verdict.cause,
			 TFH_CAUSE_INPUT_MAP); /* the steps are too short for the map */
	assert_true(r->input[0].guilty);
	assert_string_equal(r->input[0].name, "Map");
	assert_int_equal(r->lead, 1);
	assert_int_equal(r->recurring[0].kind, TFH_SEGMENT_BETWEEN);
	assert_true(r->recurring[0].blocked_s < r->recurring[0].total_s);
	struct tfh_wording w;
	tfh_wording_make(&w, r);
	double all = r->recurring[0].total_s, each = all / (double)r->recurring[0].count;
	assert_float_equal(w.advice[0].saved_s, all + each, 1e-9);
	assert_int_equal(w.tells[0], TFH_TELLS_STAGE);
	assert_non_null(strstr(w.evidence[0], "Shuffle: its buffer is filled with what Map makes"));
	tfh_wording_free(&w);
	tfh_result_free(r);
}

/* Steps that only compute, for twice as long, delay nothing: what the epochs wait for is the verdict, and the cause is the buffer, as the map
 * could work during the steps. If it is too little for that, the
 * tree shows it as time between loops, and no advice supposes that these first steps compile. */
static void test_computing_steps(void **state)
{
	(void)state;
	struct tfh_result *r = filled(200, 20);
	struct tfh_wording w;

	assert_int_equal(r->steady.cls, TFH_CLASS_COMPUTE_BOUND);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_SHUFFLE);
	tfh_result_free(r);
	r = filled(70, 20);
	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	assert_true(tfh_spent(r, TFH_BRANCH_BETWEEN) > 6 * 0.06);
	tfh_wording_make(&w, r);
	bool told = false;
	for (uint32_t i = 0; i < w.n_advice; i++) {
		told |= strstr(w.advice[i].finding, "shuffle() fills its buffer") != NULL;
		assert_null(strstr(w.advice[i].todo, "if they compile"));
	}
	assert_true(told);
	tfh_wording_free(&w);
	tfh_result_free(r);
}

/* A parallel map over a parallel interleave whose buffer hides a part of the interleave's waiting: of the 16 ms in which the loop waits,
 * the map's thread waits `handed` for the interleave, and the interleave's thread reads for `reading`. The slower of the two is named:
 * the reader if it is busy for most of the wait, and longer than the map without its waiting. */
static struct tfh_result *interleaved(double handed, double reading)
{
	struct gen *g =
		pipeline("Iterator::Root::ParallelMapV2#id=2#",
			 "Iterator::Root::ParallelMapV2::ParallelInterleaveV4#id=3#",
			 "Iterator::Root::ParallelMapV2::ParallelInterleaveV4::TFRecord#id=4#");

	for (int i = 0; i < 60; i++) {
		double t = 100 + 20 * i;
		gen_get(g, 0, 1, ROOT, t, t + 16);
		gen_exec(g, OP_GET, t, t + 16);
		gen_stage(g, 1, HALF, t + 0.1, t + 0.1 + handed, handed);
		gen_stage(g, 2, LOWER, t + 0.2, t + 0.2 + reading, reading);
		gen_stage(g, 0, UPPER, t + 0.01, t + 15.9, 15.89);
		gen_stage(g, 0, ROOT, t, t + 16, 0.01);
		gen_exec(g, OP_TRAIN, t + 16.02, t + 20);
	}
	return gen_judge(g);
}

static void test_interleaved(void **state)
{
	(void)state;
	gen_expect_stage(interleaved(6, 12), TFH_CAUSE_INPUT_READ, "TFRecord");
	gen_expect_stage(interleaved(12, 12), TFH_CAUSE_INPUT_READ, "TFRecord");
	gen_expect_stage(interleaved(6, 6), TFH_CAUSE_INPUT_MAP, "ParallelMapV2");
	gen_expect_stage(interleaved(0.5, 12), TFH_CAUSE_INPUT_MAP, "ParallelMapV2");
}

/* Where a flat_map's function makes readers, it is opening them that takes its time. */
static void test_readers(void **state)
{
	(void)state;
	struct gen *g = pipeline("Iterator::Root::FlatMap#id=2#",
				 "Iterator::Root::FlatMap[0]::TFRecordV2#id=3#",
				 "Iterator::Root::FlatMap::TensorSlice#id=4#");

	gen_expect_stage(judge(g, 15.6, 0.1, 0.2), TFH_CAUSE_INPUT_READ, "FlatMap");
}

/* The files of a saved data set are one stage, as the inputs of an interleave are. */
static void test_files(void **state)
{
	(void)state;
	struct gen *g = pipeline(
		"Iterator::Root::Load::ParallelInterleaveV4#id=2#",
		"Iterator::Root::Load::ParallelInterleaveV4[0]::SnapshotDatasetReader/_0#id=3#",
		"Iterator::Root::Load::ParallelInterleaveV4[1]::SnapshotDatasetReader/_1#id=4#");
	static const char *const name = "SnapshotDatasetReader";

	for (int i = 0; i < 60; i++) { /* read on two other threads in turn */
		double t = 100 + 20 * i;
		gen_get(g, 0, 1, ROOT, t, t + 16);
		gen_exec(g, OP_GET, t, t + 16);
		gen_stage(g, 0, UPPER, t, t + 16, 16);
		gen_stage(g, 0, ROOT, t, t + 16, 0.01);
		gen_stage(g, 3 + i % 2, i % 2 ? HALF : LOWER, t - 3, t + 15, 18);
		gen_exec(g, OP_TRAIN, t + 16.02, t + 20);
	}
	gen_expect_stage(gen_judge(g), TFH_CAUSE_INPUT_READ, name);
}

/* The machine stood still for 2 s: that says nothing of how fast batches come. */
static void test_pause(void **state)
{
	(void)state;
	struct gen *g =
		pipeline("Iterator::Root::Prefetch#id=2#", "Iterator::Root::Prefetch::Map#id=3#",
			 "Iterator::Root::Prefetch::Map::Range#id=4#");
	double t = 100;

	for (int i = 0; i < 120; i++) {
		double wait = i == 70 ? 2000 : 16;
		gen_get(g, 0, 1, ROOT, t, t + wait);
		gen_exec(g, OP_GET, t, t + wait);
		gen_stage(g, 0, UPPER, t, t + wait, wait);
		gen_stage(g, 0, ROOT, t, t + wait, 0.01);
		gen_stage(g, 3, HALF, t - 3.9, t + wait, wait);
		gen_exec(g, OP_TRAIN, t + wait + 0.02, t + wait + 4);
		t += wait + 4;
	}
	struct tfh_result *r = gen_judge(g);
	assert_float_equal(r->supply.period_s, 20e-3, 1e-4);
	gen_expect_stage(r, TFH_CAUSE_INPUT_MAP, "Map");
}

/* What MirroredStrategy makes: the loop asks an iterator on the device, whose Generator waits for
 * the program's pipeline, which has the same path. `prefetch`: which ends with a prefetch of its
 * own. */
static struct tfh_result *replica(bool prefetch)
{
	struct gen *g = pipeline(
		"Iterator::Root::Prefetch#id=2#", "Iterator::Root::Prefetch::Generator#id=3#",
		prefetch ? "Iterator::Root::Prefetch::Map#id=4#" : "Iterator::Root::Map#id=4#");

	for (int i = 0; i < 60; i++) {
		double t = 100 + 20 * i;
		gen_get(g, 0, 1, ROOT, t, t + 16);
		gen_exec(g, OP_GET, t, t + 16);
		gen_stage(g, 0, UPPER, t, t + 16, 16);
		gen_stage(g, 0, ROOT, t, t + 16, 0.01);
		gen_stage(g, 3, HALF, t - 3.9, t + 15.9, 19.8);
		if (prefetch)
			gen_stage(g, 4, UPPER, t - 3.8, t + 15.8, 19.6);
		gen_stage(g, 5, LOWER, t - 3.7, t + 15.7, 19.4);
		gen_exec(g, OP_TRAIN, t + 16.02, t + 20);
	}
	return gen_judge(g);
}

/* As in a job on GPUs: the device's iterator has a path of its own, and the loop's series is that iterator's. */
static struct tfh_result *replica_apart(void)
{
	struct gen *g = pipeline("Iterator::Root::Prefetch#id=2,parent_id=1#",
				 "Iterator::Root::Prefetch::Map#id=3#",
				 "Iterator::Root::Prefetch::Map::Range#id=4#");
	enum { AHEAD = LOWER + 8, RELAY };

	g->name[TFT_NAME_STAGE][AHEAD] = "Iterator::Prefetch#id=12#";
	g->name[TFT_NAME_STAGE][RELAY] = "Iterator::Prefetch::Generator#id=13#";
	for (int i = 0; i < 60; i++) {
		double t = 100 + 20 * i;
		gen_get(g, 0, 1, AHEAD, t, t + 16);
		gen_exec(g, OP_GET, t, t + 16);
		gen_stage(g, 0, AHEAD, t, t + 16, 16);
		gen_stage(g, 3, RELAY, t - 3.9, t + 15.9, 19.8);
		gen_stage(g, 4, ROOT, t - 3.9, t + 15.9, 0.01);
		gen_stage(g, 4, UPPER, t - 3.8, t + 15.8, 19.6);
		gen_stage(g, 5, HALF, t - 3.7, t + 15.7, 19.4);
		gen_exec(g, OP_TRAIN, t + 16.02, t + 20);
	}
	return gen_judge(g);
}

static void test_replica(void **state)
{
	(void)state;
	gen_expect_stage(replica_apart(), TFH_CAUSE_INPUT_MAP, "Map");
	gen_expect_stage(replica(true), TFH_CAUSE_INPUT_MAP, "Map");
	gen_expect_stage(replica(false), TFH_CAUSE_INPUT_MAP, "Map");
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
	gen_expect_stage(judge(g, 0.2, 0.1, 15.6), TFH_CAUSE_INPUT_MAP, "Map");
}

/* The inputs of a zip are pipelines of their own, though they look alike: the slow one is named by its number. */
static void test_branches(void **state)
{
	(void)state;
	struct gen *g = pipeline("Iterator::Root::Zip#id=2#", "Iterator::Root::Zip[0]::Map#id=3#",
				 "Iterator::Root::Zip[1]::Map#id=4#");
	struct tfh_result *r = judge(g, 0.1, 2, 13.5);

	assert_string_equal(r->input[0].prefix, "Iterator::Root::Zip[1]::Map");
	gen_expect_stage(r, TFH_CAUSE_INPUT_MAP, "Map");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interleaved),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_readers),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_epoch_beginnings),
		cmocka_unit_test(test_computing_steps),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_replica),
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_branches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
