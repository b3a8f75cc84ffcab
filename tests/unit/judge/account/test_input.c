/* Synthetic training loops of TensorFlow on the CPU, of every shape: the verdict, its cause, the
 * number of steps and the parts of a step (to 1 %) are those that the trace was made from. The
 * stage named is the slow one, never one that only waits. */
#include "../tf_loops.h"

/* A ceiling allows for 3 % of what stays where all steps are alike. Where they are not, what stays may be as fast throughout as in
 * the fastest block: here 9 ms in the first half, of 11 in the second. No more than a quarter is allowed for, as where the machine
 * was half as fast for a while. */
static void test_ceiling(void **state)
{
	(void)state;
	struct tfh_result *r = eager(50, 20, 5, 3);

	/* One thread does all of it: without the wait a step is the rest, 1 % off, and up to 0.5 ms faster than behind a pause. */
	assert_float_equal(no_input(r)->low_s, 0.99 * 8.02e-3 - 0.5e-3, 4e-5);
	assert_float_equal(no_input(r)->ceiling_speedup, 28.02 / (0.99 * 8.02 - 0.5), 0.04);
	tfh_result_free(r);
	struct gen *g = tf();
	double t = 100;
	for (int i = 0; i < 50; i++)
		t = eager_step(g, t, 20, 5, i < 25 ? 4 : 6);
	end_of_data(g, t);
	r = gen_judge(g);
	assert_float_equal(no_input(r)->low_s, 8.965e-3, 1e-4);
	tfh_result_free(r);
	g = tf();
	t = 100;
	for (int i = 0; i < 50; i++)
		t = eager_step(g, t, i < 25 ? 20 : 40, i < 25 ? 5 : 10, i < 25 ? 2 : 4);
	end_of_data(g, t);
	r = gen_judge(g);
	assert_float_equal(no_input(r)->low_s, 7.25e-3, 3e-5);
	tfh_result_free(r);
}

/* What blocks less than 5 % has no ceiling, and nothing but computing is the computing of the fastest block of steps. */
static void test_small_ceiling(void **state)
{
	(void)state;
	for (int small = 0; small < 2; small++) {
		struct gen *g = tf();
		double t = 100;
		for (int i = 0; i < 50; i++)
			t = eager_step(g, t, 0.1, i % 7 < 3 ? 40 : 60, small ? 1 : 6);
		end_of_data(g, t);
		struct tfh_result *r = gen_judge(g);
		assert_int_equal(r->n_whatif, small ? 0 : 2);
		for (uint32_t i = 0; i < r->n_whatif; i++)
			assert_true(r->whatif[i].low_s >= 48e-3);
		if (!small)
			assert_float_equal(r->whatif[1].low_s, 48.5e-3, 5e-4);
		tfh_result_free(r);
	}
}

static void test_eager_input(void **state)
{
	(void)state;
	struct tfh_result *r = eager(50, 20, 5, 0);

	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	assert_int_equal(r->steps.total, 50);
	assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_ITERATOR);
	assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_HIGH);
	gen_part(r, TFH_PART_COMPUTE, 5);
	gen_closed(r);
	tfh_result_free(r);
}

static void test_eager_compute(void **state)
{
	(void)state;
	struct tfh_result *r = eager(50, 0.2, 20, 0.1);

	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	gen_part(r, TFH_PART_COMPUTE, 20);
	assert_int_equal(r->steps.classes[TFH_CLASS_COMPUTE_BOUND].count, r->steps.count);
	tfh_result_free(r);
}

static void test_eager_callback(void **state)
{
	(void)state;
	struct tfh_result *r = eager(50, 0.5, 5, 20);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CALLBACK);
	gen_part(r, TFH_PART_HOST, 20);
	tfh_result_free(r);
}

/* An eager model of many ops: short pauses between them are dispatch, not callbacks, and do not
 * make a heavy model host-bound. */
static void test_many_ops(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (int i = 0; i < 40; i++) {
		gen_get(g, 0, 1, ROOT, t, t + 0.1);
		gen_exec(g, OP_GET, t, t + 0.1);
		t += 0.12;
		for (int k = 0; k < 20; k++, t += 1.02)
			gen_exec(g, OP_SMALL, t, t + 1);
	}
	end_of_data(g, t);
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	gen_part(r, TFH_PART_LAUNCH, 0.42);
	assert_int_equal(r->steps.total, 40);
	tfh_result_free(r);
}

/* In a graph: the get-next runs on another thread inside the executing call. */
static void graph_step(struct gen *g, double t, double input, double compute)
{
	gen_get(g, 1, 1, ROOT, t + 0.05, t + 0.05 + input)->depth = 0;
	gen_exec(g, OP_TRAIN, t, t + 0.05 + input + compute);
}

