/* What must hold: if samples show the loop over steps, its iterations are the steps where the clock lost
 * one, found one outside of the loop, or saw only those that wait. Iterations that are micro-batches,
 * epochs or a library's, or whose number is not certain, do not change them. Where a variable of the program
 * counts them and their end is not known, those that were seen are the least that there were. A loop with
 * equally many steps in each iteration has rounds, if something else is done once in each; so has a library's where the program has none, also
 * if the last iteration was cut short. */
#include "../analyze_gen.h"

#include "format/sample_loops.h"

enum { PROGRAM = 1, LIBRARY };

static struct tfh_packed_loops packed[4096];
static size_t used;
static double t;
static uint8_t count; /* of the inner loop */
static bool open;     /* its end is not known */

static const gen_stack stacks[] = {
	[PROGRAM] = {{"train.py", "epoch", 12, false}, {"train.py", "main", 30, false}},
	[LIBRARY] = {{"lib/fit.py", "fit", 7, true}, {"train.py", "main", 30, false}},
};

static struct gen *job(void)
{
	struct gen *g = gen_new();

	GEN_STACKS(&g->feed, stacks);
	t = 100;
	used = 0;
	count = TFH_START_ITERATOR;
	open = false;
	return g;
}

/* A sample now: iteration `done` of `all` of the inner function's loop, and of the one around it. */
static void look(struct gen *g, uint32_t place, bool sure, uint64_t done, uint64_t all,
		 uint64_t outer, uint64_t outers)
{
	const struct tft_loop loop[] = {{1, sure, outer, outers - outer + 1, 0},
					{2, sure, done, open ? 0 : all - done + 1, count}};
	struct tfh_packed_loops *p = &packed[used++ % 4096];

	p->bytes = (uint8_t)tft_loops_pack(outers ? loop : loop + 1, outers ? 2 : 1, p->byte);
	gen_sample(g, 0, t, TFT_STATE_RUNNING, place, 2)->loops = p;
	t += 0.5;
}

static void launch(struct gen *g, uint64_t function)
{
	gen_call(g, 0, TFH_FN_cuLaunchKernel, t, t + 0.01)->w[0] = function;
	t += 0.02;
}

static void wait(struct gen *g)
{
	gen_call(g, 0, TFH_FN_cuStreamSynchronize, t, t + 8);
	t += 8.1;
}

static uint64_t judged(struct gen *g)
{
	struct tfh_result *r = gen_judge(g);
	uint64_t steps = r->steps.total;

	gen_closed(r);
	tfh_result_free(r);
	return steps;
}

/* Two kernels a step, a picture of every tenth, and a wait in every second one. */
static uint64_t waits_in_every_second(uint32_t place, int every)
{
	struct gen *g = job();

	for (uint64_t i = 1; i <= 420; i++) {
		if (every && i % (uint64_t)every == 1)
			look(g, place, true, i, 420, 0, 0);
		launch(g, 1);
		launch(g, 2);
		if (i % 10 == 0)
			launch(g, 3);
		if (i % 2 == 0)
			wait(g);
	}
	return judged(g);
}

static void test_some_wait(void **state)
{
	(void)state;
	assert_int_equal(waits_in_every_second(PROGRAM, 0), 210);
	assert_int_equal(waits_in_every_second(PROGRAM, 37), 420);
	assert_int_equal(waits_in_every_second(PROGRAM, 200), 210); /* too few samples */
	assert_int_equal(waits_in_every_second(LIBRARY, 37), 210);
}

/* Two micro-batches and as many updates: each kernel is launched twice, but not by turns. */
static void test_micro_batches(void **state)
{
	struct gen *g = job();

	(void)state;
	for (uint64_t i = 1; i <= 200; i++) {
		if (i % 9 == 1)
			look(g, PROGRAM, true, i, 200, 0, 0);
		launch(g, 1);
		launch(g, 2);
		for (int k = 0; k < 2 && i % 2 == 0; k++)
			launch(g, 3);
		if (i % 2 == 0)
			wait(g);
	}
	assert_int_equal(judged(g), 100);
}

