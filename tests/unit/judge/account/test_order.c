/* Order between streams and threads that no call states, in synthetic jobs: waits that no op has
 * followed yet, values that streams wait for, values that the host fetches, polling with sleeps,
 * streams that compute side by side, batches that another thread prepares. */
#include "../devgen.h"

/* Gradients go to the host between layers: the computing waits for the copy, the copy for the
 * computing, and at the end the host for both, though the last op of its stream is a kernel. */
static void test_wait_without_op(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 16, 0.02);
		for (int k = 0; k < 3; k++) {
			dg_launch(d, 0, 1, 1);
			dg_record(d, 0, 1, 1);
			dg_wait(d, 0, 2, 1);
			dg_copy(d, 0, 2, TFH_DIR_D2H, 4 << 20, 1);
			dg_record(d, 0, 2, 2);
			dg_wait(d, 0, 1, 2);
		}
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	gen_part(r, TFH_PART_TRANSFER, 3.03);
	tfh_result_free(r);
}

/* A kernel waits for an event that was recorded behind a wait, with no op between: for a copy and
 * for another kernel. Without the copy the kernel is left to wait for. */
static void test_event_behind_wait(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.01);
		dg_launch(d, 0, 1, 0.5);
		dg_copy(d, 0, 2, TFH_DIR_H2D, 16 << 20, 4);
		dg_record(d, 0, 1, 2);
		dg_wait(d, 0, 1, 1);
		dg_record(d, 0, 2, 1);
		dg_wait(d, 0, 3, 2);
		dg_launch(d, 0, 3, 3);
		dg_sync(d, 0, 3);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	dg_predicts(r, TFH_REMOVE_TRANSFER, 3.5 + 0.025);
	tfh_result_free(r);
}

/* A stream waits for a value that is written 4 ms later. */
static void test_value_of_others(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 16, 0.02);
		struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuStreamWaitValue32_v2, 1 * US);
		ev->stream = 1;
		ev->w[0] = 0x7f0000000000;
		d->wait[1] = d->now[0] + 4;
		dg_launch(d, 0, 1, 3);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_UNKNOWN);
	assert_true(fabs(r->breakdown[TFH_PART_HOST].s_per_step * 1e3 - 4) < 0.05);
	dg_predicts(r, TFH_REMOVE_HOST, 3 + 0.045);
	tfh_result_free(r);
}

/* Batches of 2 ms on a stream of their own, kernels of 3 ms on another. A copy waits by an event for the kernels of the step before (`held`), or
 * is issued only when these are done. */
static bool copies_held(bool held)
{
	struct dg *d = dg_new();
	enum { DONE = 1, UP };

	for (int i = 0; i < 60; i++) {
		if (held && i)
			dg_wait(d, 0, 2, DONE);
		dg_copy(d, 0, 2, TFH_DIR_H2D, 6 << 20, 2);
		dg_record(d, 0, UP, 2);
		dg_wait(d, 0, 1, UP);
		dg_launch(d, 0, 1, 3);
		dg_record(d, 0, DONE, 1);
		dg_sync_event(d, 0, held ? UP : DONE);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_H2D_PINNED);
	bool told = r->found.copies_held;
	tfh_result_free(r);
	return told;
}

static void test_held_copies(void **state)
{
	(void)state;
	assert_true(copies_held(true));
	assert_false(copies_held(false));
}

/* After every small layer a value is fetched, on which the next one depends. */
static void values(struct dg *d, bool fetch)
{
	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.01);
		for (int k = 0; k < 30; k++) {
			dg_launch(d, 0, 1, 0.06);
			if (fetch)
				dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 4, 2 * US);
			if (fetch) /* the thread wakes up late */
				d->g->ev[d->g->n - 1].t1 += gen_ns(30 * US);
			dg_code(d, 0, fetch ? 30 * US : 0);
		}
		dg_sync(d, 0, 1);
	}
}

static void test_fetched_values(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	values(d, true);
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_SYNC);
	const struct tfh_whatif *w = dg_whatif(r, TFH_REMOVE_SYNC);
	assert_non_null(w);
	assert_true(fabs(w->step_s * 1e3 - 30 * 0.064) < 0.05);
	tfh_result_free(r);
}

