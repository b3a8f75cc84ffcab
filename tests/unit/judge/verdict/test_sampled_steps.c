/* What must hold of a run in which no call was recorded: its steps are the iterations of the loop of Python that the samples show,
 * counted exactly where iterators know how many are left, also in epochs of which no sample is left; a loop in a function that a
 * library calls, a few passes of each iteration, and very short iterations are parts of steps; a loop that is left early counts
 * as far as it came; loops that follow each other in a function are two; a loop inside of one that no iterator shows has no
 * steps that could be counted; a program without a loop that calls a library's has the steps of that one. What an outer loop waits for belongs to the inner one that has queued it (JAX), as far as the pace
 * of the inner one, while it waits itself, allows; the rest of the outer one is time between loops. What is before the loop, and compiling in its first iterations, is the start. The line's
 * gain is of a step. */
#include "../analyze_gen.h"
#include "judge/verdict/verdict.h"
#include "model/start.h"

enum {
	JOB = 1,
	EPOCH,
	CALL,
	LAYERS,
	COMPILER,
	RESULT,
	DISTANCES,
	FIT,
	PARTITION,
	TRACER,
	MODULE,
	MERGE,
	UNMERGE,
	PENALTY,
	HELPER
};
static const struct tfh_start_function function[] = {
	{"/job/train.py", "main", false},
	{"/job/train.py", "epoch", false},
	{"/site-packages/layers/model.py", "Model.call", true},
	{"/job/train.py", "Net.forward", false},
	{"/site-packages/jax/_src/compiler.py", "backend_compile", true},
	{"/site-packages/jax/_src/array.py", "ArrayImpl.__float__", true},
	{"/site-packages/sklearn/metrics/pairwise.py", "pairwise_distances", true},
	{"/site-packages/sklearn/linear_model/_base.py", "Classifier.fit", true},
	{"/site-packages/numpy/_core/fromnumeric.py", "partition", true},
	{"/site-packages/jax/_src/interpreters/partial_eval.py", "trace_to_jaxpr", true},
	{"/site-packages/torch/nn/modules/module.py", "Module._call_impl", true},
	{"/job/train.py", "Net.merge", false},
	{"/job/train.py", "Net.unmerge", false},
	{"/job/train.py", "Penalty.__call__", false},
	{"/job/train.py", "helper", false}};
enum {
	MAIN = 1,
	IN_EPOCH,
	CALLS,
	FORWARD,
	COMPILES,
	EVALUATES,
	LATER,
	READS,
	BELOW,
	MEASURES,
	FITS,
	SORTS,
	RETRACES,
	APPLIES,
	LAYER,
	MERGES,
	UNMERGES,
	LOOKS,
	SCALES,
	DIVIDES,
	HELPS,
	AFTERWARDS
};
static const struct tfh_start_place place[] = {{0, JOB, 40},
					       {MAIN, EPOCH, 50},
					       {IN_EPOCH, CALL, 1},
					       {CALLS, LAYERS, 20},
					       {IN_EPOCH, COMPILER, 9},
					       {0, JOB, 44},
					       {0, JOB, 30},
					       {MAIN, RESULT, 300},
					       {MAIN, EPOCH, 51},
					       {IN_EPOCH, DISTANCES, 9},
					       {LATER, FIT, 9},
					       {IN_EPOCH, PARTITION, 9},
					       {FORWARD, TRACER, 9},
					       {IN_EPOCH, MODULE, 1789},
					       {APPLIES, LAYERS, 25},
					       {IN_EPOCH, MERGE, 19},
					       {IN_EPOCH, UNMERGE, 22},
					       {IN_EPOCH, PENALTY, 60},
					       {IN_EPOCH, PENALTY, 61},
					       {IN_EPOCH, PENALTY, 63},
					       {IN_EPOCH, HELPER, 70},
					       {EVALUATES, RESULT, 300}};

#define SAMPLES 4096
static struct tfh_start start;
static struct tfh_start_sample sample[SAMPLES];
static struct tfh_start_loop loop[4 * SAMPLES];
static uint32_t samples, loops;

static const struct tfh_start *start_of(void *arg, uint32_t process)
{
	(void)arg, (void)process;
	return &start;
}

