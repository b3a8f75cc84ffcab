/* What a job computes on a CPU, by its parts: calls and ranges give the time of backward passes and optimizers, samples divide the rest
 * between calls of modules (with the program's line that makes them, and the layer), what belongs to a backward pass outside of its
 * recorded call, and the rest. A backward pass inside another one is not counted twice. An optimizer's step whose closure runs the
 * backward pass is not all optimizer. A line that calls modules in few steps evaluates. The function that TensorFlow executes is named without its number. Not with a GPU. */
#include "../analyze_gen.h"

#define TORCH "/usr/lib/python3/dist-packages/torch/"

enum { OP_BACKWARD = 1, OP_TRAIN, OP_GET };
enum { FORWARD = 1, NORM, LEFT, OWN, ZERO, STEP, AT_BACKWARD, EVALUATION };

#define CALL TORCH "nn/modules/module.py", "Module._call_impl", 1789, true
#define LINE(place) "/job/train.py", "train", 10 + (place), false

static const gen_stack stacks[] = {
	[FORWARD] = {{TORCH "nn/modules/linear.py", "Linear.forward", 134, true},
		     {CALL},
		     {LINE(FORWARD)}},
	[NORM] = {{TORCH "nn/functional.py", "layer_norm", 2987, true}, {CALL}, {LINE(NORM)}},
	[LEFT] = {{TORCH "autograd/graph.py", "_engine_run_backward", 979, true}, {LINE(LEFT)}},
	[OWN] = {{TORCH "nn/utils/clip_grad.py", "clip_grad_norm_", 231, true}, {LINE(OWN)}},
	[ZERO] = {{TORCH "optim/optimizer.py", "Optimizer.zero_grad", 900, true}, {LINE(ZERO)}},
	[STEP] = {{TORCH "optim/sgd.py", "SGD.step", 80, true}, {LINE(STEP)}},
	[AT_BACKWARD] = {{TORCH "_tensor.py", "Tensor.backward", 623, true}, {LINE(AT_BACKWARD)}},
	[EVALUATION] = {{TORCH "nn/modules/linear.py", "Linear.forward", 134, true},
			{CALL},
			{LINE(EVALUATION)}},
};

static void range(struct gen *g, double t0, double t1)
{
	struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_range, t0, t1);

	ev->kind = TFT_RANGE;
	ev->w[0] = 3;
}

static void backward(struct gen *g, double t0, double t1)
{
	struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_backward, t0, t1);

	ev->w[0] = OP_BACKWARD;
	ev->stack = AT_BACKWARD;
}

static struct gen *start(void)
{
	struct gen *g = gen_new();

	g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][OP_BACKWARD] = "Engine::execute";
	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_train_step_12";
	g->name[TFT_NAME_OP][OP_GET] = "IteratorGetNext";
	GEN_STACKS(&g->feed, stacks);
	return g;
}

static void part(const struct tfh_result *r, enum tfh_computes of, double ms, double off)
{
	assert_float_equal(1e3 * r->found.computed.part[of].s_per_step, ms, off);
}

/* Steps of 40 ms: 16 ms of modules, a quarter of them in the norm; a backward pass of 15 ms with one of 5 ms inside, and 1 ms after
 * it; 2 ms of clipping, 5 ms of an optimizer, 1 ms for its gradients. */
static void test_torch(void **state)
{
	struct gen *g = start();
	double t = 100;

	(void)state;
	for (int i = 0; i < 200; i++, t += 40) {
		for (int k = 0; k < 4; k++)
			gen_sample(g, 0, t + 4 * k + 2, TFT_STATE_RUNNING, k ? FORWARD : NORM, 4);
		backward(g, t + 18, t + 23);
		backward(g, t + 16, t + 31);
		gen_sample(g, 0, t + 31.5, TFT_STATE_RUNNING, LEFT, 1);
		gen_sample(g, 0, t + 33, TFT_STATE_RUNNING, OWN, 2);
		gen_sample(g, 0, t + 36, TFT_STATE_RUNNING, STEP, 5);
		range(g, t + 34, t + 39);
		gen_sample(g, 0, t + 39.5, TFT_STATE_RUNNING, ZERO, 1);
	}
	struct tfh_result *r = gen_judge(g);
	const struct tfh_computed *c = &r->found.computed;
	assert_int_equal(r->verdict.cause, TFH_CAUSE_COMPUTE_CPU);
	part(r, TFH_COMPUTES_BACKWARD, 16, 0.3);
	part(r, TFH_COMPUTES_FORWARD, 16, 0.3);
	part(r, TFH_COMPUTES_UPDATE, 6, 0.3);
	part(r, TFH_COMPUTES_OTHER, 2, 0.3);
	assert_int_equal(c->backward[0].line, 10 + AT_BACKWARD);
	assert_int_equal(c->backward[0].samples, 0);
	assert_int_equal(c->forward[0].line, 10 + FORWARD);
	assert_float_equal(c->forward[0].s_per_step, 0.012, 0.0003);
	assert_int_equal(c->forward[1].line, 10 + NORM);
	assert_null(c->forward[2].file);
	assert_string_equal(c->layer[0].function, "Linear.forward");
	assert_string_equal(c->layer[1].function, "layer_norm");
	assert_non_null(gen_says(r, " 40 % (mostly Linear), "));
	assert_non_null(gen_says(r, ", optimizer 15 % of a step"));
	tfh_result_free(r);
}

