/* A run in which no call was recorded is judged by samples of its main thread, as steps are by their time, if there are many,
 * or if the class with most of them leads clearly; else by none. A thread that waits at a line of the program waits for JAX if
 * a function of JAX was seen, for computing if threads of the process that are not Python's had half a CPU meanwhile, and else
 * for a lock. Rows that are taken from a sparse matrix are input, whether or not it holds Python's lock meanwhile. So is a wait
 * in a library's iterator, if another thread was seen at work, and all else that it does there. If the thread only waits for
 * another one, the other one is judged. In a program that uses a framework, native code of a function that only calls NumPy is
 * the program's own, and so is making a model; without a framework, NumPy computes. JAX that makes operations one by one
 * launches. */
#include "../analyze_gen.h"
#include "judge/verdict/sampled.h"
#include "judge/verdict/verdict.h"
#include "model/start.h"

enum {
	JOB = 1,
	SCIPY,
	LINEAR,
	JAX,
	NEXT,
	RESULT,
	DECODE,
	AUGMENT,
	PAD,
	LAYER,
	TRACE,
	XLA,
	ADD,
	ITEM,
	MAKE,
	TREE,
	DECAY,
	LOAD,
	LOADS,
	TAKE,
	ANSWER,
	BOOT
};
enum {
	TRAIN = 1,
	TAKES,
	FITS,
	READS,
	ASKS,
	WAITS,
	MAKES,
	PADS,
	FLIPS,
	BUILDS,
	FLIPPED,
	TRACES,
	COMPILES,
	ADDS,
	INDEXES,
	CONVERTS,
	MAPS,
	DECAYS,
	LOADS_FILE,
	DECODES_TEXT,
	TAKES_REQUEST,
	ANSWERS,
	STARTS,
	CALLED,
	PREPARES,
	NEXT_ADDS
};

static const struct tfh_start_function function[] = {
	{"/job/train.py", "main", false},
	{"/site-packages/scipy/sparse/_index.py", "IndexMixin.__getitem__", true},
	{"/site-packages/sklearn/linear_model/_stochastic_gradient.py", "partial_fit", true},
	{"/site-packages/jax/_src/array.py", "ArrayImpl.__float__", true},
	{"/site-packages/loader/prefetch.py", "Prefetch.__next__", true},
	{"/usr/lib/python3.11/concurrent/futures/_base.py", "Future.result", true},
	{"/job/train.py", "decode", false},
	{"/job/train.py", "augment", false},
	{"/site-packages/numpy/lib/_arraypad_impl.py", "pad", true},
	{"/site-packages/torch/nn/modules/linear.py", "Linear.__init__", true},
	{"/site-packages/jax/_src/interpreters/partial_eval.py", "trace_to_jaxpr", true},
	{"/site-packages/jax/_src/compiler.py", "compile_or_get_cached", true},
	{"/site-packages/jax/_src/numpy/array_methods.py", "_operator_add", true},
	{"/site-packages/jax/_src/array.py", "ArrayImpl.__getitem__", true},
	{"/site-packages/jax/_src/numpy/array_constructors.py", "asarray", true},
	{"/site-packages/jax/_src/tree_util.py", "tree_map.<locals>.<genexpr>", true},
	{"/site-packages/optax/transforms/_adding.py", "update_fn.<locals>.<lambda>", true},
	{"/usr/lib/python3.11/json/__init__.py", "load", true},
	{"/usr/lib/python3.11/json/__init__.py", "loads", true},
	{"/usr/lib/python3.11/socket.py", "SocketIO.readinto", true},
	{"/usr/lib/python3.11/socket.py", "SocketIO.write", true},
	{"/usr/lib/python3.11/threading.py", "Thread._bootstrap", true}};
static const struct tfh_start_place place[] = {
	{0, JOB, 40},	      {TRAIN, SCIPY, 46},   {TRAIN, LINEAR, 560}, {TRAIN, JAX, 300},
	{TRAIN, NEXT, 264},   {ASKS, RESULT, 451},  {STARTS, DECODE, 12}, {FLIPPED, PAD, 875},
	{0, AUGMENT, 36},     {TRAIN, LAYER, 100},  {0, AUGMENT, 31},	  {TRAIN, TRACE, 90},
	{TRAIN, XLA, 7},      {TRAIN, ADD, 732},    {TRAIN, ITEM, 342},	  {TRAIN, MAKE, 453},
	{TRAIN, TREE, 399},   {MAPS, DECAY, 73},    {TRAIN, LOAD, 293},	  {TRAIN, LOADS, 346},
	{TRAIN, TAKE, 706},   {TRAIN, ANSWER, 724}, {0, BOOT, 1002},	  {0, DECODE, 12},
	{WAITS, AUGMENT, 36}, {WAITS, ADD, 732}};