/* A sample of 10 ms; the loops follow. */
static void at(uint32_t where)
{
	assert_true(samples < SAMPLES);
	sample[samples] = (struct tfh_start_sample){
		.t = gen_ns(10.0 * samples), .ns = 1e7, .place = where, .state = TFT_STATE_RUNNING};
	sample[samples++].gil = TFT_GIL_HELD;
}

static void in(uint32_t depth, uint64_t done, int64_t left)
{
	loop[loops++] = (struct tfh_start_loop){samples - 1, depth, done, left, 0, false};
}

/* The same by a variable of the program. */
static void counted(uint32_t depth, uint64_t done, int64_t left, enum tfh_start_count count)
{
	in(depth, done, left);
	loop[loops - 1].count = (uint8_t)count;
}

static struct tfh_result *judge(void)
{
	struct gen *g = gen_new();

	start = (struct tfh_start){.sample = sample,
				   .n = samples,
				   .loop = loop,
				   .n_loop = loops,
				   .place = place,
				   .function = function};
	g->feed.start = start_of;
	g->process.born_ns = sample[0].t;
	g->feed.end_ns = sample[samples - 1].t;
	g->feed.wall_ns = g->feed.end_ns - g->process.born_ns;
	samples = loops = 0;
	return gen_judge(g);
}

static void expect(uint64_t steps, bool exact)
{
	struct tfh_result *r = judge();

	assert_int_equal(r->steps.total, steps);
	if (steps) {
		assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_LOOP);
		assert_int_equal(r->found.sampled.loop.exact, exact);
	}
	tfh_result_free(r);
}

/* 6 epochs of 25 steps of 20 ms; of the fourth epoch there is no sample. */
static void epochs(bool known)
{
	for (uint32_t e = 1; e <= 6; e++)
		for (uint32_t i = 0; i < 50 && e != 4; i++) {
			at(i % 3 ? IN_EPOCH : CALLS);
			in(1, e, 6 - e);
			in(2, i / 2 + 1, known ? 24 - (int64_t)i / 2 : -1);
		}
}

static void test_epochs(void **state)
{
	(void)state;
	epochs(true);
	expect(150, true);
	epochs(false);
	expect(150, false);
}

/* 6 epochs of 25 steps over a generator: of three samples of each, some see it run, so that its own loop is seen, and the others the
 * loop over it. In the first epoch and at the ends of the others, only one is seen. Then, by turns, a loop of as many steps
 * follows each epoch in a function: it is another one. */
static void test_generator(void **state)
{
	(void)state;
	for (uint32_t runs = 1; runs < 3; runs++) {
		for (uint32_t e = 1; e <= 6; e++)
			for (uint32_t i = 0; i < 75; i++) {
				bool running = e == 1 || i > 60 || i % 3 < runs;
				at(running ? IN_EPOCH : MAIN);
				in(1, e, 6 - e);
				in(running ? 2 : 1, i / 3 + 1, 24 - (int64_t)i / 3);
			}
		struct tfh_result *r = judge();

		assert_int_equal(r->steps.total, 150);
		assert_true(r->found.sampled.loop.exact);
		assert_int_equal(r->found.sampled.loop.first, 40);
		tfh_result_free(r);
	}
	for (uint32_t e = 1; e <= 6; e++)
		for (uint32_t i = 0; i < 60; i++) {
			at(i < 10 ? IN_EPOCH : MAIN);
			in(1, e, 6 - e);
			in(i < 10 ? 2 : 1, i < 10 ? i * 2 + 1 : i / 2 - 4,
			   i < 10 ? 24 - (int64_t)i * 2 : 29 - (int64_t)i / 2);
		}
	expect(150, true);
}

/* 500 steps of 22 ms, of which few samples, now close together and now far apart, show how far the loop has come: a step is as long as
 * those between the samples, whichever of these are near each other. All samples are at one line, so its part of a step is not known to
 * be all of it. */