/* The end of a step is asked for every 3 ms. */
static void test_naps_between_polls(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 16, 0.02);
		dg_launch(d, 0, 1, 4);
		while (d->now[0] < d->end[1]) {
			struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuStreamQuery, 2 * US);
			ev->stream = 1;
			ev->result = 600;
			dg_code(d, 0, 3);
		}
		dg_call(d, 0, TFH_FN_cuStreamQuery, 2 * US)->stream = 1;
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_SYNC);
	dg_predicts(r, TFH_REMOVE_SYNC, 4.022);
	tfh_result_free(r);
}

/* Four streams, each copies and computes; never more than two kernels run at once, as the copies
 * take turns. Whether four could, the recording does not tell. */
static void test_side_by_side(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		double copied = 0;
		dg_get(d, 0, 0.01);
		for (uint32_t s = 1; s <= 4; s++) {
			copied = d->wait[s] = fmax(copied, d->now[0]);
			dg_copy(d, 0, s, TFH_DIR_H2D, 4 << 20, 1.5);
			copied = d->end[s];
			dg_launch(d, 0, s, 2.9);
		}
		dg_sync_all(d, 0);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	const struct tfh_whatif *w = dg_whatif(r, TFH_REMOVE_TRANSFER);
	assert_non_null(w);
	assert_true(isnan(w->step_s));
	assert_true(w->low_s * 1e3 <= 2.95 && w->low_s * 1e3 >= 2.85);
	assert_true(w->high_s * 1e3 >= 4 * 2.9 / 2 - 0.01);
	assert_true(fabs(w->floor_s * 1e3 - 2.9) < 0.01);
	tfh_result_free(r);
}

/* Part of the time that is copying, if each step makes 30 blocking copies to the device, which return 0.4 ms after them. */
static double copied(uint64_t bytes)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 30; k++) {
			dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, bytes, 10 * US);
			d->g->ev[d->g->n - 1].t1 += 400000;
			dg_code(d, 0, 0.41);
		}
		dg_launch(d, 0, 1, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	double all = 0, part = r->breakdown[TFH_PART_TRANSFER].s_per_step;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		all += r->breakdown[p].s_per_step;
	tfh_result_free(r);
	return part / all;
}

/* The driver takes the bytes of a small copy at once, so its call waits for nothing, and nothing wakes it late. */
static void test_small_copies_wait_for_nothing(void **state)
{
	(void)state;
	assert_true(copied(4096) > 0.8);
	assert_true(copied(1 << 20) < 0.3);
}

/* A thread takes batches, which lie ready for the training thread: that one's pause is its own. */
static void test_follows_nobody(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 1, 5 + 0.4 * (i * 7 % 11));
		dg_code_until(d, 1, d->now[0] + 0.1);
		dg_code(d, 0, 8);
		dg_launch(d, 0, 1, 3);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	tfh_result_free(r);
}

/* One call hands over 300 little copies: small copies, though it is a single call. */
static void test_batch_of_copies(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.01);
		double issue = d->now[0];
		struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuMemcpyBatchAsync, 10 * US), call;
		ev->dir = TFH_DIR_H2D;
		ev->stream = 1;
		ev->w[0] = 300 << 12;
		call = *ev;
		for (int k = 0; k < 300; k++) {
			struct tfh_op *op = dg_op(d, 1, issue, DG_LATENCY, 20 * US);
			dg_copy_op(op, TFH_DIR_H2D, 1 << 12, false);
			dg_issued(op, &call);
		}
		dg_launch(d, 0, 1, 4);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_SMALL_COPIES);
	tfh_result_free(r);
}

/* Two devices launched in turn, the host works 5 ms between: while the second computes the first
 * has nothing to do, as the second began late. */
static void test_devices_in_turn(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->device[2] = 1;
	for (int i = 0; i < 40; i++) {
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 16, 0.02);
		dg_launch(d, 0, 1, 6.1);
		dg_code(d, 0, 5);
		dg_launch(d, 0, 2, 6);
		dg_sync(d, 0, 2);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	gen_part(r, TFH_PART_HOST, 4.9);
	dg_predicts(r, TFH_REMOVE_HOST, 6.16);
	tfh_result_free(r);
}