static void test_graph_input(void **state)
{
	(void)state;
	struct gen *g = tf();

	for (int i = 0; i < 60; i++)
		graph_step(g, 100 + 20 * i, 12, 5);
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	assert_int_equal(r->steps.total, 60);
	gen_part(r, TFH_PART_INPUT, 12);
	gen_part(r, TFH_PART_COMPUTE, 5.05);
	gen_part(r, TFH_PART_HOST, 2.95);
	gen_closed(r);
	tfh_result_free(r);
}

/* Four steps per call. One after the other: input is exposed. All get-nexts at once, ahead of the
 * computing: it is not. */
static struct tfh_result *several(double get, double compute, bool ahead)
{
	struct gen *g = tf();
	double t = 100;

	for (int i = 0; i < 30; i++) {
		double begin = t;
		t += 0.05;
		for (int k = 0; k < 4; k++) {
			gen_get(g, 1, 1, ROOT, t, t + get)->depth = 0;
			t += get + (ahead ? 0.001 : compute);
		}
		if (ahead)
			t = begin + 0.05 + get + 4 * (compute > get ? compute : get) +
			    (compute > get ? 0 : compute - get);
		gen_exec(g, OP_TRAIN, begin, t);
		t += 0.3;
	}
	return gen_judge(g);
}

static void test_steps_per_execution(void **state)
{
	(void)state;
	struct tfh_result *r = several(8, 4, false);

	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	assert_int_equal(r->steps.total, 120);
	assert_true(r->steps.per_execution == 4);
	gen_part(r, TFH_PART_INPUT, 8);
	gen_part(r, TFH_PART_COMPUTE, 4);
	tfh_result_free(r);
	r = several(1, 10, true);
	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	assert_int_equal(r->steps.total, 120);
	tfh_result_free(r);
	r = several(10, 3, true);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	gen_part(r, TFH_PART_COMPUTE, 3);
	tfh_result_free(r);
}

/* A dataset loop inside a graph: one call for all steps, longer than any window; the body runs in
 * Scan. */
static void test_loop_in_graph(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	g->name[TFT_NAME_STAGE][5] = "ReduceIterator::Root::Prefetch::Scan#id=1,parent_id=0#";
	g->name[TFT_NAME_STAGE][6] = "ReduceIterator::Root::Prefetch::Scan::Map#id=2,parent_id=1#";
	for (int i = 0; i < 60; i++, t += 25) {
		gen_stage(g, 2, 6, t, t + 20, 20);
		gen_stage(g, 2, 5, t, t + 25, 5);
	}
	gen_call(g, 2, TFH_FN_tf_stage_getnext, t, t + 0.03)->w[1] = 6;
	g->ev[g->n - 1].flags = TFT_F_OPTIONAL;
	gen_call(g, 1, TFH_FN_tf_reduce_op, 99, t + 1);
	gen_exec(g, OP_TRAIN, 98, t + 2);
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
	assert_int_equal(r->steps.total, 60);
	gen_part(r, TFH_PART_INPUT, 20);
	gen_part(r, TFH_PART_COMPUTE, 5);
	tfh_result_free(r);
}

/* Pipelines behind a consumer that waits `wait` ms for each batch. What the producer's threads do
 * in that time decides. */
static struct tfh_result *pipeline(const char *upper, const char *lower, double lower_share,
				   double lower_self)
{
	struct gen *g = tf();
	double t = 100;

	g->name[TFT_NAME_STAGE][PREFETCH] = "Iterator::Root::Prefetch#id=2,parent_id=1#";
	g->name[TFT_NAME_STAGE][MAP] = upper;
	g->name[TFT_NAME_STAGE][SOURCE] = lower;
	for (int i = 0; i < 60; i++, t += 20) {
		gen_get(g, 0, 1, ROOT, t, t + 16);
		gen_exec(g, OP_GET, t, t + 16);
		gen_stage(g, 0, ROOT, t, t + 16, 0.01);
		gen_stage(g, 0, PREFETCH, t, t + 16, 16);
		gen_exec(g, OP_TRAIN, t + 16.02, t + 20);
		/* the prefetching thread is in its input all the time */
		gen_stage(g, 3, MAP, t, t + 19.9, 19.9 - lower_share * 19.9);
		/* whose own input is asked on the same or on another thread */
		gen_stage(g, 4, SOURCE, t, t + 19.9 * lower_share, lower_self);
	}
	return gen_judge(g);
}

/* Seconds per step before a cache: 4 epochs of 20 batches, of which the first one, or every one
 * (`kept` false), calls what is before the cache. */
