/*
 * What a DataLoader's batches wait for. With worker processes, these tell, and not a resource tracker. Without workers, the thread
 * that asks for batches tells, and no child process of the job does. Samples in the marking of the loader's range tell nothing.
 * Workers that import, at the beginning of each epoch, are being started: whatever they do in steps, that is the loader's time. So is the
 * beginning of an epoch in which the thread that asks for batches starts or ends workers and does not wait for one of theirs.
 * Batches before the first training step are no evaluation if nothing is done with them: they are skipped.
 * A batch of an evaluation within an epoch is no end of the training's iterator if the recorder could read the interpreter before.
 * Training that goes on with its iterator after evaluations is one epoch.
 */
#include "../analyze_gen.h"

#define STD "/usr/lib/python3.11/"
#define TORCH "/usr/lib/python3/site-packages/torch/"

enum {
	DECODES = 1,
	WORKER_DECODES,
	MARKS,
	TRACKER,
	GENERATES,
	JOINS,
	WAITS,
	IMPORTS,
	SAMPLES,
	FORKS,
	PLACES
};

static const gen_stack stacks[PLACES] = {
	[DECODES] = {{STD "json/decoder.py", "JSONDecoder.decode", 337, true},
		     {"/job/train.py", "Rows.__getitem__", 7, false},
		     {TORCH "utils/data/_utils/fetch.py", "_MapDatasetFetcher.fetch", 54, true},
		     {"/job/train.py", "main", 20, false}},
	[WORKER_DECODES] = {{STD "json/decoder.py", "JSONDecoder.decode", 337, true},
			    {"/job/train.py", "Rows.__getitem__", 7, false},
			    {TORCH "utils/data/_utils/worker.py", "_worker_loop", 374, true},
			    {STD "multiprocessing/process.py", "BaseProcess._bootstrap", 314, true},
			    {"/job/train.py", "main", 20, false}},
	[MARKS] = {{TORCH "_ops.py", "TorchBindOpOverload.__call__", 1095, true},
		   {TORCH "autograd/profiler.py", "record_function.__exit__", 951, true},
		   {TORCH "utils/data/dataloader.py", "_BaseDataLoaderIter.__next__", 721, true},
		   {"/job/train.py", "main", 20, false}},
	[TRACKER] = {{STD "multiprocessing/resource_tracker.py", "main", 250, true},
		     {"<string>", "<module>", 1, false}},
	[GENERATES] = {{"/job/train.py", "requests", 40, false},
		       {STD "multiprocessing/process.py", "BaseProcess._bootstrap", 314, true}},
	[JOINS] = {{STD "threading.py", "Thread._wait_for_tstate_lock", 1139, true},
		   {"/job/train.py", "requests", 41, false},
		   {STD "multiprocessing/process.py", "BaseProcess._bootstrap", 314, true}},
	[IMPORTS] = {{"<frozen importlib._bootstrap>", "_find_and_load", 1176, true},
		     {"/job/train.py", "<module>", 2, false},
		     {STD "multiprocessing/spawn.py", "prepare", 246, true},
		     {"<string>", "<module>", 1, false}},
	[SAMPLES] = {{"/job/train.py", "Balanced.__iter__", 60, false},
		     {TORCH "utils/data/dataloader.py", "_BaseDataLoaderIter._next_index", 715,
		      true},
		     {TORCH "utils/data/dataloader.py", "_try_put_index", 1539, true},
		     {TORCH "utils/data/dataloader.py", "_BaseDataLoaderIter.__next__", 725, true},
		     {"/job/train.py", "main", 20, false}},
	[FORKS] = {{STD "multiprocessing/popen_fork.py", "Popen._launch", 66, true},
		   {STD "multiprocessing/process.py", "BaseProcess.start", 121, true},
		   {TORCH "utils/data/dataloader.py", "_MultiProcessingDataLoaderIter.__init__",
		    1176, true},
		   {"/job/train.py", "main", 20, false}},
	[WAITS] = {{STD "multiprocessing/queues.py", "Queue.get", 103, true},
		   {TORCH "utils/data/dataloader.py", "_try_get_data", 1291, true},
		   {"/job/train.py", "main", 20, false}},
};

static void sample(struct gen *g, double t, uint32_t place, enum tft_state state, uint32_t child)
{
	struct tfh_event *ev = gen_sample(g, 0, t, state, place, 2.5);

	if (!child)
		return;
	ev->kind = TFT_CHILD;
	ev->ctx = GEN_PID + 1;
	ev->stream = child;
}

/* 120 steps of 10 ms: 8 ms inside the loader's call, then a backward pass and an optimizer step. `asks`: where two of three samples
 * show the thread, `marks` in the others; `child`, `other`: where they show two child processes. */
