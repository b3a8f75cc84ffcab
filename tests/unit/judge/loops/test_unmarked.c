/* A few steps that an optimizer ends do not hide a much longer loop without an optimizer: its iterations are the steps. Iterations
 * of layers are steps as a whole, also if one differs, and epochs are not. How evenly the host launches them does not matter. A shorter loop changes nothing. A
 * loop that only copies, before the first step, is start-up. */
#include "../analyze_gen.h"

enum { UPDATE = 1 };

struct job {
	struct gen *g;
	double now;
};

static void kernel(struct job *j, uint32_t what)
{
	gen_call(j->g, 0, TFH_FN_cuLaunchKernel, j->now, j->now + 0.005)->w[0] = what;
	j->now += 0.01;
}

static void fetch(struct job *j)
{
	gen_copy(j->g, TFH_FN_cuMemcpyDtoHAsync_v2, j->now, j->now + 0.003, 4, false);
	gen_call(j->g, 0, TFH_FN_cuStreamSynchronize, j->now + 0.003, j->now + 0.01);
	j->now += 0.02;
}

static void train(struct job *j, int steps)
{
	for (int i = 0; i < steps; i++) {
		double t0;
		for (uint32_t k = 0; k < 40; k++)
			kernel(j, 10 + k % 4);
		for (uint32_t k = 0; k < 80; k++)
			kernel(j, 20 + k % 6);
		t0 = j->now;
		for (uint32_t k = 0; k < 10; k++)
			kernel(j, 30);
		struct tfh_event *ev = gen_call(j->g, 0, TFH_FN_cuLaunchKernel, t0, j->now);
		ev->kind = TFT_RANGE;
		ev->w[0] = UPDATE;
	}
}

static struct job job_new(int marked)
{
	struct job j = {gen_new(), 100};

	j.g->name[TFT_NAME_STRING][UPDATE] = "Optimizer.step#SGD.step";
	for (int i = 0; i < 40; i++) { /* the weights */
		gen_copy(j.g, TFH_FN_cuMemcpyHtoDAsync_v2, j.now, j.now + 5, 1 << 24, true);
		gen_call(j.g, 0, TFH_FN_cuStreamSynchronize, j.now + 5, j.now + 6);
		j.now += 7;
	}
	kernel(&j, 90);
	j.now += 200; /* its first step loads kernels */
	train(&j, marked);
	gen_call(j.g, 0, TFH_FN_cuCtxSynchronize, j.now, j.now + 1);
	j.now += 2;
	return j;
}

static void expect(struct job *j, enum tfh_step_clock clock, uint64_t n, uint64_t off,
		   uint64_t in_tree)
{
	struct tfh_result *r = gen_judge(j->g);
	uint64_t most = 0;

	assert_int_equal(r->steps.clock, clock);
	assert_in_range(r->steps.total, n, n + off);
	for (uint32_t i = 0; i < r->n_tree; i++) {
		assert_false(r->tree[i].kind >= TFH_BRANCH_TRAIN &&
			     r->tree[i].count == 40); /* copying the weights is start-up */
		if (r->tree[i].kind >= TFH_BRANCH_TRAIN && r->tree[i].count > most)
			most = r->tree[i].count;
	}
	if (in_tree)
		assert_in_range(most, in_tree, in_tree + 1); /* a first part of an iteration */
	tfh_result_free(r);
}

/* After each of forty layers a value is read; in one step, one layer launches another kernel. */
static void layers(struct job *j, int steps, int odd)
{
	for (int i = 0; i < steps; i++) {
		for (int layer = 0; layer < 40; layer++) {
			for (uint32_t k = 0; k < 4; k++)
				kernel(j, 40 + k);
			if (i == odd && layer == 20)
				kernel(j, 99);
			fetch(j);
		}
		for (uint32_t k = 0; k < 5; k++)
			kernel(j, 50 + k);
		fetch(j);
	}
}

static void test_layers(void **state)
{
	(void)state;
	struct job j = job_new(5);

	layers(&j, 200, -1);
	expect(&j, TFH_STEP_CLOCK_PERIOD, 200, 0, 200);
}

static void test_odd_layer(void **state)
{
	(void)state;
	struct job j = job_new(5);

	layers(&j, 200, 100);
	expect(&j, TFH_STEP_CLOCK_PERIOD, 200, 1, 0);
}

static void test_epochs(void **state)
{
	(void)state;
	struct job j = job_new(5);

	for (int epoch = 0; epoch < 3; epoch++) {
		for (int i = 0; i < 100; i++) {
			gen_copy(j.g, TFH_FN_cuMemcpyHtoDAsync_v2, j.now, j.now + 0.01, 100000,
				 false);
			j.now += 0.01;
			for (uint32_t k = 0; k < 30; k++)
				kernel(&j, 40 + k % 5);
			fetch(&j);
		}
		kernel(&j, 60);
		fetch(&j);
	}
	expect(&j, TFH_STEP_CLOCK_PERIOD, 300, 0, 300);
}

/* Before each third wait for the device, the host launches two steps at once. */
static void test_ahead(void **state)
{
	(void)state;
	struct job j = job_new(5);

	for (int i = 0; i < 300; i++) {
		gen_copy(j.g, TFH_FN_cuMemcpyDtoDAsync_v2, j.now, j.now + 0.01, 100000, false);
		j.now += 0.01;
		for (uint32_t k = 0; k < 30; k++)
			kernel(&j, 40 + k % 5);
		j.now += i % 3 ? 3 : 0;
	}
	expect(&j, TFH_STEP_CLOCK_PERIOD, 299, 2, 0);
}

static void test_shorter(void **state)
{
	(void)state;
	struct job j = job_new(100);

	layers(&j, 10, -1);
	expect(&j, TFH_STEP_CLOCK_MARK, 100, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers),	cmocka_unit_test(test_odd_layer),
		cmocka_unit_test(test_epochs),	cmocka_unit_test(test_ahead),
		cmocka_unit_test(test_shorter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