/* A function is executed once before the loop, or not. */
static uint64_t executions(int before, uint64_t epochs, bool inner)
{
	struct gen *g = job();

	g->name[TFT_NAME_OP][1] = "__inference_score_12";
	for (int i = 0; i < before; i++, t += 3)
		gen_exec(g, 1, t, t + 2);
	for (uint64_t e = 1; e <= epochs; e++)
		for (uint64_t i = 1; i <= 25; i++, t += 3) {
			if (i % 4 == 1 && inner)
				look(g, PROGRAM, true, i, 25, e, epochs);
			else if (i % 4 == 1)
				look(g, PROGRAM, true, e, epochs, 0, 0);
			gen_exec(g, 1, t, t + 2);
		}
	return judged(g);
}

static void test_outside(void **state)
{
	(void)state;
	assert_int_equal(executions(0, 4, true), 100);
	assert_int_equal(executions(1, 4, true), 100);
	assert_int_equal(executions(2, 4, true), 100);
	assert_int_equal(executions(3, 4, true), 103);
	assert_int_equal(executions(1, 4, false), 101); /* only the epochs are known */
	assert_int_equal(executions(1, 8, false), 201);
}

/* Rounds of so many executions, each round after a pause. `more`: so many further ones in every second
 * round. Busy: another program delays every 7th one. `where`: the loop over rounds. `cut`: steps that the last one lacks; its end is not known
 * then. Returns the rounds; the steps do not depend on them. */
static uint64_t rounds_in(uint32_t where, uint64_t all, uint64_t each, uint64_t more, double pause,
			  bool busy, uint64_t cut)
{
	struct gen *g = job();
	struct tfh_result *r;
	uint64_t n = 0, rounds;

	g->name[TFT_NAME_OP][1] = "__inference_update_12";
	open = cut;
	count = open ? TFH_START_COUNTER : TFH_START_ITERATOR;
	for (uint64_t e = 1; e <= all; e++) {
		look(g, where, true, e, all, 0, 0);
		t += pause;
		for (uint64_t i = e == all ? cut : 0; i < each + more * (e & 1); i++, t += 3) {
			gen_exec(g, 1, t, t + 2);
			t += busy && ++n % 7 == 3 ? pause * 2 / 3 : 0;
		}
	}
	g->process.clean_end = true;
	r = gen_judge(g);
	assert_int_equal(r->steps.total, all * each + (all + 1) / 2 * more - cut);
	rounds = r->steps.rounds;
	assert_int_equal(r->steps.per_round, rounds ? each : 0);
	assert_true(!rounds || (r->found.slow.every == each && r->found.slow.n >= rounds - 2));
	tfh_result_free(r);
	return rounds;
}

static uint64_t rounds_of(uint64_t all, uint64_t each, uint64_t more, double pause, bool busy)
{
	return rounds_in(PROGRAM, all, each, more, pause, busy, 0);
}

static void test_rounds(void **state)
{
	(void)state;
	assert_int_equal(rounds_of(30, 8, 0, 60, false), 30);
	assert_int_equal(rounds_of(30, 8, 0, 60, true), 30);
	assert_int_equal(rounds_of(30, 8, 3, 60, false), 0);  /* unequal */
	assert_int_equal(rounds_of(30, 8, 0, 0.1, false), 0); /* nothing else is done in them */
	assert_int_equal(rounds_of(3, 80, 0, 60, false), 0);  /* too few to tell */
	assert_int_equal(rounds_in(LIBRARY, 30, 8, 0, 60, false, 0), 30);
	assert_int_equal(rounds_in(LIBRARY, 7, 40, 0, 300, false, 30), 6);
	assert_int_equal(rounds_in(PROGRAM, 7, 40, 0, 300, false, 30), 6);
}

/* The first one shows no launch. */
static void one_step(struct gen *g, uint64_t i)
{
	if (i == 1) {
		t += 100;
		return;
	}
	launch(g, 1);
	launch(g, 2);
	wait(g);
}

/* The first step is computed in another way, which shows no launch. `skip`: iterations that pass before
 * the first sample; `from`: the number with which the loop begins; `ends`: the job does, by itself. */