static double before_cache(bool kept, uint32_t epochs)
{
	struct gen *g = tf();
	double t = 100, s;

	g->name[TFT_NAME_STAGE][PREFETCH] = "Iterator::Root::MemoryCacheImpl#id=2,parent_id=1#";
	g->name[TFT_NAME_STAGE][MAP] = "Iterator::Root::MemoryCacheImpl::Map#id=3,parent_id=2#";
	for (uint32_t epoch = 0; epoch < epochs; epoch++) {
		for (int i = 0; i < 20; i++, t += 20) {
			gen_get(g, 0, 1 + epoch, ROOT, t, t + 12);
			gen_stage(g, 0, ROOT, t, t + 12, 0.01);
			gen_stage(g, 0, PREFETCH, t, t + 12, 0.1);
			if (!epoch || !kept)
				gen_stage(g, 0, MAP, t, t + 11.8, 11.8);
			gen_exec(g, OP_TRAIN, t + 12.1, t + 20);
		}
		gen_get(g, 0, 1 + epoch, ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
		t += 20;
	}
	struct tfh_result *r = gen_judge(g);
	s = r->found.uncached_s;
	tfh_result_free(r);
	return s;
}

/* A cache that take() never lets fill calls what is before it in every epoch; a filled one does in
 * the first one only, and of a single epoch nothing is known. */
static void test_cache_keeps_nothing(void **state)
{
	(void)state;
	double s = before_cache(false, 4);

	assert_true(s > 0.010 && s < 0.014);
	assert_true(before_cache(true, 4) == 0);
	assert_true(before_cache(false, 1) == 0);
}

static void test_guilty_stage(void **state)
{
	(void)state;
	gen_expect_stage(pipeline("Iterator::Root::Prefetch::Map#id=3#",
				  "Iterator::Root::Prefetch::Map::TensorSlice#id=4#", 0.01, 0.2),
			 TFH_CAUSE_INPUT_MAP, "Map");
	/* a parallel map whose own thread is not waiting is slow itself */
	gen_expect_stage(pipeline("Iterator::Root::Prefetch::ParallelMapV2#id=3,parallelism=4#",
				  "Iterator::Root::Prefetch::ParallelMapV2::TFRecord#id=4#", 0.1,
				  1.9),
			 TFH_CAUSE_INPUT_MAP, "ParallelMapV2");
	/* one that waits for records is not */
	gen_expect_stage(pipeline("Iterator::Root::Prefetch::ParallelMapV2#id=3,parallelism=4#",
				  "Iterator::Root::Prefetch::ParallelMapV2::TFRecord#id=4#", 0.95,
				  18.9),
			 TFH_CAUSE_INPUT_READ, "TFRecord");
	/* inner iterators come and go with a number */
	gen_expect_stage(pipeline("Iterator::Root::Prefetch::FlatMap#id=3#",
				  "Iterator::Root::Prefetch::FlatMap[0]::Generator#id=4#", 0.95,
				  18.9),
			 TFH_CAUSE_INPUT_GENERATOR, "Generator");
	gen_expect_stage(pipeline("Iterator::Root::Prefetch::BatchV2#id=3#",
				  "Iterator::Root::Prefetch::BatchV2::TensorSlice#id=4#", 0.1, 1.9),
			 TFH_CAUSE_INPUT_BATCH, "BatchV2");
	gen_expect_stage(pipeline("Iterator::Root::Prefetch::Shuffle#id=3#",
				  "Iterator::Root::Prefetch::Shuffle::Range#id=4#", 0.1, 0.5),
			 TFH_CAUSE_INPUT_SHUFFLE, "Shuffle");
}

/* Twenty ops executed one by one, and so much of the program's own code behind them. How much faster the ops become in one graph is not
 * known. If the program's code takes longer than issuing them, the step without it is known all the same. */
static void own_code(double ms, bool known)
{
	struct gen *g = tf();
	double t = 100;

	g->name[TFT_NAME_OP][60] = "MatMul";
	for (int i = 0; i < 60; i++) {
		gen_get(g, 0, 1, ROOT, t, t + 0.05);
		gen_exec(g, OP_GET, t, t + 0.05);
		t += 0.06;
		for (int k = 0; k < 20; k++, t += 0.1)
			gen_exec(g, 60, t, t + 0.06);
		t += ms;
	}
	struct tfh_result *r = gen_judge(g);
	uint32_t seen = 0;
	for (uint32_t i = 0; i < r->n_whatif; i++) {
		const struct tfh_whatif *w = &r->whatif[i];
		seen |= 1u << w->remove;
		/* a graph issues them itself: the run's time without that is an estimate */
		if (w->remove == TFH_REMOVE_LAUNCH) {
			assert_non_null(w->no_bound);
			assert_true(w->about_s > 0);
		}
		if (w->remove == TFH_REMOVE_HOST && (w->no_bound == NULL) != known)
			fail_msg("%g ms: %s", ms, w->no_bound ? w->no_bound : "-");
	}
	assert_int_equal(seen >> TFH_REMOVE_LAUNCH & 1, 1);
	assert_int_equal(seen >> TFH_REMOVE_HOST & 1, 1);
	tfh_result_free(r);
}

static void test_own_code(void **state)
{
	(void)state;
	own_code(0.3, false);
	own_code(8, true);
}

static uint32_t idle_samples(void *arg, uint32_t process, const struct tfh_sample **out)
{
	static struct tfh_sample s[8];

	(void)arg;
	(void)process;
	for (int i = 0; i < 8; i++)
		s[i] = (struct tfh_sample){.t = i * 1000000000ll, .cpu_s = i ? 0.05 : 0, .cpus = 2};
	*out = s;
	return 8;
}

/* A graph that "executes" without a processor does not compute: it waits, for a Python function in
 * it, say. */
static void test_waiting_graph(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (int i = 0; i < 200; i++)
		t = eager_step(g, t, 0.2, 25, 0);
	end_of_data(g, t);
	g->feed.samples = idle_samples;
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_UNKNOWN);
	gen_closed(r);
	tfh_result_free(r);
}

