/* What must hold of a run in which no call was recorded: its steps are the iterations of the loop of Python that the samples show,
 * counted exactly where iterators know how many are left, also in epochs of which no sample is left; a loop in a function that a
 * library calls, a few passes of each iteration, and very short iterations are parts of steps; a loop that is left early counts
 * as far as it came; loops that follow each other in a function are two; a loop inside of one that no iterator shows has no
 * steps that could be counted; a program without a loop that calls a library's has the steps of that one. What an outer loop waits
 * for belongs to the inner one that has queued it (JAX), as far as the pace of the inner one, while it waits itself, allows; the
 * rest of the outer one is time between loops. Compiling in all iterations belongs to them; in a few of them
 * it is a part of the run of its own, with the line that compiles. */
#include "sampled_job.h"

/* 6 epochs of 25 steps of 20 ms; of the fourth epoch there is no sample. */
static void epochs(bool known)
{
	for (uint32_t e = 1; e <= 6; e++)
		for (uint32_t i = 0; i < 50 && e != 4; i++) {
			at(i % 3 ? IN_EPOCH : CALLS);
			in(1, e, 6 - e);
			in(2, i / 2 + 1, known ? 24 - (int64_t)i / 2 : -1);
		}
}

static void test_epochs(void **state)
{
	(void)state;
	epochs(true);
	expect(150, true);
	epochs(false);
	expect(150, false);
}

/* 6 epochs of 25 steps over a generator: of three samples of each, some see it run, so that its own loop is seen, and the others the
 * loop over it. In the first epoch and at the ends of the others, only one is seen. Then, by turns, a loop of as many steps
 * follows each epoch in a function: it is another one. */
static void test_generator(void **state)
{
	(void)state;
	for (uint32_t runs = 1; runs < 3; runs++) {
		for (uint32_t e = 1; e <= 6; e++)
			for (uint32_t i = 0; i < 75; i++) {
				bool running = e == 1 || i > 60 || i % 3 < runs;
				at(running ? IN_EPOCH : MAIN);
				in(1, e, 6 - e);
				in(running ? 2 : 1, i / 3 + 1, 24 - (int64_t)i / 3);
			}
		struct tfh_result *r = judge();

		assert_int_equal(r->steps.total, 150);
		assert_true(r->found.sampled.loop.exact);
		assert_int_equal(r->found.sampled.loop.first, 40);
		tfh_result_free(r);
	}
	for (uint32_t e = 1; e <= 6; e++)
		for (uint32_t i = 0; i < 60; i++) {
			at(i < 10 ? IN_EPOCH : MAIN);
			in(1, e, 6 - e);
			in(i < 10 ? 2 : 1, i < 10 ? i * 2 + 1 : i / 2 - 4,
			   i < 10 ? 24 - (int64_t)i * 2 : 29 - (int64_t)i / 2);
		}
	expect(150, true);
}

/* 500 steps of 22 ms, of which few samples, now close together and now far apart, show how far the loop has come: a step is as long as
 * those between the samples, whichever of these are near each other. All samples are at one line, so its part of a step is not known to
 * be all of it. */
static void test_few_samples(void **state)
{
	(void)state;
	double t = 5;

	for (uint32_t i = 0; i < 44; i++) {
		at(LATER);
		sample[samples - 1].t = gen_ns(t);
		sample[samples - 1].state = TFT_STATE_SLEEP;
		counted(1, (uint64_t)(t / 22) + 1, -1, TFH_START_COUNTER);
		t += i % 4 == 0 ? 880 : i % 4 == 1 ? 70 : i % 4 == 2 ? 11 : 40;
	}
	struct tfh_result *r = judge();

	assert_true(fabs(r->steps.median_s * 1e3 - 22) < 1);
	assert_true(r->place[0].gain.about_s > 0.1e-3 && r->place[0].gain.about_s < 1e-3);
	tfh_result_free(r);
}

/* 300 steps of 40 ms, in each of which 12 layers of a model follow each other, or 4 micro-batches. */
static void test_inner_loops(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 1200; i++) {
		at(FORWARD);
		in(2, i / 4 + 1, 299 - i / 4);
		in(4, i % 4 * 3 + 1, 11 - i % 4 * 3);
	}
	expect(300, true);
	for (uint32_t i = 0; i < 1200; i++) {
		at(IN_EPOCH);
		in(1, i / 4 + 1, 299 - i / 4);
		in(2, i % 4 + 1, 3 - i % 4);
	}
	expect(300, true);
	for (uint32_t i = 0; i < 1200; i++) {
		at(IN_EPOCH);
		in(1, i / 4 + 1, 299 - i / 4);
		in(2, i % 4 * 100000 + 1, 399999 - i % 4 * 100000);
	}
	expect(300, true);
}

