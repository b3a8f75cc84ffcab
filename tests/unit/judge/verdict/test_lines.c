/* On a CPU, the line of a backward pass is named if it takes over two thirds of the computing, the line of the forward pass otherwise;
 * neither if the optimizer takes longer.
 * Of a function whose lines together take most of the time, a line is named, although a single line elsewhere takes longer than each
 * of them; not if that one takes over half as long as all of them. The function's samples count if each line has too few. */
#include "../analyze_gen.h"

static uint32_t spread;	   /* lines of the function among which its samples are spread */
static uint32_t tenths;	   /* of all samples that are in it */
static uint32_t every = 1; /* steps for each sample */

/* Place 1 is a line of the loop, each later one a line of the function. */
static uint32_t places(void *arg, uint32_t process, uint32_t place, struct tfh_model_line *frame,
		       uint32_t most)
{
	(void)arg;
	(void)process;
	(void)most;
	*frame =
		(struct tfh_model_line){"/job/train.py", place > 1 ? "many" : "main", place, false};
	return place > 0;
}

/* 200 steps: 10 ms of Python, then a copy to the device and a wait. */
static struct tfh_result *judge(void)
{
	struct gen *g = gen_new();
	double t = 100;

	g->feed.place = g->feed.lines = places;
	for (uint32_t i = 0; i < 200; i++, t += 11) {
		uint32_t k = i / every;
		if (i % every == 0)
			gen_sample(g, 0, t + fmod(i * 6.18, 10), TFT_STATE_RUNNING,
				   k % 10 < tenths ? 2 + k % spread : 1, 10);
		gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t + 10, t + 10.5, 1 << 20, false);
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t + 10.51, t + 10.52)->w[0] = 1;
		gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 10.53, t + 11);
	}
	return gen_judge(g);
}

static void names(uint32_t share, uint32_t lines, const char *function)
{
	tenths = share;
	spread = lines;
	struct tfh_result *r = judge();
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_PYTHON);
	assert_string_equal(r->found.line.function, function);
	tfh_result_free(r);
}

static void test_function(void **state)
{
	(void)state;
	names(7, 7, "many"); /* 30 % against 10 % seven times */
	names(6, 6, "main"); /* 40 % against 10 % six times */
	names(7, 1, "many");
	every = 10; /* 16 samples, two for each line */
	names(8, 8, "many");
	every = 1;
}

/* Place 1 is the forward pass, inside PyTorch, place 2 the line of backward(), place 3 that of the optimizer's step. */
static uint32_t passes(void *arg, uint32_t process, uint32_t place, struct tfh_model_line *frame,
		       uint32_t most)
{
	(void)arg;
	(void)process;
	frame[0] = place == 3
			   ? (struct
			      tfh_model_line){"/usr/lib/python3/dist-packages/torch/optim/sgd.py",
					      "SGD.step", 80, true}
			   : (struct tfh_model_line){
				     "/usr/lib/python3/dist-packages/torch/nn/functional.py",
				     "linear", 70, true};
	if (most > 1)
		frame[1] = (struct tfh_model_line){"/job/train.py", "train", place, false};
	return place ? most < 2 ? most : 2 : 0;
}

/* 100 steps of `forward`, `backward` and `update` ms. */
static void computes(double forward, double backward, double update, uint32_t line)
{
	struct gen *g = gen_new();
	double t = 100;

	g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	g->feed.place = g->feed.lines = passes;
	for (int i = 0; i < 100; i++) {
		gen_sample(g, 0, t + fmod(i * 0.618, forward), TFT_STATE_RUNNING, 1, forward);
		t += forward;
		struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_backward, t, t + backward);
		ev->w[0] = 1;
		ev->stack = 2;
		t += backward;
		if (update > 0)
			gen_sample(g, 0, t + fmod(i * 0.618, update), TFT_STATE_RUNNING, 3, update);
		t += update;
		ev = gen_call(g, 0, TFH_FN_torch_range, t, t + 0.1);
		ev->kind = TFT_RANGE;
		ev->w[0] = 3;
		t += 0.1;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_COMPUTE_CPU);
	assert_int_equal(r->found.line.line, line);
	assert_float_equal(r->found.line.of_s, r->breakdown[TFH_PART_COMPUTE].s_per_step, 1e-9);
	if (line == 2)
		assert_float_equal(r->found.line.s_per_step, backward / 1e3, 1e-5);
	tfh_result_free(r);
}

static void test_backward(void **state)
{
	(void)state;
	computes(3, 5, 0, 1);
	computes(3, 8, 0, 1); /* a backward pass usually takes twice as long */
	computes(3, 12, 0, 2);
	computes(0.5, 5, 4, 2); /* the optimizer is no part of the forward pass */
	computes(4, 5, 4.5, 3);
	computes(1, 6, 12, 3); /* it may take longest itself */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_function),
					   cmocka_unit_test(test_backward)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
