/* What must hold: if a program launches the same few kernels by turns and seldom waits to look at a result, each turn is a step.
 * If it waits far more often than there are turns between two waits, or if the turns are short or have grids of their own, they
 * are a loop inside a step. A first series of steps whose beginning differs, since it makes weights, has its other steps all the same.
 * Samples that are drawn after every fourth look, from numbers that are sent, are no steps; a solver's iterations on what is sent
 * are parts of a step. Where many steps each send a batch, a few passes over data on the device after them are not the steps. */
#include "../analyze_gen.h"

static double t;

static void launch(struct gen *g, uint64_t function, uint64_t grid)
{
	struct tfh_event *ev = gen_call(g, 0, TFH_FN_cuLaunchKernel, t, t + 0.01);

	ev->w[0] = function;
	ev->w[1] = grid;
	t += 0.02;
}

static void look(struct gen *g, double ms)
{
	gen_call(g, 0, TFH_FN_cuMemcpyDtoH_v2, t, t + ms)->w[0] = 4;
	t += ms + 1;
}

static uint64_t judged(struct gen *g)
{
	struct tfh_result *r = gen_judge(g);
	uint64_t steps = r->steps.total;

	tfh_result_free(r);
	return steps;
}

static uint64_t steps_of(int looks, int turns, int grids, double ms)
{
	struct gen *g = gen_new();

	t = 100;
	for (int i = 0; i < looks; i++) {
		for (int k = 0; k < turns; k++) {
			launch(g, 1, 64u >> k % grids);
			launch(g, 2, 64u >> k % grids);
		}
		look(g, turns * ms);
	}
	return judged(g);
}

static void test_few_looks(void **state)
{
	(void)state;
	assert_in_range(steps_of(12, 100, 1, 5), 1199, 1201);
	assert_in_range(steps_of(12, 10, 1, 5), 119, 121);
}

static void test_loop_inside(void **state)
{
	(void)state;
	assert_int_equal(steps_of(300, 10, 1, 5), 300);
	assert_int_equal(steps_of(700, 40, 1, 5), 700);
	assert_int_equal(steps_of(12, 10, 5, 5), 12);
	assert_int_equal(steps_of(12, 100, 1, 0.1), 12);
}

static void test_odd_first(void **state)
{
	static const int series[] = {48, 50, 20};
	struct gen *g = gen_new();

	(void)state;
	t = 100;
	for (uint64_t k = 0; k < 300; k++)
		launch(g, 100 + k, 1);
	for (size_t i = 0; i < 3; i++) {
		for (int n = 0; n < series[i]; n++)
			for (uint64_t k = 1; k <= 20; k++)
				launch(g, k, 64);
		look(g, 2);
	}
	assert_in_range(judged(g), 117, 119);
}

static void send(struct gen *g)
{
	gen_copy(g, TFH_FN_cuMemcpyHtoDAsync_v2, t, t + 0.02, 4096, false);
	t += 0.03;
}

static void turns(struct gen *g, int n)
{
	for (int i = 0; i < n; i++)
		for (uint64_t k = 1; k <= 10; k++)
			launch(g, k, 64);
	look(g, n * 5);
}

static void test_samples_between(void **state)
{
	struct gen *g = gen_new();

	(void)state;
	t = 100;
	send(g);
	for (int i = 1; i <= 20; i++) {
		turns(g, 25);
		for (int k = 0; k < 5 && i % 4 == 0; k++) {
			send(g);
			launch(g, 11, 64);
			launch(g, 12, 64);
		}
		if (i % 4 == 0)
			look(g, 1);
	}
	assert_int_equal(judged(g), 500);
}

static void test_iterations_on_batch(void **state)
{
	struct gen *g = gen_new();

	(void)state;
	t = 100;
	for (int i = 0; i < 20; i++) {
		if (i % 4 == 0)
			send(g);
		turns(g, 25);
	}
	assert_int_equal(judged(g), 5);
}

/* Training sends a batch for each step, and waits at its end; evaluation has its data there. */
static void test_evaluated_in_the_end(void **state)
{
	struct gen *g = gen_new();

	(void)state;
	t = 100;
	for (int i = 0; i < 200; i++) {
		send(g);
		for (uint64_t k = 21; k <= 40; k++)
			launch(g, k, 64);
		t += 5;
	}
	for (int i = 0; i < 8; i++)
		turns(g, 5);
	assert_in_range(judged(g), 199, 201);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_few_looks),
					   cmocka_unit_test(test_loop_inside),
					   cmocka_unit_test(test_odd_first),
					   cmocka_unit_test(test_samples_between),
					   cmocka_unit_test(test_iterations_on_batch),
					   cmocka_unit_test(test_evaluated_in_the_end)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
