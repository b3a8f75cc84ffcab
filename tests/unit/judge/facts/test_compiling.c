/* While a thread of the program compiles, the compiler's own threads try kernels and wait for each other. All of that is compiling.
 * If the program's thread does something else meanwhile, they are waiting for a lock, as seen. A run whose steps do not
 * compile may still compile much: how long, how often and where is told, and it is no longer than the time it was seen in. */
#include "../devgen.h"

enum { PROGRAM, LIBRARY };

static double stands_ms = 10; /* for how much time a sample stands */

/* The program's thread in a function of a library that two lines call. */
static gen_stack stacks[] = {
	[7] = {{NULL, "backend_compile_and_load", 395, true},
	       {"/home/me/train.py", "train", 12, false}},
	[8] = {{NULL, "backend_compile_and_load", 395, true},
	       {"/home/me/train.py", "train", 13, false}},
};

/* Steps of some 30 ms: 24 of them with eight pauses of the library's thread, each before a short kernel; then computing. */
static struct tfh_result *judge(const char *file)
{
	struct dg *d = dg_new();

	stacks[7][0].file = file;
	for (int i = 0; i < 100; i++) {
		double from = d->now[PROGRAM];
		gen_sample(d->g, PROGRAM, from + fmod(i * 0.618, 1) * 24, TFT_STATE_LOCK, 7,
			   stands_ms);
		gen_sample(d->g, PROGRAM, from + fmod(i * 0.382, 1) * 24, TFT_STATE_LOCK, 7,
			   stands_ms);
		for (int k = 1; k <= 8; k++) {
			gen_sample(d->g, LIBRARY, from + 3 * k - 1.5, TFT_STATE_LOCK, 0, stands_ms);
			dg_code_until(d, LIBRARY, from + 3 * k);
			dg_launch(d, LIBRARY, 2, 0.05);
		}
		dg_code_until(d, PROGRAM, d->now[LIBRARY] + 0.1);
		for (int k = 0; k < 4; k++)
			dg_launch(d, PROGRAM, 1, 1);
		dg_sync(d, PROGRAM, 1);
		d->now[LIBRARY] = d->now[PROGRAM];
	}
	GEN_STACKS(&d->g->feed, stacks);
	return dg_judge(d);
}

static void test_compiler(void **state)
{
	(void)state;
	struct tfh_result *r = judge("/lib/python3.12/site-packages/jax/_src/compiler.py");

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_COMPILE);
	assert_true(1e3 * r->found.cause_s[TFH_CAUSE_HOST_COMPILE] > 20);
	tfh_result_free(r);
}

static void test_other_work(void **state)
{
	(void)state;
	struct tfh_result *r = judge("/lib/python3.12/site-packages/other/module.py");

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOCK);
	tfh_result_free(r);
}

/* A compiler's function below the line that calls the model, with what the innermost frame is. */
#define COMPILER "/lib/python3.12/site-packages/torch/_dynamo/convert_frame.py"
#define FIT "/home/me/train.py", "fit", 12, false

static const gen_stack models[] = {
	[1] = {{"/lib/python3.12/site-packages/torch/nn/modules/module.py", "_call_impl", 9, true},
	       {COMPILER, "_compile", 395, true},
	       {FIT}},
	[2] = {{"/home/me/train.py", "loss", 40, false}, {COMPILER, "_compile", 395, true}, {FIT}},
	[3] = {{"<builtin>", "read", 0, true},
	       {COMPILER, "_compile", 395, true},
	       {FIT}}, /* from a C compiler */
	[4] = {{"/lib/python3.12/site-packages/torch/nn/modules/module.py", "_call_impl", 9, true},
	       {COMPILER, "<module>", 395, true},
	       {FIT}},
};

/* Two models, each compiled for a second before the first of its 60 steps of 4 ms. `imports`: the compiler is only imported. */
static struct tfh_result *two_models(bool imports)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 120; i++) {
		bool first = i == 0 || i == 60;
		double from = d->now[PROGRAM];
		dg_copy(d, PROGRAM, 1, TFH_DIR_H2D, 1 << 20, 0.1);
		for (int k = 0; first && k < 100; k++)
			gen_sample(d->g, PROGRAM, from + 1 + 10 * k, TFT_STATE_LOCK,
				   imports ? 4 : 1 + (uint32_t)k % 3, stands_ms);
		dg_code_until(d, PROGRAM, from + (first ? 1000 : 0.5));
		for (int k = 0; k < 3; k++)
			dg_launch(d, PROGRAM, 1, 1);
		dg_sync(d, PROGRAM, 1);
	}
	GEN_STACKS(&d->g->feed, models);
	return dg_judge(d);
}

static void test_between_steps(void **state)
{
	(void)state;
	struct tfh_result *r = two_models(false);
	const struct tfh_compiling *c = &r->found.compiling;
	double s = 0;

	for (int i = 0; i < TFH_SEGMENT_COUNT; i++)
		s += c->s[i];
	assert_true(fabs(s - 2) < 0.1);
	assert_int_equal(c->times, 2);
	assert_int_equal(c->samples, 200);
	assert_string_equal(c->file, "/home/me/train.py");
	assert_int_equal(c->line, 12);
	assert_non_null(strstr(c->callee_file, "/torch/"));
	tfh_result_free(r);
	r = two_models(true);
	assert_int_equal(r->found.compiling.samples, 0);
	assert_null(r->found.compiling.file);
	tfh_result_free(r);
}

