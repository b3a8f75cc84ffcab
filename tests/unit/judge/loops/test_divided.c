/* What must hold: where the program's loop has many steps for each wait, and device times are known,
 * each step has its own time: what is done once before many of them is told as once a round, not as a
 * delay of every step. Without device times they share the time up to the wait. A loop that launches something more in some iterations
 * between two waits has as many steps as iterations, unless that may be the end of a step of several parts. */
#include "../devgen.h"

#include "format/sample_loops.h"

enum { ROUNDS = 8, EACH = 40, HOST = 50 };

static const gen_stack stacks[] = {
	[1] = {{"shots.py", "shot", 12, false}, {"shots.py", "main", 30, false}}};
static struct tfh_packed_loops packed[2 * ROUNDS * EACH];
static size_t used;

static void look(struct dg *d, uint64_t step, uint64_t round)
{
	const struct tft_loop loop[] = {{1, true, round, ROUNDS - round + 1, 0},
					{2, true, step, EACH - step + 1, 0}};
	struct tfh_packed_loops *p = &packed[used++];

	p->bytes = (uint8_t)tft_loops_pack(loop, step ? 2 : 1, p->byte);
	gen_sample(d->g, 0, d->now[0] + DG_CALL / 2, TFT_STATE_RUNNING, 1, step ? 0.1 : HOST)
		->loops = p;
}

/* Rounds that begin with host code and a copy of its results, of steps with three kernels each. */
static struct tfh_result *judged(bool timed)
{
	struct dg *d = dg_new();

	used = 0;
	GEN_STACKS(&d->g->feed, stacks);
	d->g->process.clean_end = true;
	for (uint64_t r = 1; r <= ROUNDS; r++) {
		dg_code(d, 0, HOST / 2);
		look(d, 0, r);
		dg_code(d, 0, HOST / 2);
		dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 900000, 0.1);
		for (uint64_t i = 1; i <= EACH; i++) {
			if (i % 5 == 1)
				look(d, i, r);
			for (uint64_t k = 1; k <= 3; k++) {
				dg_launch(d, 0, 1, 0.4);
				d->g->ev[d->g->n - 1].w[0] = k;
			}
		}
		dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 120000, 0.02);
	}
	d->n = timed ? d->n : 0;
	d->gpu.n_span = !timed;
	return dg_judge(d);
}

static void test_once_a_round(void **state)
{
	struct tfh_result *r = judged(true);

	(void)state;
	assert_int_equal(r->steps.total, ROUNDS * EACH);
	assert_int_equal(r->steps.rounds, ROUNDS);
	assert_int_equal(r->steps.per_round, EACH);
	assert_int_equal(r->found.slow.every, EACH);
	assert_in_range(r->found.slow.longer_s * 1e3, HOST - 1, HOST + 1);
	assert_in_range(r->step[EACH + 5].dur_s * 1e6, 1100, 1300);
	assert_in_range(r->step[2 * EACH].dur_s * 1e3, HOST, HOST + 2);
	assert_int_equal(r->pattern.kind[0].launches, 3);
	assert_int_equal(r->verdict.cls, TFH_CLASS_HOST_BOUND);
	assert_int_not_equal(r->verdict.confidence, TFH_CONFIDENCE_LOW);
	tfh_result_free(r);
}

static void test_without_times(void **state)
{
	struct tfh_result *r = judged(false);

	(void)state;
	assert_int_equal(r->steps.total, ROUNDS * EACH);
	assert_int_equal(r->steps.rounds, 0);
	assert_in_range(r->step[EACH + 5].dur_s * 1e6, 2400, 2500);
	tfh_result_free(r);
}

/* A loop of four kernels that waits in each 40th iteration. Others, of that name, are launched before each `every`-th one. */
static uint64_t iterations(uint64_t every, const char *name)
{
	struct dg *d = dg_new();

	used = 0;
	GEN_STACKS(&d->g->feed, stacks);
	d->g->name[TFT_NAME_FUNCTION][9] = name;
	for (uint64_t i = 0; i < (uint64_t)ROUNDS * EACH; i++) {
		const struct tft_loop loop = {1, true, i + 1, (uint64_t)ROUNDS * EACH - i, 0};
		struct tfh_packed_loops *p = &packed[used++];
		p->bytes = (uint8_t)tft_loops_pack(&loop, 1, p->byte);
		gen_sample(d->g, 0, d->now[0], TFT_STATE_RUNNING, 1, 0.01)->loops = p;
		for (uint64_t k = i % every ? 1 : 0; k <= 4; k++) {
			dg_launch(d, 0, 1, 0.4);
			d->g->ev[d->g->n - 1].w[0] = k ? k : 9;
		}
		if (i % EACH != EACH - 1)
			continue;
		dg_launch(d, 0, 1, 0.1);
		d->g->ev[d->g->n - 1].w[0] = 8;
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	uint64_t steps = r->steps.total;
	tfh_result_free(r);
	return steps;
}

static void test_more_in_some(void **state)
{
	(void)state;
	assert_int_equal(iterations(10, "neighbours"), ROUNDS * EACH);
	assert_int_equal(iterations(10, "adam"), ROUNDS); /* accumulated gradients */
	assert_int_equal(iterations(EACH, "neighbours"), ROUNDS);
	assert_int_equal(iterations(2, "neighbours"), ROUNDS); /* too many */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once_a_round),
		cmocka_unit_test(test_without_times),
		cmocka_unit_test(test_more_in_some),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
