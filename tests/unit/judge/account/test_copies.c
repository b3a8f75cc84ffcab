/* Copies with device times, each case from a small simulation: prefetching, overlapping and small
 * copies, migration, copies that are handed over, a result that is fetched. Parts are exact to 1 %,
 * and copies that delay nothing are not blamed. */
#include "../devgen.h"

/* The copy for the next step runs beside this step's kernels on a stream of its own. */
static struct tfh_result *prefetch_to_device(double copy)
{
	struct dg *d = dg_new();

	dg_get(d, 0, 0.1);
	dg_copy(d, 0, 2, TFH_DIR_H2D, 50 << 20, copy);
	dg_record(d, 0, 1, 2);
	for (int i = 0; i < 60; i++) {
		dg_wait(d, 0, 1, 1);
		dg_launches(d, 1, 10, 1);
		dg_get(d, 0, 0.1);
		dg_copy(d, 0, 2, TFH_DIR_H2D, 50 << 20, copy);
		dg_record(d, 0, 1, 2);
		dg_sync(d, 0, 1);
	}
	return dg_judge(d);
}

static void test_prefetch_to_device(void **state)
{
	(void)state;
	struct tfh_result *r = prefetch_to_device(8), *fast;

	dg_check(r, TFH_CLASS_COMPUTE_BOUND);
	gen_part(r, TFH_PART_TRANSFER, 0);
	tfh_result_free(r);
	/* Slower than a step: what is not hidden blocks. */
	r = prefetch_to_device(14);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_H2D_PINNED);
	gen_part(r, TFH_PART_COMPUTE, 10);
	fast = prefetch_to_device(US);
	dg_predicts(r, TFH_REMOVE_TRANSFER, fast->steps.median_s * 1e3);
	tfh_result_free(fast);
	tfh_result_free(r);
}

/* Copies in both directions beside computing, together longer than a step: they cost nothing. */
static void test_hidden_copies(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		dg_copy(d, 0, 2, TFH_DIR_H2D, 40 << 20, 6);
		dg_copy(d, 0, 3, TFH_DIR_D2H, 40 << 20, 7);
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_COMPUTE_BOUND);
	gen_part(r, TFH_PART_TRANSFER, 0);
	assert_false(r->found.replays);
	assert_true(fabs(r->stages[TFH_STAGE_H2D].hidden_s - 6e-3) < 1e-4);
	assert_true(fabs(r->stages[TFH_STAGE_D2H].hidden_s - 7e-3) < 1e-4);
	assert_true(fabs(r->xprof[TFH_XPROF_COMPUTE] - 1) < 0.01);
	tfh_result_free(r);
}

static void test_small_copies(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.05);
		for (int k = 0; k < 1000; k++)
			dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 4096, 2 * US);
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_SMALL_COPIES);
	gen_part(r, TFH_PART_TRANSFER, 1000 * (DG_LATENCY + 2 * US + DG_WAKE));
	dg_predicts(r, TFH_REMOVE_TRANSFER, 10.1);
	tfh_result_free(r);
}

/* Small copies that are only queued: handing them over takes longer than they do. */
static void test_queued_copies(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.05);
		for (int k = 0; k < 1000; k++)
			dg_copy(d, 0, 1, TFH_DIR_H2D, 4096, 0.5 * US);
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_SMALL_COPIES);
	gen_part(r, TFH_PART_TRANSFER, 1000 * DG_CALL);
	dg_predicts(r, TFH_REMOVE_TRANSFER, 10.1);
	tfh_result_free(r);
}

/* Pages that the program asks to move are no copies of its own. */
static void test_prefetched_pages(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		struct tfh_op *op = dg_op(d, 1, d->now[0], DG_LATENCY, 4);
		dg_copy_op(op, TFH_DIR_H2D, 1 << 20, false);
		struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuMemPrefetchAsync, DG_CALL);
		ev->stream = 1;
		dg_issued(op, ev);
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_MANAGED);
	gen_part(r, TFH_PART_TRANSFER, 4);
	dg_predicts(r, TFH_REMOVE_TRANSFER, 10.1);
	tfh_result_free(r);
}

/* Pages that migrate hold kernels up. */
static void test_managed(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		for (int k = 0; k < 10; k++) {
			struct tfh_op *op = dg_op(d, 1, d->now[0], DG_LATENCY, 0.5);
			dg_copy_op(op, TFH_DIR_H2D, 1 << 20, false);
			op->managed = true;
			op->issue0 = op->issue1 = INT64_MIN;
			op->thread = UINT32_MAX;
			dg_launch(d, 0, 1, 1);
		}
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_MANAGED);
	gen_part(r, TFH_PART_TRANSFER, 5);
	tfh_result_free(r);
}

/* The main thread uploads, and another one launches; they take turns. The upload is what the device
 * waits for, though its thread launches nothing. */
static void hand_overs(struct dg *d, double copy, bool allocates, double late)
{
	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.05);
		if (allocates)
			for (int k = 0; k < 20; k++)
				dg_call(d, 0, TFH_FN_cuMemAlloc_v2, 0.2)->w[0] = 1 << 20;
		dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 1 << 22, copy);
		dg_code_until(d, 1, d->now[0] + (i % 6 == 3 && late > 0 ? late : 20 * US));
		for (int k = 0; k < 10; k++)
			dg_launch(d, 1, 1, 0.4);
		dg_sync(d, 1, 1);
		dg_code_until(d, 0, d->now[1] + 20 * US);
	}
}

static void test_hand_overs(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	hand_overs(d, 4, false, 0);
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_H2D_PAGEABLE);
	gen_part(r, TFH_PART_TRANSFER, 4);
	tfh_result_free(r);
	d = dg_new();
	hand_overs(d, 0.05, true, 0);
	r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_ALLOC);
	tfh_result_free(r);
}

/* One hand-over in six comes late, as the other thread had no processor: the upload before it is
 * still the upload, and only the delay is the program's. */
static void test_late_hand_overs(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	hand_overs(d, 4, false, 2);
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	gen_part(r, TFH_PART_TRANSFER, 4);
	gen_part(r, TFH_PART_HOST, 2.0 / 6);
	tfh_result_free(r);
}

/* The loss is fetched: four bytes, for which the program waits until everything before is done.
 * That is no copying, and neither is that the thread wakes up late. */
static void test_fetched_loss(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.05);
		dg_launch(d, 0, 1, 5);
		struct tfh_op *op = dg_op(d, 1, d->now[0], DG_LATENCY, 2 * US);
		double took = d->end[1] + 3 - d->now[0];
		struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuMemcpyDtoH_v2, took);
		ev->stream = 1;
		ev->w[0] = 4;
		ev->pageable = true;
		dg_copy_op(op, TFH_DIR_D2H, 4, true);
		dg_issued(op, ev);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_SYNC);
	gen_part(r, TFH_PART_SYNC, 2.95);
	assert_true(r->breakdown[TFH_PART_TRANSFER].s_per_step < 60e-6);
	gen_part(r, TFH_PART_COMPUTE, 5);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prefetch_to_device), cmocka_unit_test(test_hidden_copies),
		cmocka_unit_test(test_small_copies),	   cmocka_unit_test(test_queued_copies),
		cmocka_unit_test(test_prefetched_pages),   cmocka_unit_test(test_managed),
		cmocka_unit_test(test_hand_overs),	   cmocka_unit_test(test_late_hand_overs),
		cmocka_unit_test(test_fetched_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