/* The same where the optimizer's step is all of the step, as with LBFGS. */
static void test_closure(void **state)
{
	struct gen *g = start();
	double t = 100;

	(void)state;
	for (int i = 0; i < 200; i++, t += 30) {
		gen_sample(g, 0, t + 5, TFT_STATE_RUNNING, FORWARD, 10);
		backward(g, t + 10, t + 20);
		gen_sample(g, 0, t + 25, TFT_STATE_RUNNING, STEP, 10);
		range(g, t, t + 30);
	}
	struct tfh_result *r = gen_judge(g);
	part(r, TFH_COMPUTES_BACKWARD, 10, 0.3);
	part(r, TFH_COMPUTES_FORWARD, 10, 0.3);
	part(r, TFH_COMPUTES_UPDATE, 10, 0.3);
	tfh_result_free(r);
}

/* In every 50th step, 60 ms of modules at another line. If the line that trains follows, it evaluates; a line that is directly followed
 * by the backward pass, and only seen where it is slow, does not. */
static double evaluation_ms(bool slow)
{
	struct gen *g = start();
	double t = 100;

	for (int i = 0; i < 200; i++, t += 20) {
		bool here = i % 50 == 20;
		for (int k = 0; here && k < 12; k++)
			gen_sample(g, 0, t + 5 * k + 2 + (slow ? 10 : 0), TFT_STATE_RUNNING,
				   EVALUATION, 5);
		t += here && !slow ? 60 : 0;
		gen_sample(g, 0, t + 2, TFT_STATE_RUNNING, FORWARD, 5);
		gen_sample(g, 0, t + 7, TFT_STATE_RUNNING, FORWARD, 5);
		t += here && slow ? 60 : 0;
		backward(g, t + 10, t + 19);
		range(g, t + 19, t + 20);
	}
	struct tfh_result *r = gen_judge(g);
	double ms = 1e3 * r->found.computed.part[TFH_COMPUTES_EVALUATION].s_per_step;
	if (ms > 0) {
		assert_int_equal(r->found.computed.evaluate[0].line, 10 + EVALUATION);
		assert_int_equal(r->found.computed.evaluate[0].steps, 4);
		assert_non_null(gen_says(r, "evaluation in 4 of 199 steps, "));
	}
	tfh_result_free(r);
	return ms;
}

static void test_evaluation(void **state)
{
	(void)state;
	assert_float_equal(evaluation_ms(false), 1.2, 0.3);
	assert_float_equal(evaluation_ms(true), 0, 0);
}

static void test_function(void **state)
{
	struct gen *g = start();

	(void)state;
	for (int i = 0; i < 200; i++) {
		double t = 100 + 20 * i;
		gen_get(g, 0, 1, 1, t, t + 1);
		gen_exec(g, OP_GET, t, t + 1);
		gen_exec(g, OP_TRAIN, t + 1.02, t + 19.9);
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_COMPUTE_CPU);
	part(r, TFH_COMPUTES_FUNCTION, 18.9, 0.1);
	assert_string_equal(r->found.computed.function, "train_step");
	assert_non_null(gen_says(r, "in the tf.function train_step, whose ops are not recorded"));
	tfh_result_free(r);
}

/* Of the time between backward passes, 4 samples in modules stand for a hundredth: that is no figure. */
static void test_hardly_seen(void **state)
{
	struct gen *g = start();
	double t = 100;

	(void)state;
	for (int i = 0; i < 40; i++, t += 40) {
		gen_sample(g, 0, t + 5, TFT_STATE_RUNNING, OWN, 18);
		if (i % 10 == 9)
			gen_sample(g, 0, t + 10, TFT_STATE_RUNNING, FORWARD, 2);
		backward(g, t + 18, t + 31);
		range(g, t + 34, t + 39);
	}
	struct tfh_result *r = gen_judge(g);
	part(r, TFH_COMPUTES_FORWARD, 0, 0);
	assert_true(r->found.computed.part[TFH_COMPUTES_OTHER].s_per_step > 15e-3);
	assert_int_equal(r->found.computed.part[TFH_COMPUTES_FORWARD].samples, 0);
	tfh_result_free(r);
}

static void test_device(void **state)
{
	struct gen *g = start();
	double t = 100;

	(void)state;
	for (int i = 0; i < 200; i++, t += 40) {
		gen_sample(g, 0, t + 5, TFT_STATE_RUNNING, FORWARD, 10);
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t + 10, t + 10.1)->w[0] = 1;
		backward(g, t + 15, t + 30);
		range(g, t + 34, t + 39);
	}
	struct tfh_result *r = gen_judge(g);
	for (int k = 0; k < TFH_COMPUTES_COUNT; k++)
		part(r, k, 0, 0);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_torch),	   cmocka_unit_test(test_closure),
		cmocka_unit_test(test_evaluation), cmocka_unit_test(test_function),
		cmocka_unit_test(test_device),	   cmocka_unit_test(test_hardly_seen)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
