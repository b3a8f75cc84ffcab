/* Predictions for synthetic jobs on busy machines: delayed launch calls, one long step among equal
 * ones, steps that vary when most of their time is removed. */
#include "../devgen.h"

/* A launch whose call is held up before it hands the kernel over. */
static void held_up(struct dg *d, double held, double ms)
{
	struct tfh_op *op = dg_op(d, 1, d->now[0] + held, DG_LATENCY, ms);
	struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuLaunchKernel, held + DG_CALL);

	ev->stream = 1;
	ev->w[0] = 1;
	dg_issued(op, ev);
}

/* Every 50th of 500 launches loses its processor for 1 ms: that goes with the launching. */
static void test_held_up_launches(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.01);
		for (int k = 0; k < 500; k++) {
			held_up(d, k % 50 == 49 ? 1 : 0, 3 * US);
			dg_code(d, 0, 8 * US);
		}
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->verdict.cls, TFH_CLASS_HOST_BOUND);
	gen_part(r, TFH_PART_LAUNCH, 500 * 9 * US + 10);
	/* kernels one after the other, the get-next, and waking up from the wait */
	dg_predicts(r, TFH_REMOVE_LAUNCH, 500 * 3 * US + 499 * DG_NEXT + 0.01 + DG_WAKE);
	tfh_result_free(r);
}

/* Steps that are all alike but for an early one that waits for a large copy. */
static void test_alike(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 20, i == 3 ? 12 : 0.01);
		dg_launch(d, 0, 1, 10);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	const struct tfh_whatif *w = dg_whatif(r, TFH_REMOVE_EVERYTHING_BUT_COMPUTE);
	assert_non_null(w);
	assert_true(fabs(w->step_s * 1e3 - 10) < 0.1);
	tfh_result_free(r);
}

/* Nine tenths of a step are input; what stays goes up and down over many steps. The gain is known
 * well all the same. */
static void test_most_of_it(void **state)
{
	(void)state;
	struct dg *d = dg_new();
	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 60);
		dg_launch(d, 0, 1, i / 8 % 2 ? 3.8 : 6.2);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	const struct tfh_whatif *w = dg_whatif(r, TFH_REMOVE_INPUT);
	assert_non_null(w);
	assert_true(w->step_s > 0);
	assert_true(w->low_s < 5.1e-3 && 5e-3 < w->high_s);
	assert_true(w->high_s > 1.1 * w->step_s && w->high_s <= 1.25 * w->step_s);
	tfh_result_free(r);
}

/* 100 launches a step; once in a step, each time somewhere else, the thread loses its processor for
 * 1 ms between two of them: that goes with the launching. A pause at the same place of every step
 * is the program's own code. */
static void interrupted(struct dg *d, bool moving)
{
	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.01);
		for (int k = 0; k < 100; k++) {
			dg_launch(d, 0, 1, 3 * US);
			dg_code(d, 0, k == (moving ? i * 37 % 99 : 50) ? 1 : 8 * US);
		}
		dg_sync(d, 0, 1);
	}
}

static void test_interrupted_launches(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	interrupted(d, true);
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_LAUNCH);
	assert_true(r->breakdown[TFH_PART_HOST].s_per_step < 0.05e-3);
	/* The wait at the end finds its op done; now it sleeps until then, and wakes up. */
	dg_predicts(r, TFH_REMOVE_LAUNCH, 100 * 3 * US + 99 * DG_NEXT + 0.01 + DG_LATENCY + 2 * US);
	tfh_result_free(r);

	d = dg_new();
	interrupted(d, false);
	r = dg_judge(d);
	gen_part(r, TFH_PART_HOST, 1 - 3 * US);
	tfh_result_free(r);
}

/* Copies of a few bytes, one after the other: the pauses between their calls go with them. */
static void test_copying(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.01);
		for (int k = 0; k < 500; k++) {
			dg_copy(d, 0, 1, TFH_DIR_H2D, 256, 1 * US);
			dg_code(d, 0, 3 * US);
		}
		dg_launch(d, 0, 1, 5);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_SMALL_COPIES);
	gen_part(r, TFH_PART_TRANSFER, 500 * 7 * US);
	dg_predicts(r, TFH_REMOVE_TRANSFER, 5 + 0.01 + DG_LATENCY + DG_WAKE);
	tfh_result_free(r);
}

static const gen_stack copies[] = {
	[1] = {{"/v/lib/python3.11/site-packages/numba/devicearray.py", "copy_to_device", 5, true},
	       {"/job/train.py", "main", 20, false}},
};

/* The same with a library that takes 0.1 ms between two copies: samples see its code there, and it goes with them, too; what
 * they show after a step's last copy is the program's own code, and stays. */
static void test_copying_code(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	GEN_STACKS(&d->g->feed, copies);
	for (int i = 0; i < 80; i++) {
		dg_get(d, 0, 0.01);
		for (int k = 0; k < 60; k++) {
			dg_copy(d, 0, 1, TFH_DIR_H2D, 256, 1 * US);
			dg_code(d, 0, 0.1);
			if (k != i % 60)
				continue;
			double t = d->now[0] - 0.05;
			gen_sample(d->g, 0, t, TFT_STATE_RUNNING, 1, 10);
		}
		dg_launch(d, 0, 1, 5);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_SMALL_COPIES);
	assert_true(r->breakdown[TFH_PART_TRANSFER].s_per_step > 5.5e-3);
	double code = 1e3 * r->breakdown[TFH_PART_HOST].s_per_step;
	assert_true(code < 0.2);
	dg_predicts(r, TFH_REMOVE_TRANSFER, 5 + 0.01 + DG_LATENCY + DG_WAKE + code);
	tfh_result_free(r);
}

