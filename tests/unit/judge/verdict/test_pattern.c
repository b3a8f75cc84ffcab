/* Results beside the class, for synthetic jobs: how fast their input could deliver, that several
 * batches make one update, that there are several kinds of steps, the phases of start-up, and late
 * compiling. Where there is no evidence, nothing is reported. */
#include "../devgen.h"

static void kernels(struct dg *d, int n, double ms)
{
	for (int i = 0; i < n; i++)
		dg_launch(d, 0, 1, ms)->name = "gemm";
}

static uint64_t iterator = 1;

static void get_stage(struct dg *d, double until)
{
	struct tfh_event *ev = dg_call(d, 0, TFH_FN_tf_getnext_op, fmax(3 * US, until - d->now[0]));

	ev->w[0] = iterator;
	ev->w[1] = 1;
	ev->depth = 1;
	struct tfh_event outer = *ev;
	struct tfh_event *stage = gen_call(d->g, 0, TFH_FN_tf_stage_getnext, 0, 0);
	stage->t0 = outer.t0;
	stage->t1 = outer.t1;
	stage->w[1] = 1;
	stage->w[2] = (uint64_t)(outer.t1 - outer.t0);
	stage->depth = 2;
}

/* A producer that makes a batch every `every` ms into a buffer of that depth; steps take `host` of
 * the host beside ten kernels of 1 ms; every 20th step pauses. */
static struct tfh_result *buffered(double every, int depth, double pause)
{
	struct dg *d = dg_new();
	double made[200], taken[200];

	d->g->name[TFT_NAME_STAGE][1] = "Iterator::Root::Prefetch";
	for (int i = 0; i < 121; i++) {
		double from = i ? made[i - 1] : 90;
		if (i > depth) /* the producer stops while the buffer is full */
			from = fmax(from, taken[i - depth - 1]);
		made[i] = from + every;
		get_stage(d, made[i]);
		taken[i] = d->now[0];
		kernels(d, 10, 1);
		dg_sync(d, 0, 1);
		dg_code(d, 0, 0.5);
		if (pause > 0 && i % 20 == 19)
			dg_code(d, 0, pause);
	}
	return dg_judge(d);
}

static void test_starved(void **state)
{
	(void)state;
	struct tfh_result *r = buffered(15, 4, 0);

	assert_true(fabs(r->supply.period_s - 0.015) < 1e-4);
	assert_true(fabs(r->supply.headroom - 1) < 0.01);
	assert_int_equal(r->supply.basis, TFH_SUPPLY_WAITED);
	/* No fix of the host's code makes steps shorter than batches come. */
	const struct tfh_whatif *w = dg_whatif(r, TFH_REMOVE_HOST);
	assert_non_null(w);
	assert_true(w->floor_s > 0.0148);
	tfh_result_free(r);
}

/* Batches come every 28 ms, whatever the loop does: its own 14 ms after every step block more than
 * the 10 ms that are left of waiting, but without them it only waits longer. The input is to blame,
 * of every step, and the code is named beside it. */
static void test_starved_beside_code(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->g->name[TFT_NAME_STAGE][1] = "Iterator::Root::Prefetch";
	for (int i = 0; i < 60; i++) {
		get_stage(d, 100 + 28.0 * i);
		kernels(d, 4, 1);
		dg_sync(d, 0, 1);
		dg_code(d, 0, 14);
	}
	struct tfh_result *r = dg_judge(d);
	assert_true(r->breakdown[TFH_PART_HOST].s_per_step >
		    1.2 * r->breakdown[TFH_PART_INPUT].s_per_step);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
	assert_int_equal(r->verdict.n_also, 1);
	assert_int_equal(r->verdict.also[0], TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->steps.classes[TFH_CLASS_HOST_BOUND].count, 0);
	tfh_result_free(r);
}

