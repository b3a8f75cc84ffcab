/* Slices of a run that are judged side by side give what one thread finds: every step with its parts, class and cause, every
 * prediction, bit for bit, however many threads judge. The job has several slices, and much that crosses their borders: copies
 * ahead of the step on a stream of their own, events, a second thread that launches, waits of all kinds, stalls. */
#include "../devgen.h"

#define STEPS 330 /* ten slices */

static uint32_t seed;

static double chance(double most)
{
	seed = seed * 1664525u + 1013904223u;
	return most * (double)(seed >> 8) / (double)(1u << 24);
}

/* A job that is the same for the same number. */
static struct dg *job(uint32_t number)
{
	struct dg *d = dg_new();

	seed = number;
	for (int i = 0; i < STEPS; i++) {
		dg_get(d, 0, chance(i % 7 ? 0.3 : 3));
		dg_copy(d, 0, 2, TFH_DIR_H2D, 1 << 20, 0.2 + chance(0.6));
		dg_record(d, 0, 1, 2);
		/* Every other slice has much more to judge: the one after it is done first. */
		for (int k = 0; k < (i / 32 % 2 ? 6 : 60); k++) {
			if (k == 2)
				dg_wait(d, 0, 1, 1);
			dg_code(d, 0, chance(0.1));
			dg_launch(d, 0, 1, chance(i / 32 % 2 ? 0.5 : 0.05));
		}
		/* The names of these streams are learned late in the run. */
		if (i > STEPS / 2) {
			dg_code_until(d, 1, d->now[0]);
			dg_launch(d, 1, 3 + (uint32_t)i / 70, chance(0.3));
			dg_record(d, 1, 2, 3 + (uint32_t)i / 70);
			dg_wait(d, 0, 1, 2);
		}
		dg_launch(d, 0, 1, 0.2);
		/* How long threads take to wake up is known after several slices only. */
		if (i % 16 == 0)
			dg_sync(d, 0, 1);
		else if (i % 16 == 8)
			dg_code_until(d, 0, d->end[1] + 0.002), dg_sync(d, 0, 1);
		else if (i % 3 == 1)
			dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 4, 0.01);
		dg_code(d, 0, i % 97 == 96 ? 40 : chance(0.4));
	}
	return d;
}

static struct tfh_result *judged(uint32_t number, uint32_t threads)
{
	struct dg *d = job(number);

	d->g->feed.judging = threads;
	return dg_judge(d);
}

static void same_steps(const struct tfh_result *a, const struct tfh_result *b)
{
	assert_int_equal(a->n_step, b->n_step);
	for (size_t i = 0; i < a->n_step; i++) {
		const struct tfh_step *x = &a->step[i], *y = &b->step[i];
		assert_memory_equal(&x->dur_s, &y->dur_s, sizeof(x->dur_s));
		assert_memory_equal(x->breakdown, y->breakdown, sizeof(x->breakdown));
		assert_int_equal(x->tier, y->tier);
		assert_int_equal(x->cls, y->cls);
		assert_int_equal(x->cause, y->cause);
		assert_int_equal(x->segment, y->segment);
	}
}

static void same_predictions(const struct tfh_result *a, const struct tfh_result *b)
{
	assert_int_equal(a->n_whatif, b->n_whatif);
	for (uint32_t i = 0; i < a->n_whatif; i++) {
		assert_int_equal(a->whatif[i].remove, b->whatif[i].remove);
		assert_memory_equal(&a->whatif[i].step_s, &b->whatif[i].step_s, sizeof(double));
		assert_memory_equal(&a->whatif[i].saved_s, &b->whatif[i].saved_s, sizeof(double));
	}
	assert_memory_equal(a->need_s, b->need_s, sizeof(a->need_s));
	assert_memory_equal(a->xprof, b->xprof, sizeof(a->xprof));
}

static void test_same(void **state)
{
	static const uint32_t threads[] = {2, 3, 7};

	(void)state;
	for (uint32_t number = 1; number <= 5; number++) {
		struct tfh_result *one = judged(number, 1);
		assert_int_equal(one->verdict.tier, 'A');
		assert_true(one->n_step > STEPS / 2);
		for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++) {
			struct tfh_result *more = judged(number, threads[i]);
			same_steps(one, more);
			same_predictions(one, more);
			tfh_result_free(more);
		}
		tfh_result_free(one);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_same)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