/* Results are fetched with a blocking copy; without it somebody must still wait for the kernels. */
static void test_fetching(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.01);
		dg_launch(d, 0, 1, 2);
		dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 1 << 22, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_D2H);
	dg_predicts(r, TFH_REMOVE_TRANSFER, 2 + 0.01 + DG_LATENCY + DG_WAKE);
	tfh_result_free(r);
}

/* What the recorder takes between two calls is neither the job's launching, nor part of a predicted
 * step: it is unattributed. Of another profiler's trace nothing is known of the kind. */
static void test_own_time(void **state)
{
	(void)state;
	for (int imported = 0; imported < 2; imported++) {
		struct dg *d = dg_new();
		double own = imported ? 0 : 1000 * 40e-6;
		if (imported)
			d->gpu.source = TFH_GPU_IMPORTED;
		for (int i = 0; i < 40; i++) {
			dg_get(d, 0, 0.01);
			for (int k = 0; k < 1000; k++) {
				dg_launch(d, 0, 1, 0.5 * US);
				dg_code(d, 0, 0.3 * US);
			}
			dg_sync(d, 0, 1);
			dg_code(d, 0, 1);
		}
		struct tfh_result *r = dg_judge(d);
		double step = dg_step_ms(r);
		gen_part(r, TFH_PART_LAUNCH, 1000 * 3.8 * US - own);
		gen_part(r, TFH_PART_UNATTRIBUTED, own);
		assert_true(r->breakdown[TFH_PART_UNATTRIBUTED].s_per_step * 1e3 >= 0.8 * own);
		dg_predicts(r, TFH_REMOVE_HOST, step - 1 - own);
		tfh_result_free(r);
	}
}

/* The program works while a copy runs, and then waits for it: the copy holds the step up, all of
 * it, and the work could be gone without any gain. */
static void test_work_beside_a_copy(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.05);
		dg_copy(d, 0, 1, TFH_DIR_H2D, 40 << 20, 10);
		dg_code(d, 0, 8);
		dg_sync(d, 0, 1);
		dg_launch(d, 0, 1, 3);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_H2D_PINNED);
	gen_part(r, TFH_PART_TRANSFER, 10);
	assert_true(r->breakdown[TFH_PART_HOST].s_per_step < 50e-6);
	tfh_result_free(r);
}

/* A step of ten kernels, after each of which the program may wait, and a result that it fetches in any case. Returns the end. */
static double filter_steps(struct dg *d, bool careful)
{
	for (int i = 0; i < 200; i++) {
		dg_get(d, 0, 4 * US);
		for (int k = 0; k < 10; k++) {
			dg_launch(d, 0, 1, 20 * US);
			if (careful)
				dg_sync(d, 0, 1);
		}
		dg_copy(d, 0, 1, TFH_DIR_D2H, 48, 2 * US);
		dg_sync(d, 0, 1);
		dg_code(d, 0, 10 * US);
	}
	return d->now[0];
}

/* Without the waits that fetch nothing, the wait for the result remains. */
static void test_result(void **state)
{
	(void)state;
	struct dg *with = dg_new(), *without = dg_new();
	double ms = (filter_steps(without, false) - 100) / 200;

	dg_free(without);
	filter_steps(with, true);
	struct tfh_result *r = dg_judge(with);
	assert_int_equal(r->verdict.cls, TFH_CLASS_HOST_BOUND);
	const struct tfh_whatif *w = dg_whatif(r, TFH_REMOVE_SYNC);
	assert_non_null(w);
	assert_true(fabs(w->step_s * 1e3 - ms) < 0.03 * ms);
	assert_true(w->low_s * 1e3 < ms && ms < w->high_s * 1e3);
	tfh_result_free(r);
}

/* Two threads launch in turn, since each waits for the other. In streams of their own, both could compute at the same time, so the
 * least time is half of it; in one stream, or launched by one thread, it is all of it. */
static void test_threads_in_turn(void **state)
{
	static const struct {
		uint32_t threads, streams;
		double least;
	} row[] = {{2, 2, 5}, {2, 1, 10}, {1, 2, 10}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct dg *d = dg_new();
		for (uint32_t i = 0; i < 120; i++) {
			uint32_t thread = i % row[k].threads, stream = 1 + i % row[k].streams;
			dg_code_until(d, thread, d->now[1 - thread] + 100 * US);
			dg_launch(d, thread, stream, 5);
			dg_launch(d, thread, stream, 0.01)->name = i % 2 ? "even" : "odd";
			dg_sync(d, thread, stream);
			if (row[k].threads == 1)
				dg_code(d, thread, 1);
		}
		struct tfh_result *r = dg_judge(d);
		const struct tfh_whatif *w = dg_whatif(r, TFH_REMOVE_EVERYTHING_BUT_COMPUTE);
		double steps = (double)r->steps.total / 60;
		assert_int_equal(r->found.threads_turn, row[k].least < 10 ? 2 : 0);
		assert_true((gen_remark(r, "the 2 threads that launch") != NULL) ==
			    (row[k].least < 10));
		if (!w || fabs(w->floor_s * 1e3 * steps - row[k].least) > 0.03 * row[k].least)
			fail_msg("%zu: %g of %g", k, w ? w->floor_s * 1e3 * steps : NAN,
				 row[k].least);
		tfh_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work_beside_a_copy),   cmocka_unit_test(test_own_time),
		cmocka_unit_test(test_interrupted_launches), cmocka_unit_test(test_copying),
		cmocka_unit_test(test_copying_code),	     cmocka_unit_test(test_fetching),
		cmocka_unit_test(test_held_up_launches),     cmocka_unit_test(test_alike),
		cmocka_unit_test(test_most_of_it),	     cmocka_unit_test(test_result),
		cmocka_unit_test(test_threads_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