/* What lies between two epochs is no time that a batch takes. */
static void test_starved_epochs(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->g->name[TFT_NAME_STAGE][1] = "Iterator::Root::Prefetch";
	for (iterator = 1; iterator <= 4; iterator++) {
		dg_code(d, 0, 600);
		for (int i = 0; i < 30; i++) {
			get_stage(d, d->now[0] + 5);
			kernels(d, 9, 1);
			dg_sync(d, 0, 1);
			dg_code(d, 0, 1);
		}
	}
	iterator = 1;
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->supply.basis, TFH_SUPPLY_WAITED);
	assert_true(fabs(r->supply.period_s - 0.0151) < 2e-4);
	tfh_result_free(r);
}

/* A fast producer behind a buffer never shows how fast it is. */
static void test_unknown_headroom(void **state)
{
	(void)state;
	struct tfh_result *r = buffered(2, 4, 0);

	assert_true(isnan(r->supply.period_s));
	assert_true(isnan(r->supply.headroom));
	tfh_result_free(r);
}

/* Pauses fill the buffer, what follows empties it: the period shows in between. */
static void test_bursts(void **state)
{
	(void)state;
	/* 12 ms a batch, 10.6 a step: waits of 1.4 ms, except after a pause of 30 ms, which
	 * fills a part of the buffer. */
	struct tfh_result *r = buffered(12, 8, 30);

	assert_true(fabs(r->supply.period_s - 0.012) < 1.2e-4);
	tfh_result_free(r);
}

/* Without threads of its own the pipeline makes a batch when it is asked. */
static void test_synchronous(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->g->name[TFT_NAME_STAGE][1] = "Iterator::Root::Map";
	for (int i = 0; i < 60; i++) {
		get_stage(d, d->now[0] + 2);
		kernels(d, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_true(fabs(r->supply.period_s - 0.002) < 1e-5);
	assert_true(r->supply.headroom > 5.9 && r->supply.headroom < 6.2);
	tfh_result_free(r);
}

/* Of batches that take 1 ms in one half of the run and 13 ms in the other, beside 1 ms of work, the mean is 7 ms: with one thread that
 * reads ahead, steps get an eighth faster, whatever their median. */
static void test_uneven_batches(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->g->name[TFT_NAME_STAGE][1] = "Iterator::Root::Map";
	for (int i = 0; i < 100; i++) {
		get_stage(d, d->now[0] + (i < 49 ? 1 : 13));
		kernels(d, 1, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_true(r->supply.period_s > 0.0069 && r->supply.period_s < 0.0073);
	assert_true(r->supply.headroom > 1.1 && r->supply.headroom < 1.2);
	tfh_result_free(r);
}

/* Every fourth batch ends with the update of the weights: six more launches. */
static void test_accumulation(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 80; i++) {
		dg_get(d, 0, 0.05);
		kernels(d, 10, 0.5);
		if (i % 4 == 3)
			kernels(d, 6, 0.2);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->pattern.per_update, 4);
	assert_int_equal(r->pattern.n_kind, 2);
	assert_int_equal(r->pattern.kind[0].launches, 10);
	assert_int_equal(r->pattern.inner, 1);
	tfh_result_free(r);
}

/* One batch is split: the launches of a micro-step come five times, and an update follows. */
static void test_micro_steps(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.05);
		for (int k = 0; k < 5; k++)
			for (int n = 0; n < 8; n++) {
				dg_launch(d, 0, 1, 0.2);
				d->g->ev[d->g->n - 1].w[0] = (uint64_t)n + 1;
			}
		dg_launch(d, 0, 1, 0.3);
		d->g->ev[d->g->n - 1].w[0] = 40;
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->pattern.inner, 5);
	assert_int_equal(r->pattern.per_update, 1);
	assert_int_equal(r->pattern.n_kind, 1);
	tfh_result_free(r);
}

/* Lengths of batches are drawn at random: three shapes. */
static void test_kinds(void **state)
{
	(void)state;
	struct dg *d = dg_new();
	uint32_t seed = 7;

	for (int i = 0; i < 150; i++) {
		seed = seed * 1664525 + 1013904223;
		dg_get(d, 0, 0.05);
		kernels(d, 10 * (1 + (int)((seed >> 16) % 3)), 0.5);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->pattern.per_update, 1);
	assert_int_equal(r->pattern.n_kind, 3);
	for (int k = 0; k < 3; k++)
		assert_true(fabs(r->pattern.kind[k].median_s * 1e3 -
				 0.501 * r->pattern.kind[k].launches) < 0.2);
	tfh_result_free(r);
}

/* No batch is as large as another, and nothing else tells steps apart: they are found all the same.
 */
static void test_sizes(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 80; i++) {
		uint64_t bytes = 100000 + 64 * (uint64_t)(i * 37 % 83);
		dg_copy(d, 0, 1, TFH_DIR_H2D, bytes, 0.1);
		dg_copy(d, 0, 1, TFH_DIR_H2D, bytes / 2, 0.1);
		kernels(d, 5, 1 + 0.01 * (i * 37 % 83));
		dg_copy(d, 0, 1, TFH_DIR_D2H, bytes / 50, 0.1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_PERIOD);
	assert_in_range(r->steps.total, 79, 80);
	tfh_result_free(r);
}

/* The loss is looked at in every second step: that makes no one step of two. */
static void test_rare_wait(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 80; i++) {
		dg_copy(d, 0, 1, TFH_DIR_H2D, 100000, 0.1);
		kernels(d, 5, 1);
		if (i % 2)
			dg_sync(d, 0, 1);
		dg_code(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_PERIOD);
	assert_in_range(r->steps.total, 79, 80);
	tfh_result_free(r);
}

/* Many tiny copies beside a large one that blocks far longer: the large one is to blame, not they;
 * and they, where they cost more. */
static enum tfh_cause beside_tiny(double large)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.05);
		for (int k = 0; k < 150; k++)
			dg_copy(d, 0, 1, TFH_DIR_H2D, 1000, 0.005);
		kernels(d, 2, 1);
		dg_copy(d, 0, 1, TFH_DIR_D2H, (uint64_t)(large * 1e7), large);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	enum tfh_cause cause = r->verdict.cause;
	tfh_result_free(r);
	return cause;
}

