/*
 * next(iter(data)) in each step: an iterator is made for every batch over a data set that is kept, and a shuffle's buffer is
 * filled for it. Making the iterator is part of the wait for the batch, no stage is slow, the line that asks for batches is named,
 * and what it does besides (ending the old pipeline) goes with the wait. Iterators of many batches each, and steps that make their
 * data sets, too, are none of this.
 */
#include "../tf_loops.h"

enum { OP_ITER = 10, OP_SET, SHUFFLE = 2, SLICE };
enum { ASKS = 1, ITERATES, UPDATES, PLACES };

#define TF "/usr/lib/python3/site-packages/tensorflow/python/data/ops/"

static const gen_stack stacks[PLACES] = {
	[ASKS] = {{"/job/train.py", "Trainer.next_batch", 35, false},
		  {"/job/train.py", "Trainer.fit", 49, false}},
	[ITERATES] = {{TF "iterator_ops.py", "OwnedIterator.__next__", 826, true},
		      {"/job/train.py", "Trainer.next_batch", 35, false},
		      {"/job/train.py", "Trainer.fit", 49, false}},
	[UPDATES] = {{"/job/train.py", "Trainer.fit", 50, false}},
};

static struct gen *job(void)
{
	struct gen *g = tf();

	GEN_STACKS(&g->feed, stacks);
	g->name[TFT_NAME_OP][OP_ITER] = "MakeIterator";
	g->name[TFT_NAME_OP][OP_SET] = "BatchDatasetV2";
	g->name[TFT_NAME_STAGE][SHUFFLE] = "Iterator::Root::ShuffleDataset#id=2,parent_id=1#";
	g->name[TFT_NAME_STAGE][SLICE] =
		"Iterator::Root::ShuffleDataset::TensorSlice#id=3,parent_id=2#";
	return g;
}

/* A step of 40 ms: 10 ms make the iterator, if one is made, 12 ms its batch, for which the source is called `calls` times; 4 ms end
 * the old pipeline; 10 ms compute. */
static void step(struct gen *g, double t, int iterator, bool makes, bool sets, int calls)
{
	gen_cpu(g, 0, t + 0.9, t + 0.9, ASKS);
	if (sets)
		gen_exec(g, OP_SET, t, t + 1);
	if (makes)
		gen_exec(g, OP_ITER, t + 1, t + 11);
	gen_cpu(g, 0, t + 11.39, t + 11.39, ITERATES);
	gen_get(g, 0, 1 + (uint32_t)iterator, ROOT, t + 11.4, t + 23)->depth = 1;
	gen_exec(g, OP_GET, t + 11.4, t + 23);
	gen_stage(g, 0, ROOT, t + 11.4, t + 23, 0.1);
	for (int k = 0; k < 2; k++)
		gen_stage(g, 0, SHUFFLE, t + 12 + k, t + 12.9 + k, 0.1);
	for (int k = 0; k < calls; k++)
		gen_stage(g, 0, SLICE, t + 12 + 0.1 * k, t + 12.08 + 0.1 * k, 0.08);
	gen_sample(g, 0, t + 24, TFT_STATE_RUNNING, ASKS, 2);
	gen_sample(g, 0, t + 26, TFT_STATE_RUNNING, ASKS, 2);
	gen_cpu(g, 0, t + 26.99, t + 26.99, UPDATES);
	gen_exec(g, OP_TRAIN, t + 27, t + 37);
}

static struct tfh_result *judge(int batches, bool sets, int calls)
{
	struct gen *g = job();

	for (int i = 0; i < 60; i++)
		step(g, 100 + 40 * i, i / batches, i % batches == 0, sets, calls);
	return gen_judge(g);
}

/* What the first piece of advice says to do; whether any is about `text`. */
static void advises(const struct tfh_result *r, const char *todo, const char *not_about)
{
	struct tfh_wording w;

	tfh_wording_make(&w, r);
	assert_true(w.n_advice > 0);
	assert_non_null(strstr(w.advice[0].todo, todo));
	for (uint32_t i = 0; i < w.n_advice; i++)
		assert_null(strstr(w.advice[i].finding, not_about));
	tfh_wording_free(&w);
}

static void test_each_step(void **state)
{
	(void)state;
	struct tfh_result *r = judge(1, false, 16);

	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_SHUFFLE);
	assert_true(r->found.restarts);
	gen_part(r, TFH_PART_INPUT, 21.6);
	assert_int_equal(r->found.line.line, 35);
	assert_int_equal(r->found.line.kind, TFH_LINE_ASKS);
	/* 18.4 ms without the waits, of which 4 ms more are at that line. */
	assert_true(no_input(r)->low_s < 14.5e-3);
	assert_non_null(gen_says(r, "16 elements a step go into the buffer"));
	advises(r, "before the loop", "also takes time");
	tfh_result_free(r);
	/* No more elements go into the buffer than leave it. */
	r = judge(1, false, 2);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	assert_null(gen_says(r, "go into the buffer"));
	tfh_result_free(r);
}

static void test_others(void **state)
{
	(void)state;
	struct tfh_result *r = judge(10, false, 2);

	assert_false(r->found.restarts);
	tfh_result_free(r);
	r = judge(1, true, 2);
	assert_false(r->found.restarts);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_step),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