/* One thread feeds two devices and waits for each before it launches on the other, so they take turns: waiting, not
 * computing. `sends`: what it waited for is then copied to the other device, which needs it. */
static struct tfh_result *one_after_another(bool sends)
{
	struct dg *d = dg_new();

	d->device[2] = 1;
	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.01);
		for (uint32_t stream = 1; stream <= 2; stream++) {
			if (sends)
				dg_copy(d, 0, stream, TFH_DIR_H2D, 1 << 16, 0.02);
			dg_launch(d, 0, stream, 4);
			dg_copy(d, 0, stream, TFH_DIR_D2H, 1 << 16, 0.02);
			dg_sync(d, 0, stream);
		}
	}
	return dg_judge(d);
}

static void test_devices_take_turns(void **state)
{
	(void)state;
	struct tfh_result *turns = one_after_another(false), *stages = one_after_another(true);

	dg_check(turns, TFH_CLASS_HOST_BOUND);
	assert_int_equal(turns->verdict.cause, TFH_CAUSE_HOST_SYNC);
	assert_int_equal(turns->found.devices_turn, 2);
	gen_part(turns, TFH_PART_COMPUTE, 4);
	dg_predicts(turns, TFH_REMOVE_SYNC, 4);
	dg_check(stages, TFH_CLASS_COMPUTE_BOUND);
	assert_int_equal(stages->found.devices_turn, 0);
	tfh_result_free(turns);
	tfh_result_free(stages);
}

/* The results of a step go to the first device before the next step, which it needs. The second device computes
 * longer: it needs nothing of the first one's in a step, so it waits in turns all the same. */
static void test_longer_one_waits(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->device[2] = 1;
	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.01);
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 16, 0.02);
		for (uint32_t stream = 1; stream <= 2; stream++) {
			dg_launch(d, 0, stream, stream == 1 ? 4 : 4.2);
			dg_copy(d, 0, stream, TFH_DIR_D2H, 1 << 16, 0.02);
			dg_sync(d, 0, stream);
		}
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_SYNC);
	assert_int_equal(r->found.devices_turn, 2);
	gen_part(r, TFH_PART_COMPUTE, 4.2);
	tfh_result_free(r);
}

/* Two stages of a model on two devices: each waits for the other, and the job computes. */
static void test_stages_on_devices(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->device[2] = 1;
	for (int i = 0; i < 40; i++) {
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 16, 0.02);
		dg_launch(d, 0, 1, 4);
		dg_record(d, 0, 1, 1);
		dg_wait(d, 0, 2, 1);
		dg_launch(d, 0, 2, 7);
		dg_record(d, 0, 2, 2);
		dg_wait(d, 0, 1, 2);
		dg_launch(d, 0, 1, 4);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_COMPUTE_BOUND);
	tfh_result_free(r);
}

/* Two devices of one process exchange gradients; the batches of the second one, which computes
 * less, come late. The first one's waiting is for that loader. */
static void test_late_device(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->device[2] = 1;
	for (int i = 0; i < 40; i++) {
		d->now[1] = d->now[0];
		dg_launch(d, 0, 1, 4);
		dg_get(d, 1, 6);
		dg_launch(d, 1, 2, 3.5);
		double last = fmax(d->end[1], d->end[2]) + DG_NEXT + 0.5;
		dg_collective(d, 0, 1, last - d->end[1] - DG_NEXT);
		dg_collective(d, 1, 2, last - d->end[2] - DG_NEXT);
		dg_launch(d, 0, 1, 0.3);
		dg_launch(d, 1, 2, 0.3);
		dg_sync(d, 1, 2);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
	gen_part(r, TFH_PART_COMMUNICATION, 0.5);
	dg_predicts(r, TFH_REMOVE_INPUT, 4 + 0.5 + 0.3 + 0.012);
	dg_predicts(r, TFH_REMOVE_COMMUNICATION, 6 + 3.5 + 0.3 + 0.012);
	tfh_result_free(r);
}

/* The same by a thread that launches nothing, while another one launches. */
static void test_order_of_another(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 1, 0.1);
		struct tfh_event *ev = dg_call(d, 1, TFH_FN_cuStreamWaitValue32_v2, 1 * US);
		ev->stream = 1;
		ev->w[0] = 0x7f0000000000;
		d->wait[1] = d->now[1] + 4;
		d->now[0] = d->now[1] + 0.01;
		dg_launch(d, 0, 1, 3);
		dg_sync(d, 0, 1);
		d->now[1] = d->now[0] + 0.01;
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_true(fabs(r->breakdown[TFH_PART_HOST].s_per_step * 1e3 - 4) < 0.1);
	tfh_result_free(r);
}