static void test_beside_tiny(void **state)
{
	(void)state;
	assert_int_equal(beside_tiny(10), TFH_CAUSE_TRANSFER_D2H);
	assert_int_equal(beside_tiny(0.3), TFH_CAUSE_TRANSFER_SMALL_COPIES);
}

/* A loop that asks the device every 200 us until a copy is done waits for the copy: that is no code
 * of the program. */
static void test_polling(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.05);
		kernels(d, 2, 1);
		dg_copy(d, 0, 1, TFH_DIR_D2H, 100000000, 10);
		for (bool done = false; !done;) {
			done = d->now[0] > d->end[1];
			struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuStreamQuery, 0.001);
			ev->stream = 1;
			ev->result = done ? 0 : 600;
			if (!done)
				dg_code(d, 0, 0.2);
		}
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_D2H);
	assert_true(r->breakdown[TFH_PART_TRANSFER].s_per_step > 0.0099);
	assert_true(r->breakdown[TFH_PART_HOST].s_per_step < 0.0003);
	const struct tfh_whatif *w = dg_whatif(r, TFH_REMOVE_TRANSFER);
	assert_true(w && w->step_s > 0.002 && w->step_s < 0.0024);
	tfh_result_free(r);
}

/* 121 steps of 10 ms; a pause in every `every`-th one, in none but the 50th of 0. */
static struct tfh_result *standing(int every, double pause)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 121; i++) {
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1000, 0.1);
		kernels(d, 10, 1);
		dg_sync(d, 0, 1);
		if (every ? i % every == every - 1 : i == 50)
			dg_code(d, 0, pause);
	}
	return dg_judge(d);
}

