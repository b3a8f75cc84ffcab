/*
 * A job on the CPU whose library calls a function of TensorFlow in each step (Keras' fit). What the library does around that
 * call is launching, and as usual as any. What a function of the program does that the library calls beside the step is a
 * callback, however short the pauses between its ops are; where samples of these pauses see a log being written, they are
 * logging. Batches whose pipeline has no line of the program are asked for at the line that calls the library; where a thread of
 * TensorFlow's runs a function of the program to make them (py_function), its line is the verdict's, although it makes calls itself.
 * If it runs while the step computes, and for longer than the pipeline's stages, the step's own graph calls it: its line is that of the
 * computing, and advice names what its absence saves at best.
 */
#include "../analyze_gen.h"

#define LIB "/v/lib/python3.11/site-packages"
#define COUNT(array) (uint32_t)(sizeof(array) / sizeof(*(array)))

enum { OP_FIT = 1, OP_READ };
enum { AT_STEP = 1, AT_LIBRARY, AT_CALLBACK, AT_LOG, AT_OWN, AT_MAPPED };

#define FIT LIB "/keras/trainer.py", "fit", 399, true
#define TRAIN "/job/train.py", "main", 20, false

static const gen_stack stacks[] = {
	[AT_STEP] = {{LIB "/tensorflow/execute.py", "quick_execute", 53, true},
		     {LIB "/tensorflow/context.py", "call_function", 9, true},
		     {FIT},
		     {TRAIN}},
	[AT_LIBRARY] = {{LIB "/tensorflow/nest.py", "flatten", 7, true},
			{LIB "/tensorflow/context.py", "call_function", 10, true},
			{FIT},
			{TRAIN}},
	[AT_CALLBACK] = {{LIB "/tensorflow/variable.py", "numpy", 5, true},
			 {"/job/train.py", "Figures.on_batch_end", 41, false},
			 {FIT},
			 {TRAIN}},
	[AT_LOG] = {{LIB "/tensorflow/python/ops/summary_ops_v2.py", "write", 6, true},
		    {"/job/train.py", "Figures.on_batch_end", 42, false},
		    {FIT},
		    {TRAIN}},
	[AT_OWN] = {{TRAIN}},
	[AT_MAPPED] = {{"/job/train.py", "augment", 7, false},
		       {LIB "/tensorflow/python/ops/script_ops.py", "FuncRegistry.__call__", 267,
			true}},
};

static double staged; /* ms that a stage of the pipeline takes for a batch */
static bool mapped;   /* another thread runs a function of the program meanwhile */

/* 100 steps: a batch (of `get` ms) and the step are one call of `step` ms; then come `ops` ops of 10 us with pauses of 30 us
 * between them, in one of which a sample sees the thread at `place`; then a pause of 0.3 ms in which it is on the way to the
 * next call. */
static struct tfh_result *judge(double step, double get, int ops, uint32_t place)
{
	struct gen *g = gen_new();
	double t = 100;

	GEN_STACKS(&g->feed, stacks);
	g->name[TFT_NAME_OP][OP_FIT] = "__inference_multi_step_on_iterator_311";
	g->name[TFT_NAME_OP][OP_READ] = "ReadVariableOp";
	g->name[TFT_NAME_STAGE][1] = "Iterator::Root::Prefetch::ParallelMapV2";
	for (int i = 0; i < 100; i++) {
		gen_cpu(g, 0, t - 0.005, t - 0.005, AT_STEP);
		gen_get(g, 0, 1, 1, t + 0.01, t + 0.01 + get);
		if (staged > 0)
			gen_stage(g, 2, 1, t + 0.01, t + 0.01 + staged, staged);
		if (mapped)
			gen_sample(g, 1, t + get / 2, TFT_STATE_RUNNING, AT_MAPPED, 2.5);
		gen_exec(g, OP_FIT, t, t + step);
		t += step;
		for (int k = 0; k < ops; k++, t += 0.04) {
			if (k == ops / 2)
				gen_sample(g, 0, t + 0.01, TFT_STATE_RUNNING, place, 2.5);
			gen_exec(g, OP_READ, t + 0.03, t + 0.04);
		}
		gen_sample(g, 0, t + 0.1 + 0.001 * (i % 7), TFT_STATE_RUNNING, AT_LIBRARY, 2.5);
		t += 0.3;
	}
	return gen_judge(g);
}

static void test_library(void **state)
{
	(void)state;
	struct tfh_result *r = judge(2, 0.001, 0, 0);

	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	gen_part(r, TFH_PART_LAUNCH, 0.3);
	gen_part(r, TFH_PART_HOST, 0);
	tfh_result_free(r);
	r = judge(0.1, 0.001, 0, 0);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
	assert_non_null(gen_says(r, "calling the step's function takes 300 us of every step"));
	tfh_result_free(r);
}

static void test_callback(void **state)
{
	static const struct {
		uint32_t place;
		enum tfh_cause cause;
	} row[] = {{AT_CALLBACK, TFH_CAUSE_HOST_CALLBACK},
		   {AT_LOG, TFH_CAUSE_HOST_LOGGING},
		   {AT_OWN, TFH_CAUSE_HOST_LAUNCH},
		   {AT_STEP, TFH_CAUSE_HOST_LAUNCH}};

	(void)state;
	for (uint32_t i = 0; i < COUNT(row); i++) {
		struct tfh_result *r = judge(1, 0.001, 60, row[i].place);
		gen_expect(r, TFH_CLASS_HOST_BOUND, row[i].cause);
		gen_part(r, row[i].cause == TFH_CAUSE_HOST_LAUNCH ? TFH_PART_LAUNCH : TFH_PART_HOST,
			 row[i].cause == TFH_CAUSE_HOST_LAUNCH ? 2.1 : 1.8);
		gen_closed(r);
		tfh_result_free(r);
	}
}

static void test_asked(void **state)
{
	(void)state;
	struct tfh_result *r = judge(4, 3, 0, 0);

	assert_int_equal(r->verdict.cls, TFH_CLASS_INPUT_BOUND);
	assert_string_equal(r->found.line.file, "/job/train.py");
	assert_int_equal(r->found.line.line, 20);
	assert_int_equal(r->found.line.kind, TFH_LINE_ASKS);
	assert_non_null(gen_says(r, "asked for in main, train.py:20"));
	tfh_result_free(r);
}

static void test_mapped(void **state)
{
	(void)state;
	mapped = true;
	struct tfh_result *r = judge(4, 3, 0, 0);

	mapped = false;
	assert_int_equal(r->verdict.cls, TFH_CLASS_INPUT_BOUND);
	assert_string_equal(r->found.line.function, "augment");
	assert_int_equal(r->found.line.line, 7);
	assert_int_equal(r->found.workers.threads, 1);
	tfh_result_free(r);
}

static void test_in_graph(void **state)
{
	static const struct {
		double staged;
		bool in_graph;
	} row[] = {{0.2, true}, {2.4, false}, {0, false /* nothing tells the stages' time */}};

	(void)state;
	for (uint32_t i = 0; i < COUNT(row); i++) {
		mapped = true;
		staged = row[i].staged;
		struct tfh_result *r = judge(6, 0.001, 0, 0);
		mapped = false;
		staged = 0;
		gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		bool named = r->found.line.file && r->found.line.line == 7;
		assert_int_equal(named, row[i].in_graph);
		if (named)
			assert_true(fabs(r->found.line.s_per_step - 0.0023) < 0.0001);
		tfh_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library),	 cmocka_unit_test(test_callback),
		cmocka_unit_test(test_asked),	 cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_in_graph),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
