/* Parts of a step that streams of their own compute, and each of which is waited for at its end, are one step; a series of steps
 * before one wait stays a series. If a function is made anew in each epoch, its first execution, launched kernel by kernel, is a
 * step like those that launch the graph. In the run's tree, the loop that has as many iterations as there are steps is that of the
 * steps, whatever repeats inside them, and the calls that release what a process used are not part of its last step. Threads that do the same work
 * side by side make steps of their own. A copy and a kernel for each of several tables are no steps if only what follows them is waited
 * for, and has much of the device's time. */
#include "../devgen.h"

#define STEPS 100

static double t;

static void call(struct gen *g, enum tfh_fn fn, uint64_t w0)
{
	gen_call(g, 0, fn, t, t + 0.01)->w[0] = w0;
	t += 0.02;
}

static void part(struct gen *g)
{
	call(g, TFH_FN_cuMemcpyHtoDAsync_v2, 8192);
	for (uint64_t k = 1; k <= 6; k++)
		call(g, TFH_FN_cuLaunchKernel, k);
	call(g, TFH_FN_cuMemcpyDtoHAsync_v2, 4);
}

static uint64_t steps_with(int waits)
{
	struct gen *g = gen_new();

	t = 100;
	for (int i = 0; i < STEPS; i++) {
		part(g);
		part(g);
		for (int k = 0; k < waits; k++) {
			gen_call(g, 0, TFH_FN_cuStreamSynchronize, t, t + 1);
			t += 1.01;
		}
	}
	struct tfh_result *r = gen_judge(g);
	uint64_t steps = r->steps.total;
	tfh_result_free(r);
	return steps;
}

static void test_streams(void **state)
{
	(void)state;
	assert_int_equal(steps_with(2), STEPS);
	assert_int_equal(steps_with(1), 2 * STEPS);
}

/* Threads of a pool take what there is to do, one of them at a time, several pieces in a row. */
static void test_workers(void **state)
{
	(void)state;
	struct gen *g = gen_new();
	unsigned random = 1, thread = 0, left = 0;

	t = 100;
	for (int i = 0; i < 400; i++) {
		if (!left--) {
			random = random * 1103515245 + 12345;
			thread = (thread + 1) % 3;
			left = random >> 16 & 7;
		}
		for (uint64_t k = 1; k <= 3; k++, t += 0.02)
			gen_call(g, thread, TFH_FN_cuLaunchKernel, t, t + 0.01)->w[0] = k;
		gen_call(g, thread, TFH_FN_cuStreamSynchronize, t, t + 1);
		t += 1.02;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 400);
	gen_closed(r);
	tfh_result_free(r);
}

/* A batch, its launches, a wait, and the loss. */
static void step(struct gen *g, bool graph)
{
	call(g, TFH_FN_cuMemcpyHtoD_v2, 8192);
	for (uint64_t k = 1; k <= 120 && !graph; k++)
		call(g, TFH_FN_cuLaunchKernel, k);
	if (graph) {
		struct tfh_event *ev = gen_call(g, 0, TFH_FN_cuGraphLaunch, t, t + 0.05);
		ev->w[2] = 120;
		t += 0.06;
	}
	gen_call(g, 0, TFH_FN_cuCtxSynchronize, t, t + 2);
	t += 2.01;
	call(g, TFH_FN_cuMemcpyDtoH_v2, 4);
}

static void test_made_anew(void **state)
{
	(void)state;
	struct gen *g = gen_new();

	t = 100;
	for (int epoch = 0; epoch < 12; epoch++)
		for (int i = 0; i < 8; i++)
			step(g, i > 0);
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 96);
	tfh_result_free(r);
}

static const struct tfh_part_of_run *only(const struct tfh_result *r, enum tfh_branch kind)
{
	const struct tfh_part_of_run *found = NULL;

	for (uint32_t i = 1; i < r->n_tree; i++)
		if (r->tree[i].kind == kind) {
			assert_null(found);
			found = &r->tree[i];
		}
	return found;
}

/* What follows the last loop is the run's end, also if something is called in it. */
static void test_ended(void **state)
{
	(void)state;
	struct gen *g = gen_new();

	t = 100;
	for (int i = 0; i < STEPS; i++) {
		part(g);
		call(g, TFH_FN_cuLaunchKernel, 7);
		call(g, TFH_FN_cuMemcpyDtoH_v2, 4);
	}
	double end = t;
	t += 2000;
	call(g, TFH_FN_cuCtxSynchronize, 1);
	g->feed.end_ns = gen_ns(t + 500);
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, STEPS);
	assert_null(only(r, TFH_BRANCH_BETWEEN));
	assert_true(only(r, TFH_BRANCH_AFTER)->wall_s >= 2.5);
	assert_true(fabs(only(r, TFH_BRANCH_AFTER)->begin_s - end * 1e-3) < 0.02);
	tfh_result_free(r);
}

/* Each step logs ten values, each computed and read by itself. */
static void test_logged(void **state)
{
	(void)state;
	struct gen *g = gen_new();

	t = 100;
	for (int i = 0; i < STEPS; i++) {
		part(g);
		for (int k = 0; k < 10; k++) {
			call(g, TFH_FN_cuLaunchKernel, 7);
			call(g, TFH_FN_cuMemcpyDtoH_v2, 4);
		}
	}
	double end = t;
	t += 2000;
	call(g, TFH_FN_cuModuleUnload, 1);
	g->feed.end_ns = gen_ns(t);
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, STEPS);
	const struct tfh_part_of_run *steps = only(r, TFH_BRANCH_STEP);
	assert_non_null(steps);
	assert_int_equal(steps->count, STEPS);
	assert_true(fabs(steps->wall_s - (end - 100) * 1e-3) < 0.001);
	assert_true(only(r, TFH_BRANCH_AFTER)->wall_s >= 2);
	tfh_result_free(r);
}

static void kernel(struct dg *d, uint64_t name, double ms)
{
	dg_launch(d, 0, 1, ms);
	d->g->ev[d->g->n - 1].w[0] = name;
}

/* Copies and kernels of 24 tables, then other kernels and the only wait. */
static uint64_t steps_of_tables(double rest_ms)
{
	struct dg *d = dg_new();

	for (int i = 0; i < STEPS; i++) {
		for (int k = 0; k < 24; k++) {
			dg_copy(d, 0, 1, TFH_DIR_H2D, 8192, 2 * US);
			kernel(d, 1, 10 * US);
		}
		for (uint64_t k = 2; k <= 5; k++)
			kernel(d, k, rest_ms / 4);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	uint64_t steps = r->steps.total;
	tfh_result_free(r);
	return steps;
}

static void test_tables(void **state)
{
	(void)state;
	assert_int_equal(steps_of_tables(0.2), STEPS);
	assert_int_equal(steps_of_tables(8 * US), 24 * STEPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams),	  cmocka_unit_test(test_workers),
		cmocka_unit_test(test_made_anew), cmocka_unit_test(test_logged),
		cmocka_unit_test(test_ended),	  cmocka_unit_test(test_tables)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