static uint32_t stalls(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_segments; i++)
		if (r->segments[i].kind == TFH_SEGMENT_STALL)
			return r->segments[i].count;
	return 0;
}

/* One step during which the job was suspended is reported, and does not affect how other steps are judged. What
 * comes in turn is the job's own. */
static void test_stall(void **state)
{
	(void)state;
	struct tfh_result *r = standing(0, 5000);

	assert_int_equal(stalls(r), 1);
	assert_int_equal(r->verdict.cls, TFH_CLASS_COMPUTE_BOUND);
	assert_true(fabs(dg_step_ms(r) - 10.1) < 0.2);
	assert_int_equal(r->n_kernels, 1);
	assert_float_equal(r->kernels[0].calls_per_step, 10,
			   1e-9); /* the stall's are of no other step */
	tfh_result_free(r);
	r = standing(0, 50); /* long, but no stall */
	assert_int_equal(stalls(r), 0);
	tfh_result_free(r);
	r = standing(40, 500);
	assert_int_equal(stalls(r), 0);
	assert_int_equal(r->verdict.cls, TFH_CLASS_HOST_BOUND);
	tfh_result_free(r);
}

static void test_startup(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	dg_call(d, 0, TFH_FN_cuInit, 50);		     /* from 100 to 150 ms */
	dg_call(d, 0, TFH_FN_cuDevicePrimaryCtxRetain, 200); /* 350 */
	dg_code(d, 0, 100);
	dg_call(d, 0, TFH_FN_cuModuleLoadData, 50); /* 500 */
	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, i ? 0.05 : 500); /* 1000 */
		if (i == 30 || i == 40)
			dg_call(d, 0, TFH_FN_cuModuleLoadData, 25);
		kernels(d, 10, i ? 1 : 20);
		if (i == 40)
			dg_call(d, 0, TFH_FN_cuModuleUnload, 0.1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	static const double ms[] = {150, 350, 500, 1000};
	for (int k = 0; k < 4; k++)
		assert_true(fabs(r->startup[k] * 1e3 - ms[k]) < 1);
	assert_true(fabs(r->startup[TFH_PHASE_STEP] * 1e3 - 1200) < 1);
	assert_true(r->startup[TFH_PHASE_STEADY] >= r->startup[TFH_PHASE_STEP]);
	assert_true(r->startup[TFH_PHASE_STEADY] < 1.25);
	assert_int_equal(r->pattern.recompiles, 2);
	assert_int_equal(r->pattern.unloads, 1);
	assert_true(fabs(r->pattern.recompile_s - 0.05) < 1e-6);
	tfh_result_free(r);
}

/* What the device has, and what was never asked for. */
static void test_memory(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->gpu.memory = 1000 << 20;
	for (int i = 0; i < 30; i++) {
		if (i < 2) {
			struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuMemAlloc_v2, 0.1);
			ev->kind = TFT_ALLOC;
			ev->w[0] = 490 << 20;
			ev->w[1] = (uint64_t)(i + 1) << 32;
		}
		dg_get(d, 0, 0.05);
		kernels(d, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_true(r->heap.peak == (uint64_t)980 << 20);
	assert_true(r->heap.capacity == (uint64_t)1000 << 20);
	assert_non_null(gen_remark(r, "device memory was nearly full"));
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_starved),	       cmocka_unit_test(test_starved_beside_code),
		cmocka_unit_test(test_starved_epochs), cmocka_unit_test(test_unknown_headroom),
		cmocka_unit_test(test_bursts),	       cmocka_unit_test(test_synchronous),
		cmocka_unit_test(test_uneven_batches), cmocka_unit_test(test_accumulation),
		cmocka_unit_test(test_micro_steps),    cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_startup),	       cmocka_unit_test(test_memory),
		cmocka_unit_test(test_sizes),	       cmocka_unit_test(test_polling),
		cmocka_unit_test(test_beside_tiny),    cmocka_unit_test(test_rare_wait),
		cmocka_unit_test(test_stall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