/* Of so many samples, of 100 ms each. */
struct part {
	uint32_t n;
	uint32_t place;
	enum tft_state state;
	enum tft_gil gil;
};

static struct tfh_start start;
static uint32_t makers, ran, /* ninths of a CPU that other threads had */
	called; /* samples of another thread: of the program's, of a library's that calls the program */

static const struct tfh_start *start_of(void *arg, uint32_t process)
{
	(void)arg, (void)process;
	return &start;
}

static struct tfh_result *judge(const struct part *part, uint32_t parts)
{
	static struct tfh_start_sample sample[256];
	struct gen *g = gen_new();
	uint32_t n = 0;

	for (uint32_t p = 0; p < parts; p++)
		for (uint32_t i = 0; i < part[p].n; i++, n++)
			sample[n] = (struct tfh_start_sample){.t = gen_ns(100.0 * n),
							      .ns = 1e8,
							      .place = part[p].place,
							      .state = (uint8_t)part[p].state,
							      .gil = (uint8_t)part[p].gil,
							      .others = (uint8_t)ran};
	static struct tfh_start_other other[256];
	for (uint32_t i = 0; i < makers + called; i++)
		other[i] = (struct tfh_start_other){.at = {.ns = 1e8,
							   .place = i < makers ? MAKES : CALLED,
							   .state = TFT_STATE_RUNNING},
						    .tid = 7};
	start = (struct tfh_start){.sample = sample,
				   .n = n,
				   .other = other,
				   .n_other = makers + called,
				   .place = place,
				   .function = function};
	g->feed.start = start_of;
	return gen_judge(g);
}

static void expect(const struct part *part, uint32_t parts, enum tfh_class cls,
		   enum tfh_cause cause)
{
	struct tfh_result *r = judge(part, parts);

	if (r->verdict.cls != cls || r->verdict.cause != cause)
		fail_msg("%s, cause %d", tfh_class_name(r->verdict.cls), (int)r->verdict.cause);
	tfh_result_free(r);
}

static void test_enough(void **state)
{
	(void)state;
	static const struct part few[] = {{9, TRAIN, TFT_STATE_SLEEP, 0}},
				 clear[] = {{23, TRAIN, TFT_STATE_SLEEP, 0},
					    {7, FITS, TFT_STATE_RUNNING, TFT_GIL_RELEASED}},
				 open[] = {{17, TRAIN, TFT_STATE_SLEEP, 0},
					   {13, FITS, TFT_STATE_RUNNING, TFT_GIL_RELEASED}},
				 many[] = {{34, TRAIN, TFT_STATE_SLEEP, 0},
					   {26, FITS, TFT_STATE_RUNNING, TFT_GIL_RELEASED}};

	expect(few, 1, TFH_CLASS_UNCLASSIFIED, TFH_CAUSE_NONE);
	expect(clear, 2, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_SLEEP);
	expect(open, 2, TFH_CLASS_UNCLASSIFIED, TFH_CAUSE_NONE);
	expect(many, 2, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_SLEEP);
}

/* As in steps with recorded calls, what blocks for 15 % of the time is the verdict even if computing takes more. Samples must show that
 * it does. */
static void test_beside_computing(void **state)
{
	(void)state;
	static const struct part reads[] = {{70, FITS, TFT_STATE_RUNNING, TFT_GIL_RELEASED},
					    {40, TRAIN, TFT_STATE_READ, 0}},
				 little[] = {{90, FITS, TFT_STATE_RUNNING, TFT_GIL_RELEASED},
					     {18, TRAIN, TFT_STATE_READ, 0}};
	struct tfh_result *r = judge(reads, 2);

	assert_int_equal(r->verdict.cls, TFH_CLASS_INPUT_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_INPUT_READ);
	assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_MEDIUM);
	assert_true(fabs(r->verdict.share - 0.36) < 0.01);
	tfh_result_free(r);
	expect(little, 2, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
}