/* Of 1,000 steps, 200 were made; then 40 samples of something else follow. */
static void test_left_early(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 400; i++) {
		at(MAIN);
		in(1, i / 2 + 1, 999 - i / 2);
	}
	for (uint32_t i = 0; i < 40; i++)
		at(LATER);
	expect(200, false);
	/* Samples at its line in which it could not be read do not show that it was left. */
	for (uint32_t i = 0; i < 200; i++) {
		at(MAIN);
		in(1, i / 2 + 1, 102 - i / 2);
	}
	for (uint32_t i = 0; i < 3; i++)
		at(MAIN);
	for (uint32_t i = 0; i < 40; i++)
		at(LATER);
	expect(103, true);
}

static void test_two_loops(void **state)
{
	(void)state;
	for (uint32_t e = 1; e <= 3; e++) {
		for (uint32_t i = 0; i < 80; i++) {
			at(MAIN);
			in(1, e, 3 - e);
			in(1, i / 2 + 1, 39 - i / 2);
		}
		for (uint32_t i = 0; i < 10; i++) {
			at(EVALUATES);
			in(1, e, 3 - e);
			in(1, i + 1, 9 - i);
		}
	}
	expect(120, true);
}

/* 8 epochs of 46 steps, which are queued within 100 ms; then 900 ms of waiting for the last one's result. */
static void test_queued(void **state)
{
	(void)state;
	for (uint32_t e = 1; e <= 8; e++)
		for (uint32_t i = 0; i < 100; i++) {
			at(i < 10 ? MAIN : READS);
			sample[samples - 1].state = i < 10 ? TFT_STATE_RUNNING : TFT_STATE_LOCK;
			in(1, e, 8 - e);
			if (i < 10)
				in(1, 4 * i + 5, 41 - 4 * (int64_t)i);
		}
	struct tfh_result *r = judge();

	assert_int_equal(r->steps.total, 368);
	assert_true(fabs(r->steps.median_s - 1.0 / 46) < 0.001);
	tfh_result_free(r);
}

/* 8 epochs of 46 steps of 20 ms: 30 are queued at once, and the others as fast as they are computed. The last 30 are awaited, together
 * with an evaluation of 300 ms, which is no step's. */
static void test_evaluated(void **state)
{
	(void)state;
	for (uint32_t e = 1; e <= 8; e++) {
		for (uint32_t i = 0; i < 32; i++) {
			at(MAIN);
			sample[samples - 1].state = TFT_STATE_LOCK;
			sample[samples - 1].place = READS;
			in(1, e, 8 - e);
			in(1, 31 + i / 2, 15 - (int64_t)i / 2);
		}
		for (uint32_t i = 0; i < 90; i++) {
			at(AFTERWARDS);
			sample[samples - 1].state = TFT_STATE_LOCK;
			in(1, e, 8 - e);
		}
	}
	struct tfh_result *r = judge();

	assert_int_equal(r->steps.total, 368);
	assert_true(fabs(r->steps.median_s - 0.02) < 0.001);
	assert_int_equal(r->n_tree, 5);
	assert_int_equal(r->tree[2].kind, TFH_BRANCH_TRAIN);
	assert_true(fabs(r->tree[2].wall_s - 7.36) < 0.5);
	assert_int_equal(r->tree[3].kind, TFH_BRANCH_BETWEEN);
	assert_int_equal(r->tree[3].count, 8);
	assert_true(fabs(r->tree[3].wall_s - 2.4) < 0.5);
	tfh_result_free(r);
}

/* `while` around 5 passes each time: there are no steps that could be counted. */
static void test_unseen_loop(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 400; i++) {
		at(MAIN);
		in(1, i % 5 + 1, 4 - i % 5);
	}
	expect(0, false);
	/* Nor are there where 20 passes take two samples: some may be entered between two. */
	for (uint32_t i = 0; i < 100; i++)
		for (uint32_t k = 0; k < 2; k++) {
			at(IN_EPOCH);
			in(2, 10 * k + 5, 15 - 10 * (int64_t)k);
		}
	expect(0, false);
	/* Nor where the loop is a tenth of the run. */
	for (uint32_t i = 0; i < 500; i++) {
		at(i < 50 ? MAIN : LATER);
		if (i < 50)
			in(1, i + 1, 49 - i);
	}
	expect(0, false);
}

/* 200 iterations of `while`, of which the last one is seen or the end is known; from 5,000 on, or from where it is not known: as many
 * as were seen. */