static uint64_t first_differs(bool sure, uint64_t skip, uint64_t from, bool ends)
{
	struct gen *g = job();

	g->process.clean_end = ends;
	for (uint64_t i = 1; i <= 60; i++) {
		if (i > skip && (i < 4 || i % 5 == 0))
			look(g, PROGRAM, sure, i + from, 60 + from, 0, 0);
		one_step(g, i);
	}
	return judged(g);
}

/* The same for a loop that a variable counts, up to sample `last`. */
static uint64_t counted(uint8_t by, bool ends, uint64_t last)
{
	struct gen *g = job();

	g->process.clean_end = true;
	count = by;
	open = !ends;
	for (uint64_t i = 1; i <= 60; i++) {
		if (i <= last && i % 5 == 0)
			look(g, PROGRAM, by == TFH_START_COUNTER || by == TFH_START_COUNTER_ON, i,
			     60, 0, 0);
		one_step(g, i);
	}
	return judged(g);
}

static void test_counted(void **state)
{
	(void)state;
	assert_int_equal(counted(TFH_START_COUNTER, true, 55), 60);
	assert_int_equal(counted(TFH_START_COUNTER_ON, true, 60), 60);
	assert_int_equal(counted(TFH_START_COUNTER, false, 60), 60);
	assert_int_equal(counted(TFH_START_COUNTER_ON, false, 60), 60);
	assert_int_equal(counted(TFH_START_COUNTER_ON, false, 55), 59);
	assert_int_equal(counted(TFH_START_COUNTER_FROM, true, 60), 59);
	assert_int_equal(counted(TFH_START_COUNTER_ON_FROM, false, 60), 59);
}

static void test_lost(void **state)
{
	(void)state;
	assert_int_equal(first_differs(true, 60, 0, true), 59);
	assert_int_equal(first_differs(true, 0, 0, true), 60);
	assert_int_equal(first_differs(true, 8, 0, true), 60);
	assert_int_equal(first_differs(true, 0, 0, false), 59);
	assert_int_equal(first_differs(false, 0, 0, true),
			 60); /* it was seen in its first iteration */
	assert_int_equal(first_differs(false, 8, 0, true), 59);
	/* range(1, 61) where Python does not tell where it began: 60 steps, not 61 */
	assert_int_equal(first_differs(false, 8, 1, true), 59);
}

/* Whatever a damaged file holds, the steps are those of the clock, or differ from them by two; or they
 * are as many as the iterations. */
static void test_damaged(void **state)
{
	static const uint64_t edge[] = {0,   1,	  2,	      24,	  25,
					100, 101, 1ull << 31, 1ull << 32, 1ull << 48};
	uint64_t seed = 88172645463325252ull;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct gen *g = job();
		int width = round % 10 + 1;
		for (int i = 0; i < 100; i++) {
			struct tfh_packed_loops *p = &packed[used++ % 4096];
			struct tft_loop loop[TFT_LOOPS];
			for (uint32_t k = 0; k < TFT_LOOPS; k++) {
				uint64_t x = seed =
					seed * 6364136223846793005ull + 1442695040888963407ull;
				loop[k] = (struct tft_loop){
					(uint32_t)(x >> 60) % 4 + 1, x >> 40 & 1,
					(int)(x >> 50) % 16 < width ? edge[(x >> 33) % 10]
								    : (uint64_t)i,
					(int)(x >> 46) % 16 < width ? edge[(x >> 37) % 10]
								    : (uint64_t)(101 - i),
					(uint8_t)(x >> 55 & 7)};
			}
			p->bytes =
				(uint8_t)tft_loops_pack(loop, (uint32_t)(seed >> 62) + 1, p->byte);
			if (seed >> 45 & 1)
				p->byte[seed >> 40 & 7] ^= (uint8_t)(seed >> 33);
			gen_sample(g, 0, t, TFT_STATE_RUNNING, (uint32_t)(seed >> 30 & 1) + 1, 2)
				->loops = p;
			t += 0.5;
			launch(g, 1);
			launch(g, 2);
			wait(g);
		}
		g->process.clean_end = round & 1;
		assert_in_range(judged(g), 1, 400);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_some_wait), cmocka_unit_test(test_micro_batches),
		cmocka_unit_test(test_outside),	  cmocka_unit_test(test_lost),
		cmocka_unit_test(test_counted),	  cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_rounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