static void test_few_samples(void **state)
{
	(void)state;
	double t = 5;

	for (uint32_t i = 0; i < 44; i++) {
		at(LATER);
		sample[samples - 1].t = gen_ns(t);
		sample[samples - 1].state = TFT_STATE_SLEEP;
		counted(1, (uint64_t)(t / 22) + 1, -1, TFH_START_COUNTER);
		t += i % 4 == 0 ? 880 : i % 4 == 1 ? 70 : i % 4 == 2 ? 11 : 40;
	}
	struct tfh_result *r = judge();

	assert_true(fabs(r->steps.median_s * 1e3 - 22) < 1);
	assert_true(r->place[0].gain.about_s > 0.1e-3 && r->place[0].gain.about_s < 1e-3);
	tfh_result_free(r);
}

/* 300 steps of 40 ms, in each of which 12 layers of a model follow each other, or 4 micro-batches. */
static void test_inner_loops(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 1200; i++) {
		at(FORWARD);
		in(2, i / 4 + 1, 299 - i / 4);
		in(4, i % 4 * 3 + 1, 11 - i % 4 * 3);
	}
	expect(300, true);
	for (uint32_t i = 0; i < 1200; i++) {
		at(IN_EPOCH);
		in(1, i / 4 + 1, 299 - i / 4);
		in(2, i % 4 + 1, 3 - i % 4);
	}
	expect(300, true);
	for (uint32_t i = 0; i < 1200; i++) {
		at(IN_EPOCH);
		in(1, i / 4 + 1, 299 - i / 4);
		in(2, i % 4 * 100000 + 1, 399999 - i % 4 * 100000);
	}
	expect(300, true);
}

/* Of 1,000 steps, 200 were made; then 40 samples of something else follow. */
static void test_left_early(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 400; i++) {
		at(MAIN);
		in(1, i / 2 + 1, 999 - i / 2);
	}
	for (uint32_t i = 0; i < 40; i++)
		at(LATER);
	expect(200, false);
	/* Samples at its line in which it could not be read do not show that it was left. */
	for (uint32_t i = 0; i < 200; i++) {
		at(MAIN);
		in(1, i / 2 + 1, 102 - i / 2);
	}
	for (uint32_t i = 0; i < 3; i++)
		at(MAIN);
	for (uint32_t i = 0; i < 40; i++)
		at(LATER);
	expect(103, true);
}

static void test_two_loops(void **state)
{
	(void)state;
	for (uint32_t e = 1; e <= 3; e++) {
		for (uint32_t i = 0; i < 80; i++) {
			at(MAIN);
			in(1, e, 3 - e);
			in(1, i / 2 + 1, 39 - i / 2);
		}
		for (uint32_t i = 0; i < 10; i++) {
			at(EVALUATES);
			in(1, e, 3 - e);
			in(1, i + 1, 9 - i);
		}
	}
	expect(120, true);
}

/* 8 epochs of 46 steps, which are queued within 100 ms; then 900 ms of waiting for the last one's result. */
static void test_queued(void **state)
{
	(void)state;
	for (uint32_t e = 1; e <= 8; e++)
		for (uint32_t i = 0; i < 100; i++) {
			at(i < 10 ? MAIN : READS);
			sample[samples - 1].state = i < 10 ? TFT_STATE_RUNNING : TFT_STATE_LOCK;
			in(1, e, 8 - e);
			if (i < 10)
				in(1, 4 * i + 5, 41 - 4 * (int64_t)i);
		}
	struct tfh_result *r = judge();

	assert_int_equal(r->steps.total, 368);
	assert_true(fabs(r->steps.median_s - 1.0 / 46) < 0.001);
	tfh_result_free(r);
}

/* 8 epochs of 46 steps of 20 ms: 30 are queued at once, and the others as fast as they are computed. The last 30 are awaited, together
 * with an evaluation of 300 ms, which is no step's. */