/* A thread that loses its processor now and then does not change what its steps are; a step that is
 * far longer than usual speaks for itself. */
static void test_disturbed_steps(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (int i = 0; i < 100; i++) {
		t = eager_step(g, t, 12, 5, 0);
		t += i % 7 == 3 ? 15 : 0;    /* preempted */
		t += i % 50 == 25 ? 200 : 0; /* something rare and long */
	}
	end_of_data(g, t);
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	gen_closed(r);
	assert_int_equal(r->steps.classes[TFH_CLASS_HOST_BOUND].count, 2);
	assert_int_equal(r->steps.classes[TFH_CLASS_INPUT_BOUND].count + 2, r->steps.count);
	tfh_result_free(r);
}

/* One batch that came late is not what its neighbours waited for. */
static void test_one_late_batch(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (int i = 0; i < 30; i++)
		t = eager_step(g, t, i == 15 || i == 28 ? 25 : 0.2, i == 15 || i == 28 ? 20 : 40,
			       0);
	end_of_data(g, t);
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	assert_int_equal(r->steps.classes[TFH_CLASS_COMPUTE_BOUND].count, r->steps.count);
	tfh_result_free(r);
}

/* Of a pipeline with threads of its own: where every third step, or every twentieth, waits for no batch and then computes twice as fast,
 * as nobody makes batches meanwhile. Every fifth step ends with a callback of `saves` ms. */
static double without_input_ms(int every, double saves)
{
	struct gen *g = tf();
	double t = 100;

	g->name[TFT_NAME_STAGE][PREFETCH] = "Iterator::Root::Prefetch#id=2,parent_id=1#";
	g->name[TFT_NAME_STAGE][MAP] = "Iterator::Root::Prefetch::ParallelMapV2#id=3,parent_id=2#";
	for (int i = 0; i < 120; i++) {
		double get = i % every ? 20 : 0.02;
		gen_stage(g, 0, ROOT, t, t + get, 0.001);
		gen_stage(g, 0, PREFETCH, t, t + get, get);
		gen_stage(g, 3, MAP, t, t + get, get);
		/* a step ends with the next batch */
		t = eager_step(g, t, get, (i + 1) % every ? 8 : 4, i % 5 ? 0 : saves);
	}
	end_of_data(g, t);
	struct tfh_result *r = gen_judge(g);
	double ms = no_input(r)->low_s * 1e3;
	assert_int_equal(r->verdict.cls, TFH_CLASS_INPUT_BOUND);
	tfh_result_free(r);
	return ms;
}

/* No bound is above what steps took that waited for nothing, if there are enough of them. What only some steps do is no shorter without
 * the input. */
static void test_unwaited(void **state)
{
	(void)state;
	assert_true(without_input_ms(3, 0) <= 4.05);
	assert_true(without_input_ms(20, 0) > 6);
	assert_true(without_input_ms(3, 30) > 4.05 + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_small_ceiling),
		cmocka_unit_test(test_eager_input),
		cmocka_unit_test(test_eager_compute),
		cmocka_unit_test(test_eager_callback),
		cmocka_unit_test(test_many_ops),
		cmocka_unit_test(test_graph_input),
		cmocka_unit_test(test_steps_per_execution),
		cmocka_unit_test(test_loop_in_graph),
		cmocka_unit_test(test_guilty_stage),
		cmocka_unit_test(test_cache_keeps_nothing),
		cmocka_unit_test(test_own_code),
		cmocka_unit_test(test_waiting_graph),
		cmocka_unit_test(test_disturbed_steps),
		cmocka_unit_test(test_one_late_batch),
		cmocka_unit_test(test_unwaited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