static void test_while(void **state)
{
	(void)state;
	for (uint32_t from = 0; from <= 5000; from += 5000)
		for (int known = 0; known < 2; known++) {
			for (uint32_t i = 0; i < 400; i++) {
				at(MAIN);
				counted(1, from + i / 2 + 1, known ? 199 - (int64_t)i / 2 : -1,
					TFH_START_COUNTER_FROM);
			}
			expect(200, known && !from);
		}
	for (uint32_t i = 0; i < 399; i++) {
		at(MAIN);
		counted(1, i / 2 + 1, 199 - (int64_t)i / 2, TFH_START_COUNTER);
	}
	expect(200, true);
}

/* 6 epochs of 25 steps, counted by a variable that goes on: of the fourth epoch and of the first steps of all there is no sample. */
static void test_goes_on(void **state)
{
	(void)state;
	for (int from = 0; from < 2; from++) {
		for (uint32_t e = 1; e <= 6; e++)
			for (uint32_t i = 20; i < 50 && e != 4; i++) {
				at(IN_EPOCH);
				in(1, e, 6 - e);
				counted(2, 25 * (e - 1) + i / 2 + 1, -1,
					from ? TFH_START_COUNTER_ON_FROM : TFH_START_COUNTER_ON);
			}
		expect(from ? 140 : 150, false);
	}
}

/* 2 s of preparation, 1 s of compiling in the first of 100 steps of 50 ms, of which the model's line takes 4/5. */
/* A program that calls one function of a library (fit) has the steps of the library's loop. Of two
 * such calls neither has all the steps, nor has one that takes half of the time. */
static void test_fit(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 120; i++) {
		at(CALLS);
		in(3, i, 120 - (int64_t)i);
	}
	expect(120, true);
	/* Three epochs of 80 batches in one function of the library. */
	for (uint64_t i = 0; i < 240; i++) {
		at(CALLS);
		in(3, i / 80 + 1, 2 - (int64_t)i / 80);
		in(3, i % 80 + 1, 79 - (int64_t)i % 80);
	}
	expect(240, true);
	for (uint64_t i = 0; i < 240; i++) {
		at(CALLS);
		in(3, i % 120 + 1, 119 - (int64_t)i % 120);
	}
	expect(0, false);
	for (uint64_t i = 1; i <= 120; i++) {
		at(CALLS);
		in(3, i, 120 - (int64_t)i);
		at(LATER);
	}
	expect(0, false);
}

/* 20 steps, each of which compiles nearly all of the time: what little else there is, is before. */
static void test_compiles_on(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		at(LATER);
	for (uint32_t i = 0; i < 400; i++) {
		at(i % 20 ? COMPILES : IN_EPOCH);
		in(2, i / 20 + 1, 19 - i / 20);
	}
	expect(20, true);
}

/* 100 steps, of which the first one compiles for a second, and the 50th for half a second: an evaluation. */
static void test_compiles_twice(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		for (uint32_t k = 0; k < (i ? i == 49 ? 50 : 0 : 100); k++) {
			at(COMPILES);
			in(2, i + 1, 99 - i);
		}
		for (uint32_t k = 0; k < 4; k++) {
			at(IN_EPOCH);
			in(2, i + 1, 99 - i);
		}
	}
	struct tfh_result *r = judge();

	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_PYTHON);
	assert_true(r->found.sampled.compiles_first);
	assert_true(fabs(r->steps.median_s - 0.04) < 0.002);
	assert_int_equal(r->found.compiling.times, 2);
	assert_true(fabs(r->found.compiling.s[TFH_SEGMENT_WARMUP] - 1.5) < 0.1);
	assert_non_null(r->found.compiling.file);
	assert_int_equal(r->tree[2].kind, TFH_BRANCH_FIRST);
	assert_int_equal(r->tree[2].count, 2);
	assert_true(fabs(r->tree[2].wall_s - 1.5) < 0.1);
	assert_int_equal(r->tree[3].kind, TFH_BRANCH_TRAIN);
	assert_true(fabs(r->tree[3].wall_s - 4) < 0.1);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epochs),	    cmocka_unit_test(test_inner_loops),
		cmocka_unit_test(test_left_early),  cmocka_unit_test(test_two_loops),
		cmocka_unit_test(test_unseen_loop), cmocka_unit_test(test_queued),
		cmocka_unit_test(test_evaluated),   cmocka_unit_test(test_compiles_on),
		cmocka_unit_test(test_while),	    cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_fit),	    cmocka_unit_test(test_generator),
		cmocka_unit_test(test_few_samples), cmocka_unit_test(test_compiles_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