static void test_evaluated(void **state)
{
	(void)state;
	for (uint32_t e = 1; e <= 8; e++) {
		for (uint32_t i = 0; i < 32; i++) {
			at(MAIN);
			sample[samples - 1].state = TFT_STATE_LOCK;
			sample[samples - 1].place = READS;
			in(1, e, 8 - e);
			in(1, 31 + i / 2, 15 - (int64_t)i / 2);
		}
		for (uint32_t i = 0; i < 90; i++) {
			at(AFTERWARDS);
			sample[samples - 1].state = TFT_STATE_LOCK;
			in(1, e, 8 - e);
		}
	}
	struct tfh_result *r = judge();

	assert_int_equal(r->steps.total, 368);
	assert_true(fabs(r->steps.median_s - 0.02) < 0.001);
	assert_int_equal(r->n_tree, 5);
	assert_int_equal(r->tree[2].kind, TFH_BRANCH_TRAIN);
	assert_true(fabs(r->tree[2].wall_s - 7.36) < 0.5);
	assert_int_equal(r->tree[3].kind, TFH_BRANCH_BETWEEN);
	assert_int_equal(r->tree[3].count, 8);
	assert_true(fabs(r->tree[3].wall_s - 2.4) < 0.5);
	tfh_result_free(r);
}

/* `while` around 5 passes each time: there are no steps that could be counted. */
static void test_unseen_loop(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 400; i++) {
		at(MAIN);
		in(1, i % 5 + 1, 4 - i % 5);
	}
	expect(0, false);
	/* Nor are there where 20 passes take two samples: some may be entered between two. */
	for (uint32_t i = 0; i < 100; i++)
		for (uint32_t k = 0; k < 2; k++) {
			at(IN_EPOCH);
			in(2, 10 * k + 5, 15 - 10 * (int64_t)k);
		}
	expect(0, false);
	/* Nor where the loop is a tenth of the run. */
	for (uint32_t i = 0; i < 500; i++) {
		at(i < 50 ? MAIN : LATER);
		if (i < 50)
			in(1, i + 1, 49 - i);
	}
	expect(0, false);
}

/* 200 iterations of `while`, of which the last one is seen or the end is known; from 5,000 on, or from where it is not known: as many
 * as were seen. */
static void test_while(void **state)
{
	(void)state;
	for (uint32_t from = 0; from <= 5000; from += 5000)
		for (int known = 0; known < 2; known++) {
			for (uint32_t i = 0; i < 400; i++) {
				at(MAIN);
				counted(1, from + i / 2 + 1, known ? 199 - (int64_t)i / 2 : -1,
					TFH_START_COUNTER_FROM);
			}
			expect(200, known && !from);
		}
	for (uint32_t i = 0; i < 399; i++) {
		at(MAIN);
		counted(1, i / 2 + 1, 199 - (int64_t)i / 2, TFH_START_COUNTER);
	}
	expect(200, true);
}

/* 6 epochs of 25 steps, counted by a variable that goes on: of the fourth epoch and of the first steps of all there is no sample. */
static void test_goes_on(void **state)
{
	(void)state;
	for (int from = 0; from < 2; from++) {
		for (uint32_t e = 1; e <= 6; e++)
			for (uint32_t i = 20; i < 50 && e != 4; i++) {
				at(IN_EPOCH);
				in(1, e, 6 - e);
				counted(2, 25 * (e - 1) + i / 2 + 1, -1,
					from ? TFH_START_COUNTER_ON_FROM : TFH_START_COUNTER_ON);
			}
		expect(from ? 140 : 150, false);
	}
}

/* 2 s of preparation, 1 s of compiling in the first of 100 steps of 50 ms, of which the model's line takes 4/5. */
/* A program that calls one function of a library (fit) has the steps of the library's loop. Of two
 * such calls neither has all the steps, nor has one that takes half of the time. */
static void test_fit(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 120; i++) {
		at(CALLS);
		in(3, i, 120 - (int64_t)i);
	}
	expect(120, true);
	/* Three epochs of 80 batches in one function of the library. */
	for (uint64_t i = 0; i < 240; i++) {
		at(CALLS);
		in(3, i / 80 + 1, 2 - (int64_t)i / 80);
		in(3, i % 80 + 1, 79 - (int64_t)i % 80);
	}
	expect(240, true);
	for (uint64_t i = 0; i < 240; i++) {
		at(CALLS);
		in(3, i % 120 + 1, 119 - (int64_t)i % 120);
	}
	expect(0, false);
	for (uint64_t i = 1; i <= 120; i++) {
		at(CALLS);
		in(3, i, 120 - (int64_t)i);
		at(LATER);
	}
	expect(0, false);
}