/* A line has the function that it calls with its file, or neither: a digest is read only so. */
static void test_line(void **state)
{
	(void)state;
	static const struct part own = {60, TRAIN, TFT_STATE_SLEEP, 0},
				 calls = {60, FITS, TFT_STATE_RUNNING, TFT_GIL_HELD};
	struct tfh_result *r = judge(&own, 1);

	assert_string_equal(r->found.line.function, "main");
	assert_null(r->found.line.callee);
	assert_null(r->found.line.callee_file);
	tfh_result_free(r);
	r = judge(&calls, 1);
	assert_string_equal(r->found.line.callee, "partial_fit");
	assert_non_null(r->found.line.callee_file);
	tfh_result_free(r);
}

static void test_jax(void **state)
{
	(void)state;
	static const struct part waits[] = {{59, TRAIN, TFT_STATE_LOCK, 0},
					    {1, READS, TFT_STATE_RUNNING, 0}};

	expect(waits, 1, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOCK);
	expect(waits, 2, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
}

static void test_threads_run(void **state)
{
	(void)state;
	static const struct part waits[] = {{60, TRAIN, TFT_STATE_LOCK, 0}};

	ran = 4;
	expect(waits, 1, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOCK);
	ran = 5;
	expect(waits, 1, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	ran = 0;
}

/* What follows the steps at lines that these run, too, has the line that calls them. */
static void test_after(void **state)
{
	static const struct tfh_start_function of[] = {{"/job/train.py", "<module>", false},
						       {"/job/model.py", "forward", false}};
	static const struct tfh_start_place at[] = {{0, 1, 70}, {1, 2, 10}, {1, 2, 11}, {1, 2, 12}};
	struct tfh_part_of_run tree[] = {{.kind = TFH_BRANCH_RUN, .wall_s = 10},
					 {.kind = TFH_BRANCH_TRAIN, .wall_s = 4},
					 {.kind = TFH_BRANCH_AFTER, .begin_s = 4, .wall_s = 6}};
	struct tfh_start_sample sample[100];
	struct tfh_seen_node node[3];
	struct tfh_result r = {.tree = tree, .n_tree = 3, .found = {.node = node}};

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		node[i] = (struct tfh_seen_node){
			.file = "/job/model.py", .function = "forward", .line = 10 + i};
	for (uint32_t i = 0; i < 100; i++)
		sample[i] = (struct tfh_start_sample){
			.t = gen_ns(100.0 * i), .ns = 1e8, .place = 2 + i % 3};
	start = (struct tfh_start){.sample = sample, .n = 100, .place = at, .function = of};
	for (uint32_t shared = 0; shared < 2; shared++) {
		r.found.n_node = 3 * shared;
		assert_int_equal(tfh_sampled_start(&start, 0, &r), 0);
		const struct tfh_seen_start *after = &r.found.start[TFH_SEEN_AFTER];
		assert_int_equal(after->kind, TFH_BRANCH_AFTER);
		assert_int_equal(after->n_line, shared ? 1 : 3);
		assert_int_equal(after->line[0].line == 70, shared);
		assert_true(!shared || after->line[0].share > 0.9);
	}
}

/* JAX that goes on tracing after its last compilation is told from JAX that goes on compiling. */
static void test_traces(void **state)
{
	(void)state;
	static const struct part first[] = {{20, COMPILES, TFT_STATE_RUNNING, 0},
					    {60, TRACES, TFT_STATE_RUNNING, 0}},
				 always[] = {{20, COMPILES, TFT_STATE_RUNNING, 0},
					     {40, TRACES, TFT_STATE_RUNNING, 0},
					     {20, COMPILES, TFT_STATE_RUNNING, 0}};
	struct tfh_result *r = judge(first, 2);

	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_COMPILE);
	assert_true(r->found.sampled.traced > 0.99);
	tfh_result_free(r);
	r = judge(always, 3);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_COMPILE);
	assert_true(fabs(r->found.sampled.traced - 0.5) < 0.02);
	tfh_result_free(r);
}

/* Operations outside of a jitted function are launching, in Python and in native code. What waits for
 * their results, or makes arrays of other data, is not. */
