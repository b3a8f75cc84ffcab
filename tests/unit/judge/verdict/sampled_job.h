/* Jobs in which no call was recorded, made of samples of the main thread and of how far its loops had come. */
#ifndef TFH_TESTS_SAMPLED_JOB_H
#define TFH_TESTS_SAMPLED_JOB_H

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

static inline const struct tfh_start *start_of(void *arg, uint32_t process)
{
	(void)arg, (void)process;
	return &start;
}

/* A sample of 10 ms; the loops follow. */
static inline void at(uint32_t where)
{
	assert_true(samples < SAMPLES);
	sample[samples] = (struct tfh_start_sample){
		.t = gen_ns(10.0 * samples), .ns = 1e7, .place = where, .state = TFT_STATE_RUNNING};
	sample[samples++].gil = TFT_GIL_HELD;
}

static inline void in(uint32_t depth, uint64_t done, int64_t left)
{
	loop[loops++] = (struct tfh_start_loop){samples - 1, depth, done, left, 0, false};
}

/* The same by a variable of the program. */
static inline void counted(uint32_t depth, uint64_t done, int64_t left, enum tfh_start_count count)
{
	in(depth, done, left);
	loop[loops - 1].count = (uint8_t)count;
}

static inline struct tfh_result *judge(void)
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

static inline void expect(uint64_t steps, bool exact)
{
	struct tfh_result *r = judge();

	assert_int_equal(r->steps.total, steps);
	if (steps) {
		assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_LOOP);
		assert_int_equal(r->found.sampled.loop.exact, exact);
	}
	tfh_result_free(r);
}

#endif