static struct tfh_result *judge(enum tfh_fn loader, uint32_t asks, enum tft_state state,
				uint32_t child, uint32_t other)
{
	enum tft_state does = other == TRACKER ? TFT_STATE_PIPE
			      : other == JOINS ? TFT_STATE_LOCK
					       : TFT_STATE_RUNNING;
	struct gen *g = gen_new();
	double t = 100;

	GEN_STACKS(&g->feed, stacks);
	g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int i = 0; i < 120; i++, t += 10) {
		gen_call(g, 0, loader, t, t + 8);
		for (int k = 0; k < 3; k++)
			sample(g, t + 1 + 2 * k, k == 1 ? MARKS : asks,
			       k == 1 ? TFT_STATE_RUNNING : state, 0);
		if (child)
			sample(g, t + 2, child, TFT_STATE_RUNNING, GEN_PID + 5);
		for (int k = 0; other && k < 2; k++)
			sample(g, t + 3 + k, other, does, GEN_PID + 6);
		gen_call(g, 0, TFH_FN_torch_backward, t + 8.1, t + 9.3)->w[0] = 1;
		struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_range, t + 9.4, t + 9.9);
		ev->kind = TFT_RANGE;
		ev->w[0] = 3;
	}
	return gen_judge(g);
}

static void is(enum tfh_fn loader, uint32_t asks, enum tft_state state, uint32_t child,
	       uint32_t other, enum tfh_cause cause)
{
	struct tfh_result *r = judge(loader, asks, state, child, other);

	gen_expect(r, TFH_CLASS_INPUT_BOUND, cause);
	tfh_result_free(r);
}

static void test_alone(void **state)
{
	(void)state;
	is(TFH_FN_torch_single, DECODES, TFT_STATE_RUNNING, 0, 0, TFH_CAUSE_INPUT_DECODE);
	is(TFH_FN_torch_single, DECODES, TFT_STATE_RUNNING, 0, TRACKER, TFH_CAUSE_INPUT_DECODE);
	is(TFH_FN_torch_single, DECODES, TFT_STATE_RUNNING, 0, GENERATES, TFH_CAUSE_INPUT_DECODE);
}

static void test_workers(void **state)
{
	(void)state;
	is(TFH_FN_torch_multi, WAITS, TFT_STATE_PIPE, WORKER_DECODES, 0, TFH_CAUSE_INPUT_DECODE);
	is(TFH_FN_torch_multi, WAITS, TFT_STATE_PIPE, WORKER_DECODES, TRACKER,
	   TFH_CAUSE_INPUT_DECODE);
}

/* A sampler runs in the thread that asks for batches, however many workers there are: if most of
 * that time is its own work, its line is the verdict's, and not the workers'. */
static void test_sampler(void **state)
{
	(void)state;
	struct tfh_result *r =
		judge(TFH_FN_torch_multi, SAMPLES, TFT_STATE_RUNNING, WORKER_DECODES, 0);

	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
	assert_true(r->found.asker_works);
	assert_string_equal(r->found.line.function, "Balanced.__iter__");
	assert_int_equal(r->found.line.line, 60);
	tfh_result_free(r);
}

/* Without workers, too: more of them would not help. */
static void test_own_sampler(void **state)
{
	(void)state;
	struct tfh_result *r = judge(TFH_FN_torch_single, SAMPLES, TFT_STATE_RUNNING, 0, 0);

	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
	assert_true(r->found.asker_works);
	assert_int_equal(r->found.workers.more.to, 0);
	tfh_result_free(r);
	r = judge(TFH_FN_torch_single, DECODES, TFT_STATE_RUNNING, 0, 0);
	assert_false(r->found.asker_works);
	assert_true(r->found.workers.more.to > 0);
	tfh_result_free(r);
}

/* A process whose main thread waits for its other threads makes nothing itself. */
static void test_waits(void **state)
{
	(void)state;
	for (uint32_t other = GENERATES; other <= JOINS; other++) {
		struct tfh_result *r =
			judge(TFH_FN_torch_single, DECODES, TFT_STATE_RUNNING, 0, other);
		assert_int_equal(r->found.workers.processes, other == GENERATES);
		tfh_result_free(r);
	}
}

/* Epochs of 20 steps, at whose beginnings a worker does `first` for 400 ms; `asks`: where the thread
 * that asks for batches is meanwhile, 0: unknown. */
static void begins_with(uint32_t first, uint32_t asks, enum tfh_cause cause)
{
	struct gen *g = gen_new();
	double t = 100;

	GEN_STACKS(&g->feed, stacks);
	g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int epoch = 0; epoch < 8; epoch++) {
		for (int i = 0; i < 20; i++, t += 2.5) {
			double wait = i ? 0.3 : 400;
			gen_call(g, 0, TFH_FN_torch_multi, t, t + wait);
			for (double at = 5; at < wait; at += 20) {
				sample(g, t + at, first, TFT_STATE_RUNNING, GEN_PID + 5);
				if (asks)
					sample(g, t + at + 8, asks, TFT_STATE_PIPE, 0);
			}
			if (i % 2)
				sample(g, t + 0.2, WORKER_DECODES, TFT_STATE_RUNNING, GEN_PID + 5);
			t += wait;
			gen_call(g, 0, TFH_FN_torch_backward, t + 0.1, t + 2)->w[0] = 1;
			struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_range, t + 2.1, t + 2.4);
			ev->kind = TFT_RANGE;
			ev->w[0] = 3;
		}
		gen_call(g, 0, TFH_FN_torch_multi, t, t + 0.2)->flags = TFT_F_OPTIONAL;
		t += 0.3;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->lead, 1);
	assert_int_equal(r->recurring[0].kind, TFH_SEGMENT_BETWEEN);
	assert_int_equal(r->verdict.cause, cause);
	tfh_result_free(r);
}