/* 20 steps, each of which compiles nearly all of the time: what little else there is, is before. */
static void test_compiles_on(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		at(LATER);
	for (uint32_t i = 0; i < 400; i++) {
		at(i % 20 ? COMPILES : IN_EPOCH);
		in(2, i / 20 + 1, 19 - i / 20);
	}
	expect(20, true);
}

/* What is compiled anew in each step is executed each time, also once it is compiled only once. */
static void test_compiling_gain(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		at(i % 10 < 8 ? COMPILES : IN_EPOCH);
		in(2, i / 10 + 1, 99 - i / 10);
	}
	struct tfh_result *r = judge();

	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_COMPILE);
	assert_int_equal(r->line_place, 1);
	assert_true(fabs(r->place[0].gain.about_s - 0.02) < 0.002);
	assert_true(r->place[0].gain.low_s > 0.015);
	tfh_result_free(r);
}

/* 100 steps of ten samples; places in capitals have Python's lock. */
static struct tfh_result *steps_of(const uint32_t where[10], const char *held)
{
	for (uint32_t i = 0; i < 1000; i++) {
		at(where[i % 10]);
		sample[samples - 1].gil = held[i % 10] == 'P' ? TFT_GIL_HELD : TFT_GIL_RELEASED;
		in(2, i / 10 + 1, 99 - i / 10);
	}
	return judge();
}

static void expect_place(struct tfh_result *r, enum tfh_cause cause, const char *of, uint32_t line,
			 double share)
{
	assert_int_equal(r->verdict.cause, cause);
	assert_string_equal(r->found.line.function, of);
	assert_int_equal(r->found.line.line, line);
	assert_int_equal(r->line_place, share > 0);
	if (share > 0)
		assert_true(fabs(r->place[0].s_per_step - share * 0.1) < 0.002);
	tfh_result_free(r);
}

/* The lines of a function that is a part of the steps count together, and its short native calls
 * are Python code. What computes beside the model, and more than it, is the line, with what undoes
 * it. */
static void test_functions(void **state)
{
	(void)state;
	static const uint32_t lines[10] = {HELPS, HELPS, HELPS,	  SCALES,  LOOKS,
					   LOOKS, LOOKS, DIVIDES, DIVIDES, DIVIDES},
			      short_calls[10] = {LAYER,	 LAYER,	  LAYER,   LAYER,   LOOKS,
						 SCALES, DIVIDES, DIVIDES, DIVIDES, DIVIDES},
			      beside[10] = {LAYER,  LAYER,  LAYER,    LAYER,	MERGES,
					    MERGES, MERGES, UNMERGES, UNMERGES, UNMERGES},
			      model[10] = {LAYER, LAYER, LAYER,	 LAYER,	 LAYER,
					   LAYER, LAYER, MERGES, MERGES, UNMERGES};

	struct tfh_result *r = steps_of(lines, "PPPPnPPnPP");
	assert_int_equal(r->n_place, 2); /* with the next one */
	assert_int_equal(r->place[1].line, 70);
	assert_true(fabs(r->place[1].s_per_step - 0.03) < 0.002);
	expect_place(r, TFH_CAUSE_HOST_PYTHON, "Penalty.__call__", 60, 0.7);
	expect_place(steps_of(short_calls, "nnnnPPPnnn"), TFH_CAUSE_HOST_PYTHON, "Penalty.__call__",
		     63, 0.6);
	expect_place(steps_of(short_calls, "nnnnPnnnnn"), TFH_CAUSE_COMPUTE_CPU, "Penalty.__call__",
		     63, 0.5);
	expect_place(steps_of(beside, "nnnnnnnnnn"), TFH_CAUSE_COMPUTE_CPU, "Net.merge", 19, 0.6);
	expect_place(steps_of(model, "nnnnnnnnnn"), TFH_CAUSE_COMPUTE_CPU, "Net.forward", 25, 0);
}

