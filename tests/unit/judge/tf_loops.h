/* Synthetic training loops of TensorFlow on the CPU: names of ops and stages, an eager loop. */
#ifndef TFH_TEST_TF_LOOPS_H
#define TFH_TEST_TF_LOOPS_H

#include "analyze_gen.h"

enum { OP_GET = 1, OP_TRAIN, OP_TEST, OP_SMALL, OP_SAVE };
enum { ROOT = 1, PREFETCH, MAP, SOURCE, GENERATOR, EVAL_ROOT = 20 };

static inline struct gen *tf(void)
{
	struct gen *g = gen_new();

	g->name[TFT_NAME_OP][OP_GET] = "IteratorGetNext";
	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_train_step_12";
	g->name[TFT_NAME_OP][OP_TEST] = "__inference_test_step_34";
	g->name[TFT_NAME_OP][OP_SMALL] = "AddV2";
	g->name[TFT_NAME_OP][OP_SAVE] = "SaveV2";
	g->name[TFT_NAME_STAGE][ROOT] = "Iterator::Root#id=1,parent_id=0#";
	g->name[TFT_NAME_STAGE][EVAL_ROOT] = "Iterator::Root#id=9,parent_id=0#";
	g->name[TFT_NAME_STAGE][EVAL_ROOT + 1] = "Iterator::Root::BatchV2#id=10,parent_id=9#";
	return g;
}

/* Eager loop: get-next (with overhead of the op around it), train function, callback. Returns the
 * end. */
static inline double eager_step(struct gen *g, double t, double input, double compute,
				double callback)
{
	struct tfh_event *ev = gen_get(g, 0, 1, ROOT, t, t + input);
	ev->depth = 1;
	gen_exec(g, OP_GET, t, t + input);
	t += input + 0.01;
	gen_exec(g, OP_TRAIN, t, t + compute);
	return t + compute + callback + 0.01;
}

static inline void end_of_data(struct gen *g, double t)
{
	gen_get(g, 0, 1, ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
	gen_exec(g, OP_GET, t, t + 0.03);
}

static inline struct tfh_result *eager(int steps, double input, double compute, double callback)
{
	struct gen *g = tf();
	double t = 100;

	for (int i = 0; i < steps; i++)
		t = eager_step(g, t, input, compute, callback);
	end_of_data(g, t);
	return gen_judge(g);
}

static inline const struct tfh_whatif *no_input(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == TFH_REMOVE_INPUT)
			return &r->whatif[i];
	fail();
	return NULL;
}

/* So many batches of an iterator of its own. Returns when it has no further one. */
static inline double evaluate(struct gen *g, double t, uint32_t iterator, int batches, double ms)
{
	for (int i = 0; i < batches; i++, t += ms) {
		gen_get(g, 0, iterator, EVAL_ROOT, t, t + 0.1);
		gen_exec(g, OP_GET, t, t + 0.1);
		gen_exec(g, OP_TEST, t + 0.11, t + ms);
	}
	gen_get(g, 0, iterator, EVAL_ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
	return t;
}

#endif