/* What a callback calls compiles. */
static gen_stack callback[] = {
	[7] = {{"/lib/python3.12/site-packages/jax/_src/interpreters/mlir.py", "lower_jaxpr", 9,
		true},
	       {"/lib/python3.12/site-packages/keras/src/trainer.py", NULL, 526, true},
	       {"/home/me/train.py", "Show.on_train_batch_end", 12, false},
	       {"/lib/python3.12/site-packages/keras/src/trainer.py", "Trainer.fit", 400, true},
	       {"/home/me/train.py", "<module>", 30, false}},
};

/* Steps of some 14 ms, 10 of them in the callback. */
static void in_callback(const char *function, enum tfh_cause cause)
{
	struct dg *d = dg_new();

	callback[7][1].function = function;
	for (int i = 0; i < 100; i++) {
		double from = d->now[PROGRAM];
		for (int k = 0; k < 4; k++)
			dg_launch(d, PROGRAM, 1, 1);
		dg_sync(d, PROGRAM, 1);
		from = d->now[PROGRAM];
		gen_sample(d->g, PROGRAM, from + fmod(i * 0.618, 1) * 10, TFT_STATE_RUNNING, 7, 10);
		dg_code_until(d, PROGRAM, from + 10);
	}
	GEN_STACKS(&d->g->feed, callback);
	struct tfh_result *r = dg_judge(d);
	gen_expect(r, TFH_CLASS_HOST_BOUND, cause);
	assert_in_range(r->found.compiling.samples, 0, 4); /* before the steps */
	tfh_result_free(r);
}

/* predict() in a callback compiles what it needs, and is a callback's work all the same. */
static void test_evaluates(void **state)
{
	(void)state;
	in_callback("Trainer.predict", TFH_CAUSE_HOST_CALLBACK);
	in_callback("Trainer.evaluate", TFH_CAUSE_HOST_CALLBACK);
	in_callback("Trainer.compile", TFH_CAUSE_HOST_COMPILE);
}

/* Samples that stand for three times as much as they were apart. */
static void test_within(void **state)
{
	(void)state;
	stands_ms = 30;
	struct tfh_result *r = two_models(false);
	double s = 0;

	stands_ms = 10;
	for (int i = 0; i < TFH_SEGMENT_COUNT; i++)
		s += r->found.compiling.s[i];
	assert_true(s > 1.9 && s < 2.1);
	tfh_result_free(r);
}

/* What a scheduler does before each launch. */
static const gen_stack schedules[] = {
	[7] = {{"/lib/python3.12/site-packages/tinygrad/schedule/rangeify.py", "get_rangeify_map",
		395, true},
	       {"/home/me/train.py", "train", 12, false}},
};

/* Without new modules, the steps' scheduling is launching, in the verdict as among what compiles: the same samples are not both. */
static void test_scheduling(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 100; i++) {
		double from = d->now[PROGRAM];
		dg_copy(d, PROGRAM, 1, TFH_DIR_H2D, 1 << 20, 0.1);
		for (int k = 1; k <= 4; k++) {
			gen_sample(d->g, PROGRAM, from + 5 * k - 2, TFT_STATE_LOCK, 7, stands_ms);
			dg_code_until(d, PROGRAM, from + 5 * k);
			dg_launch(d, PROGRAM, 1, 1);
		}
		dg_sync(d, PROGRAM, 1);
	}
	GEN_STACKS(&d->g->feed, schedules);
	struct tfh_result *r = dg_judge(d);
	const double *s = r->found.compiling.s;
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
	assert_true(s[TFH_SEGMENT_TRAIN] + s[TFH_SEGMENT_BETWEEN] == 0);
	tfh_result_free(r);
}

enum { BACKWARD = 1 };

/* A job on the CPU, of which every tenth step has another shape: its forward pass compiles for 100 ms, and its backward pass, a call,
 * for 200 ms before it computes. Samples inside the call show that, and at which line. */
static void test_backward(void **state)
{
	(void)state;
	struct gen *g = gen_new();
	double t = 100;

	stacks[7][0].file = stacks[8][0].file = COMPILER;
	g->name[TFT_NAME_OP][BACKWARD] = "__inference_backward_1";
	for (int i = 0; i < 120; i++) {
		bool compiles = i % 10 == 9;
		gen_get(g, 0, 1, 0, t, t + 0.1)->depth = 0;
		double from = t + 0.1 + (compiles ? 100 : 0),
		       until = from + 9 + (compiles ? 200 : 0);
		for (int k = 0; k < 10 && compiles; k++) {
			gen_sample(g, 0, t + 5 + 9 * k, TFT_STATE_RUNNING, 7, 10);
			gen_sample(g, 0, from + 5 + 19 * k, TFT_STATE_RUNNING, 8, 20)->w[1] |=
				(uint64_t)TFH_FN_TFE_Execute << 16;
		}
		gen_exec(g, BACKWARD, from, until);
		t = until + 0.1;
	}
	g->process.has_gpu = false; /* samples are calls of no library */
	GEN_STACKS(&g->feed, stacks);
	struct tfh_result *r = gen_judge(g);
	gen_closed(r);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_COMPILE);
	assert_true(fabs(1e3 * r->found.cause_s[TFH_CAUSE_HOST_COMPILE] - 30) < 3);
	assert_int_equal(r->found.line.line, 13);
	assert_true(fabs(1e3 * r->found.line.s_per_step - 20) < 2);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compiler),      cmocka_unit_test(test_other_work),
		cmocka_unit_test(test_between_steps), cmocka_unit_test(test_within),
		cmocka_unit_test(test_evaluates),     cmocka_unit_test(test_scheduling),
		cmocka_unit_test(test_backward),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