static void test_jax_ops(void **state)
{
	(void)state;
	static const struct {
		struct part part;
		enum tfh_class cls;
		enum tfh_cause cause;
	} rows[] = {
		{{60, ADDS, TFT_STATE_RUNNING, TFT_GIL_RELEASED},
		 TFH_CLASS_HOST_BOUND,
		 TFH_CAUSE_HOST_LAUNCH},
		{{60, ADDS, TFT_STATE_RUNNING, TFT_GIL_HELD},
		 TFH_CLASS_HOST_BOUND,
		 TFH_CAUSE_HOST_LAUNCH},
		{{60, INDEXES, TFT_STATE_RUNNING, TFT_GIL_RELEASED},
		 TFH_CLASS_HOST_BOUND,
		 TFH_CAUSE_HOST_LAUNCH},
		{{60, DECAYS, TFT_STATE_RUNNING, TFT_GIL_RELEASED},
		 TFH_CLASS_HOST_BOUND,
		 TFH_CAUSE_HOST_LAUNCH},
		{{60, DECAYS, TFT_STATE_RUNNING, TFT_GIL_HELD},
		 TFH_CLASS_HOST_BOUND,
		 TFH_CAUSE_HOST_PYTHON},
		{{60, DECAYS, TFT_STATE_LOCK, TFT_GIL_UNKNOWN},
		 TFH_CLASS_COMPUTE_BOUND,
		 TFH_CAUSE_COMPUTE_CPU},
		{{60, READS, TFT_STATE_RUNNING, TFT_GIL_RELEASED},
		 TFH_CLASS_COMPUTE_BOUND,
		 TFH_CAUSE_COMPUTE_CPU},
		{{60, CONVERTS, TFT_STATE_RUNNING, TFT_GIL_RELEASED},
		 TFH_CLASS_COMPUTE_BOUND,
		 TFH_CAUSE_COMPUTE_CPU},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		expect(&rows[i].part, 1, rows[i].cls, rows[i].cause);
}

/* Functions of the program that JAX calls in threads of its own while the main thread waits. */
static void test_calls_back(void **state)
{
	(void)state;
	static const struct part part[] = {{50, READS, TFT_STATE_LOCK, TFT_GIL_UNKNOWN},
					   {12, FITS, TFT_STATE_RUNNING, TFT_GIL_RELEASED},
					   {8, ADDS, TFT_STATE_RUNNING, TFT_GIL_HELD}};

	expect(part, 3, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	called = 40;
	struct tfh_result *r = judge(part, 3);
	called = 0;
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_CALLBACK);
	assert_string_equal(r->found.line.function, "decode");
	tfh_result_free(r);
}

static void test_rows(void **state)
{
	(void)state;
	static const struct part part[] = {{40, TAKES, TFT_STATE_RUNNING, TFT_GIL_RELEASED},
					   {10, TAKES, TFT_STATE_RUNNING, TFT_GIL_HELD},
					   {20, FITS, TFT_STATE_RUNNING, TFT_GIL_RELEASED}};

	expect(part, 3, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_BATCH);
}

/* A file that is loaded for each request is none of the request's data, which may have to be decoded. */
static void test_served(void **state)
{
	(void)state;
	static const struct part load[] = {{60, LOADS_FILE, TFT_STATE_RUNNING, 0},
					   {2, TAKES_REQUEST, TFT_STATE_RUNNING, 0},
					   {2, ANSWERS, TFT_STATE_RUNNING, 0}},
				 text[] = {{60, DECODES_TEXT, TFT_STATE_RUNNING, 0},
					   {2, TAKES_REQUEST, TFT_STATE_RUNNING, 0},
					   {2, ANSWERS, TFT_STATE_RUNNING, 0}};

	expect(load, 1, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_DECODE);
	expect(load, 2, TFH_CLASS_INPUT_BOUND,
	       TFH_CAUSE_INPUT_DECODE); /* it may be asked for batches */
	expect(load, 3, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
	expect(text, 3, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_DECODE);
}

static void test_iterator(void **state)
{
	(void)state;
	static const struct part part[] = {{50, WAITS, TFT_STATE_LOCK, 0},
					   {20, FITS, TFT_STATE_RUNNING, TFT_GIL_RELEASED}};

	expect(part, 2, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOCK);
	makers = 40;
	struct tfh_result *r = judge(part, 2);
	makers = 0;
	assert_int_equal(r->verdict.cls, TFH_CLASS_INPUT_BOUND);
	tfh_result_free(r);
}

/* A library's iterator that makes the batch in the thread that asks for it: also where it calls
 * functions of the program, with and without Python's lock; but not where a framework computes. */
static void test_makes(void **state)
{
	(void)state;
	static const struct part part[] = {{30, WAITS, TFT_STATE_RUNNING, TFT_GIL_HELD},
					   {20, PREPARES, TFT_STATE_RUNNING, TFT_GIL_HELD},
					   {20, PREPARES, TFT_STATE_RUNNING, TFT_GIL_RELEASED},
					   {20, FITS, TFT_STATE_RUNNING, TFT_GIL_RELEASED}},
				 own = {50, NEXT_ADDS, TFT_STATE_RUNNING, TFT_GIL_HELD};

	expect(part, 4, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
	expect(&own, 1, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
}

/* The thread waits for all of its time while another one works: the other one is judged. If it takes
 * batches from there and works on them, it waits for them. */
static void test_pool(void **state)
{
	(void)state;
	static const struct part all = {50, TRAIN, TFT_STATE_SLEEP, 0},
				 some[] = {{50, TRAIN, TFT_STATE_SLEEP, 0},
					   {20, FITS, TFT_STATE_RUNNING, TFT_GIL_RELEASED}};
	struct tfh_result *r;

	expect(&all, 1, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_SLEEP);
	makers = 40;
	r = judge(&all, 1);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_PYTHON);
	assert_string_equal(r->found.line.function, "decode");
	assert_string_equal(r->found.sampled.pool.function, "main");
	tfh_result_free(r);
	r = judge(some, 2);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_SLEEP);
	assert_null(r->found.sampled.pool.file);
	makers = 0;
	tfh_result_free(r);
}

static void test_arrays(void **state)
{
	(void)state;
	static const struct part part[] = {{8, PADS, TFT_STATE_RUNNING, TFT_GIL_HELD},
					   {52, FLIPS, TFT_STATE_RUNNING, TFT_GIL_RELEASED},
					   {1, READS, TFT_STATE_RUNNING, 0}};
	static const struct part builds = {60, BUILDS, TFT_STATE_RUNNING, TFT_GIL_RELEASED};

	expect(part, 2, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	expect(part, 3, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
	expect(&builds, 1, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
}

/* A queue runs empty although the thread that fills it never pauses: what is waited for, also results that JAX computes meanwhile, is
 * that thread's work, and its line is the verdict's. */
static void test_starved(void **state)
{
	const struct part part[] = {{84, READS, TFT_STATE_LOCK, TFT_GIL_UNKNOWN},
				    {8, ASKS, TFT_STATE_LOCK, TFT_GIL_UNKNOWN},
				    {8, READS, TFT_STATE_GIL, TFT_GIL_UNKNOWN},
				    {24, FITS, TFT_STATE_RUNNING, TFT_GIL_RELEASED}};

	(void)state;
	makers = 120;
	struct tfh_result *r = judge(part, sizeof(part) / sizeof(*part));
	assert_int_equal(r->verdict.cls, TFH_CLASS_INPUT_BOUND);
	assert_string_equal(r->found.line.function, "decode");
	assert_int_equal(r->found.line.line, 12);
	tfh_result_free(r);
	makers = 0;
	r = judge(part, sizeof(part) / sizeof(*part));
	assert_int_equal(r->verdict.cls, TFH_CLASS_COMPUTE_BOUND);
	assert_string_equal(r->found.line.function, "main");
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_enough),	    cmocka_unit_test(test_beside_computing),
		cmocka_unit_test(test_line),	    cmocka_unit_test(test_jax),
		cmocka_unit_test(test_traces),	    cmocka_unit_test(test_rows),
		cmocka_unit_test(test_iterator),    cmocka_unit_test(test_makes),
		cmocka_unit_test(test_arrays),	    cmocka_unit_test(test_pool),
		cmocka_unit_test(test_starved),	    cmocka_unit_test(test_jax_ops),
		cmocka_unit_test(test_served),	    cmocka_unit_test(test_calls_back),
		cmocka_unit_test(test_threads_run), cmocka_unit_test(test_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
