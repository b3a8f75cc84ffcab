/* XLA's programs are the steps, however few calls of the driver they make: the program that takes most of the time counts, and
 * neither what the autotuner tries on threads of its own nor small programs that make the weights. A program that is compiled
 * again for each shape is one program. One that runs the whole training in a few calls shows no steps. */
#include "../analyze_gen.h"

enum { STEP = 1, AGAIN = 20, CONVERT, WEIGHTS, TRIED, ELSE };

static void range(struct gen *g, uint32_t thread, uint32_t name, double t0, double t1)
{
	struct tfh_event *ev = gen_call(g, thread, TFH_FN_cuLaunchKernel, t0, t1);

	ev->kind = TFT_RANGE;
	ev->w[0] = name;
}

static void launch(struct gen *g, uint32_t thread, enum tfh_fn fn, double at, uint32_t what)
{
	struct tfh_event *ev = gen_call(g, thread, fn, at, at + 0.01);

	ev->w[0] = what;
	ev->w[2] = 28; /* of a graph: its kernels */
}

static struct gen *job(void)
{
	static char step[20][64];
	struct gen *g = gen_new();
	const char **name = g->name[TFT_NAME_STRING];

	for (int i = 0; i < 19; i++) {
		snprintf(step[i], sizeof(step[i]),
			 "TSL: XlaModule:#hlo_module=jit_step,program_id=%d#", 7 + i);
		name[STEP + i] = step[i];
	}
	name[CONVERT] = "TSL: XlaModule:#hlo_module=jit_convert_element_type,program_id=3#";
	name[WEIGHTS] = "TSL: XlaModule:#hlo_module=jit_broadcast_in_dim,program_id=1#";
	name[TRIED] = "TSL: XlaModule:#hlo_module=gemm_fusion_dot.1#";
	name[ELSE] = "TSL: Thunk:#name=jit(step)/dot_general,hlo_op=custom-call.9#";
	for (int i = 0; i < 6; i++) {
		range(g, 0, WEIGHTS, 100 + i, 100.1 + i);
		launch(g, 0, TFH_FN_cuLaunchKernel, 100.05 + i, 70);
	}
	/* The autotuner: each of its threads copies a little, launches, waits. */
	for (int i = 0; i < 600; i++) {
		uint32_t thread = 2 + (uint32_t)i % 5;
		double at = 110 + i;
		range(g, thread, TRIED, at, at + 0.9);
		if (i % 100 < 5)
			gen_call(g, thread, TFH_FN_cuMemcpyHtoDAsync_v2, at, at + 0.01)->w[0] =
				10000;
		launch(g, thread, TFH_FN_cuLaunchKernel, at + 0.1, 100 + (uint32_t)i / 100);
		for (uint32_t k = 0; k < 9; k++)
			launch(g, thread, TFH_FN_cuLaunchKernel, at + 0.2 + 0.01 * k,
			       200 + (uint32_t)i % 7);
		gen_call(g, thread, TFH_FN_cuStreamSynchronize, at + 0.3, at + 0.8);
	}
	return g;
}

/* Steps of 10 ms: a copy by another thread, a small program, the step's graph. */
static void steps(struct gen *g, int n, int shapes)
{
	for (int i = 0; i < n; i++) {
		double at = 1000 + 10 * i;
		gen_call(g, 1, TFH_FN_cuMemcpyHtoDAsync_v2, at - 0.1, at - 0.05)->w[0] = 1 << 26;
		range(g, 0, CONVERT, at, at + 0.1);
		launch(g, 0, TFH_FN_cuLaunchKernel, at + 0.05, 71);
		range(g, 0, STEP + (uint32_t)(i % shapes), at + 1, at + 2);
		range(g, 0, ELSE, at + 1.1, at + 1.2);
		launch(g, 0, TFH_FN_cuGraphLaunch, at + 1.5, 5 + (uint32_t)(i % shapes));
	}
}

static void expect(struct gen *g, uint64_t n, const char *name)
{
	struct tfh_result *r = gen_judge(g);

	assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_EXEC);
	assert_string_equal(r->steps.clock_name, name);
	assert_int_equal(r->steps.total, n);
	/* The thread that executes programs makes the steps' time, however few of the launches. */
	assert_true(r->breakdown[TFH_PART_LAUNCH].s_per_step > 0.01e-3);
	const struct tfh_part_of_run *loop = NULL;
	for (uint32_t i = 0; i < r->n_tree; i++)
		if (r->tree[i].kind >= TFH_BRANCH_TRAIN &&
		    (!loop || r->tree[i].count > loop->count))
			loop = &r->tree[i];
	assert_non_null(loop);
	assert_string_equal(loop->name, name);
	assert_int_equal(loop->count, n);
	tfh_result_free(r);
}

static void test_steps(void **state)
{
	(void)state;
	struct gen *g = job();

	steps(g, 60, 1);
	expect(g, 60, "jit_step");
}

static void test_compiled_again(void **state)
{
	(void)state;
	struct gen *g = job();

	steps(g, 60, 19);
	expect(g, 60, "jit_step");
}

/* Two calls that take most of the time, and a small program that ran before. */
static void test_whole(void **state)
{
	(void)state;
	struct gen *g = job();

	for (int i = 0; i < 2; i++) {
		range(g, 0, STEP, 1000 + 500 * i, 1400 + 500 * i);
		for (int k = 0; k < 50; k++)
			launch(g, 0, TFH_FN_cuGraphLaunch, 1000 + 500 * i + 8 * k, 5);
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_not_equal(r->steps.clock, TFH_STEP_CLOCK_EXEC);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_compiled_again),
		cmocka_unit_test(test_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