/* Memory is freed in every step, which waits for the device: without the copy it waits less. */
static void test_free_waits(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.01);
		dg_copy(d, 0, 1, TFH_DIR_H2D, 16 << 20, 4);
		dg_launch(d, 0, 1, 3);
		dg_call(d, 0, TFH_FN_cuMemFree_v2, d->end[1] + 0.2 - d->now[0]);
		dg_sync_all(d, 0);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	dg_predicts(r, TFH_REMOVE_TRANSFER, 3 + 0.2 + 0.025);
	tfh_result_free(r);
}

/* How long a copy took is asked for while a kernel runs: that records nothing, and who waits for
 * the copy's event does not wait for the kernel. */
static void test_elapsed_time(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 1);
		dg_copy(d, 0, 2, TFH_DIR_H2D, 1 << 16, 0.02);
		dg_record(d, 0, 1, 2);
		dg_launch(d, 0, 1, 3);
		dg_code(d, 0, 0.04);
		struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuEventElapsedTime, 1 * US);
		ev->stream = 1;
		ev->w[0] = 0x1000 + 8;
		dg_sync_event(d, 0, 1);
		dg_code(d, 0, 2);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
	dg_predicts(r, TFH_REMOVE_INPUT, r->steps.median_s * 1e3 - 1);
	tfh_result_free(r);
}

/* A stream that waits for a copy on another one, which says by an event, or by a value that it
 * writes, that it is done. Between the two, 600 other events are recorded whose handles once shared
 * places with the first one's. */
static void waits_for_copy(bool value)
{
	static const enum tfh_fn fn[2][2] = {
		{TFH_FN_cuEventRecord, TFH_FN_cuStreamWaitEvent},
		{TFH_FN_cuStreamWriteValue32_v2, TFH_FN_cuStreamWaitValue32_v2}};
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.01);
		dg_copy(d, 0, 2, TFH_DIR_H2D, 16 << 20, 4);
		for (int k = 0; k < 2; k++) {
			struct tfh_event *ev = dg_call(d, 0, fn[value][k], 1 * US);
			ev->stream = k ? 3 : 2;
			ev->w[0] = 0x7f0000000000;
			for (int n = 0; !k && n < 600; n++) {
				ev = dg_call(d, 0, TFH_FN_cuEventRecord, 0.1 * US);
				ev->stream = 2;
				ev->w[0] = 0x7f0000000000 + (uint64_t)(n + 1) * 4096 * 8;
			}
		}
		d->wait[3] = d->end[2] + 0.3; /* too late to be concluded from times alone */
		dg_launch(d, 0, 3, 3);
		dg_sync(d, 0, 3);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	tfh_result_free(r);
}

static void test_many_events(void **state)
{
	(void)state;
	waits_for_copy(false);
}

static void test_value_of_its_own(void **state)
{
	(void)state;
	waits_for_copy(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wait_without_op),
		cmocka_unit_test(test_event_behind_wait),
		cmocka_unit_test(test_value_of_others),
		cmocka_unit_test(test_fetched_values),
		cmocka_unit_test(test_held_copies),
		cmocka_unit_test(test_naps_between_polls),
		cmocka_unit_test(test_side_by_side),
		cmocka_unit_test(test_follows_nobody),
		cmocka_unit_test(test_small_copies_wait_for_nothing),
		cmocka_unit_test(test_batch_of_copies),
		cmocka_unit_test(test_devices_in_turn),
		cmocka_unit_test(test_free_waits),
		cmocka_unit_test(test_order_of_another),
		cmocka_unit_test(test_stages_on_devices),
		cmocka_unit_test(test_late_device),
		cmocka_unit_test(test_elapsed_time),
		cmocka_unit_test(test_many_events),
		cmocka_unit_test(test_value_of_its_own),
		cmocka_unit_test(test_devices_take_turns),
		cmocka_unit_test(test_longer_one_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