static void test_epoch_beginnings(void **state)
{
	(void)state;
	begins_with(IMPORTS, 0, TFH_CAUSE_INPUT_DATALOADER);
	begins_with(WORKER_DECODES, 0, TFH_CAUSE_INPUT_DECODE);
	begins_with(WORKER_DECODES, WAITS, TFH_CAUSE_INPUT_DECODE);
	begins_with(WORKER_DECODES, FORKS, TFH_CAUSE_INPUT_DATALOADER);
}

/* 60 batches without training, each used for so long, then 120 training steps. */
static struct tfh_result *resume(double used_ms, bool launches)
{
	struct gen *g = gen_new();
	double t = 100;

	g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int i = 0; i < 60; i++, t += 8 + used_ms) {
		gen_call(g, 0, TFH_FN_torch_single, t, t + 8);
		if (launches)
			gen_call(g, 0, TFH_FN_cuLaunchKernel, t + 8, t + 8.01);
	}
	for (int i = 0; i < 120; i++, t += 10) {
		gen_call(g, 0, TFH_FN_torch_single, t, t + 0.5);
		if (launches)
			gen_call(g, 0, TFH_FN_cuLaunchKernel, t + 4, t + 4.01);
		gen_call(g, 0, TFH_FN_torch_backward, t + 5, t + 9.3)->w[0] = 1;
		struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_range, t + 9.4, t + 9.9);
		ev->kind = TFT_RANGE;
		ev->w[0] = 3;
	}
	return gen_judge(g);
}

static const struct tfh_part_of_run *part_of(const struct tfh_result *r, enum tfh_branch kind)
{
	for (uint32_t i = 0; i < r->n_tree; i++)
		if (r->tree[i].kind == kind)
			return &r->tree[i];
	return NULL;
}

static void test_skipped(void **state)
{
	(void)state;
	struct tfh_result *r = resume(0.02, false);

	assert_int_equal(r->steps.total, 120);
	assert_int_equal(r->segments[TFH_SEGMENT_EVAL].count, 0);
	assert_null(part_of(r, TFH_BRANCH_EVALUATE));
	assert_non_null(part_of(r, TFH_BRANCH_SKIP));
	assert_float_equal(part_of(r, TFH_BRANCH_SKIP)->wall_s, 0.48, 0.02);
	tfh_result_free(r);
	for (int launches = 0; launches < 2; launches++) {
		r = resume(launches ? 0.02 : 3, launches);
		assert_int_equal(r->steps.total, 120);
		assert_true(launches || part_of(r, TFH_BRANCH_EVALUATE));
		assert_null(part_of(r, TFH_BRANCH_SKIP));
		tfh_result_free(r);
	}
}

/* 4 times 20 training steps and an evaluation of 5 batches and the end of its iterator; at last the end of the training's. */
static uint64_t evaluated(bool read)
{
	struct gen *g = gen_new();
	uint64_t n = 0;
	double t = 100;

	GEN_STACKS(&g->feed, stacks);
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int k = 0; k < 4; k++) {
		for (int i = 0; i < 20; i++, t += 10) {
			gen_call(g, 0, TFH_FN_torch_single, t, t + 1);
			gen_call(g, 0, TFH_FN_torch_backward, t + 3, t + 9)->w[0] = 1;
			if (read)
				sample(g, t + 2, DECODES, TFT_STATE_RUNNING, 0);
		}
		for (int i = 0; i < 5; i++, t += 5)
			gen_call(g, 0, TFH_FN_torch_single, t, t + 1);
		gen_call(g, 0, TFH_FN_torch_single, t, t + 1)->flags |= TFT_F_OPTIONAL;
		t += 1;
	}
	gen_call(g, 0, TFH_FN_torch_single, t, t + 1);
	gen_call(g, 0, TFH_FN_torch_backward, t + 3, t + 9)->w[0] = 1;
	gen_call(g, 0, TFH_FN_torch_single, t + 10, t + 11)->flags |= TFT_F_OPTIONAL;
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 81);
	assert_null(part_of(r, TFH_BRANCH_EPOCH));
	for (uint32_t i = 0; i < r->n_tree; i++)
		n += r->tree[i].kind == TFH_BRANCH_EVALUATE ? r->tree[i].count : 0;
	tfh_result_free(r);
	return n;
}

static void test_evaluated(void **state)
{
	(void)state;
	assert_int_equal(evaluated(true), 20);
	assert_int_equal(evaluated(false), 19); /* the first one may have been the loader's end */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone),
					   cmocka_unit_test(test_workers),
					   cmocka_unit_test(test_sampler),
					   cmocka_unit_test(test_own_sampler),
					   cmocka_unit_test(test_epoch_beginnings),
					   cmocka_unit_test(test_skipped),
					   cmocka_unit_test(test_evaluated),
					   cmocka_unit_test(test_waits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