static void test_start_and_gain(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 200; i++)
		at(LATER);
	for (uint32_t i = 0; i < 100; i++) {
		at(COMPILES);
		in(2, 1, 99);
	}
	for (uint32_t i = 0; i < 500; i++) {
		at(i % 5 ? CALLS : IN_EPOCH);
		in(2, i / 5 + 1, 99 - i / 5);
	}
	struct tfh_result *r = judge();

	assert_int_equal(r->steps.total, 100);
	assert_true(fabs(r->steps.median_s - 0.05) < 0.001);
	assert_true(fabs(r->found.sampled.start_s - 3) < 0.1);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_PYTHON);
	assert_int_equal(r->n_tree, 4);
	assert_true(fabs(r->tree[1].wall_s + r->tree[2].wall_s + r->tree[3].wall_s -
			 r->tree[0].wall_s) < 1e-6);
	assert_int_equal(r->tree[2].count, 100);
	assert_int_equal(r->line_place, 1);
	assert_true(fabs(r->place[0].s_per_step - 0.05) <
		    0.002); /* both lines are one line of main */
	assert_true(r->place[0].gain.high_s >= r->place[0].gain.about_s);
	tfh_result_free(r);
}

/* A function of two lines, one of which has 50 ms of a step of 100, goes with both (`ms` together), and the line is the larger one;
 * but not if it is the whole step. */
static void of_two_lines(uint32_t ms, bool whole)
{
	for (uint32_t i = 0; i < 1000; i++) {
		at(i % 10 < 5 ? IN_EPOCH : i % 10 < ms / 10 ? BELOW : MAIN);
		in(1, i / 10 + 1, 99 - i / 10);
	}
	struct tfh_result *r = judge();

	assert_int_equal(r->found.line.line, 50);
	assert_int_equal(r->place[0].whole, whole);
	assert_true(fabs(r->place[0].s_per_step - (whole ? ms / 1e3 : 0.05)) < 0.002);
	tfh_result_free(r);
}

static void test_function(void **state)
{
	(void)state;
	of_two_lines(80, true);
	of_two_lines(100, false);
}

/* 100 steps of 100 ms, in each so many tenths at one place and the rest at another. Returns the gain's step, ms;
 * 0: none. */
static double beside(uint32_t tenths, uint32_t where, uint32_t other)
{
	for (uint32_t i = 0; i < 1000; i++) {
		at(i % 10 < tenths ? where : other);
		sample[samples - 1].gil = TFT_GIL_RELEASED;
		in(1, i / 10 + 1, 99 - i / 10);
	}
	struct tfh_result *r = judge();
	double left = r->line_place ? 1e3 * r->place[0].gain.about_s : 0;

	assert_int_equal(r->verdict.cause, TFH_CAUSE_COMPUTE_CPU);
	tfh_result_free(r);
	return left;
}

/* A measure may be taken less often; training, arithmetic of arrays and what is the whole step may not. */
static void test_beside(void **state)
{
	(void)state;
	assert_true(fabs(beside(6, MEASURES, FITS) - 40) < 2);
	assert_true(beside(6, FITS, MEASURES) == 0);
	assert_true(beside(6, SORTS, FITS) == 0);
	assert_true(beside(9, MEASURES, FITS) == 0);
}

/* 100 steps of 100 ms, 80 of which a library's call takes, most of them to trace the program's model. */
static void test_model_call(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		at(i % 10 < 6 ? RETRACES : i % 10 < 8 ? FORWARD : LATER);
		in(1, i / 10 + 1, 99 - i / 10);
	}
	struct tfh_result *r = judge();

	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_COMPILE);
	assert_string_equal(r->found.line.function, "epoch");
	assert_int_equal(r->found.line.line, 50);
	assert_true(fabs(r->place[0].s_per_step - 0.08) < 0.002); /* with what it runs there */
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function),
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_inner_loops),
		cmocka_unit_test(test_left_early),
		cmocka_unit_test(test_two_loops),
		cmocka_unit_test(test_unseen_loop),
		cmocka_unit_test(test_queued),
		cmocka_unit_test(test_evaluated),
		cmocka_unit_test(test_compiles_on),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_compiling_gain),
		cmocka_unit_test(test_start_and_gain),
		cmocka_unit_test(test_while),
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_generator),
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_model_call),
		cmocka_unit_test(test_few_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
