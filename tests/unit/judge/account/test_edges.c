/* Edge cases of the analysis with device times, each from a small simulation: which op waits for
 * which. A host far ahead, bursts of batches, graphs, several devices, streams and threads, polling
 * hosts. Parts are exact to 1 %, and time that delays nothing is not blamed. */
#include "../devgen.h"

/* The host runs three steps ahead and waits for an event of the step then: a slow get-next is
 * hidden, and so is the host's own code. */
static void test_steps_ahead(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		if (i >= 3)
			dg_sync_event(d, 0, (uint32_t)(i - 3) % 8);
		dg_get(d, 0, 6);
		dg_code(d, 0, 2);
		dg_launches(d, 1, 10, 1);
		dg_record(d, 0, (uint32_t)i % 8, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_COMPUTE_BOUND);
	gen_part(r, TFH_PART_INPUT, 0);
	gen_part(r, TFH_PART_COMPUTE, 10);
	tfh_result_free(r);
}

static void prefetch_names(struct dg *d)
{
	d->g->name[TFT_NAME_STAGE][1] = "Iterator::Root::Prefetch";
}

static void get_stage(struct dg *d, double until)
{
	struct tfh_event *ev = dg_call(d, 0, TFH_FN_tf_getnext_op, fmax(3 * US, until - d->now[0]));

	ev->w[0] = 1;
	ev->w[1] = 1;
	ev->depth = 1;
}

/* A buffer that is filled in bursts: three batches lie ready, the fourth is waited for. */
static struct tfh_result *sawtooth(double every, double host)
{
	struct dg *d = dg_new();
	double ready = 100;

	prefetch_names(d);
	for (int i = 0; i < 82; i++) {
		if (i % 4 == 0)
			ready += every;
		get_stage(d, ready);
		dg_code(d, 0, host);
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	return dg_judge(d);
}

static void test_prefetch_bursts(void **state)
{
	(void)state;
	struct tfh_result *r = sawtooth(60, 0.1);

	dg_check(r, TFH_CLASS_INPUT_BOUND);
	/* 60 ms for four steps that compute for 10.1 each and launch for 0.12. */
	gen_part(r, TFH_PART_COMPUTE, 10);
	gen_part(r, TFH_PART_INPUT, 15 - 10.13);
	dg_predicts(r, TFH_REMOVE_INPUT, 10.13);
	/* Batches come when they come: less host code only lengthens the wait. */
	tfh_result_free(r);
	r = sawtooth(60, 2);
	assert_non_null(dg_whatif(r, TFH_REMOVE_HOST));
	dg_predicts(r, TFH_REMOVE_HOST, 15);
	tfh_result_free(r);
}

/* A graph of small kernels: one launch, and its inner gaps are no launching. */
static void test_graph(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		dg_graph(d, 0, 1, 1000, 8 * US, 2 * US);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_COMPUTE_BOUND);
	gen_part(r, TFH_PART_LAUNCH, 0);
	gen_part(r, TFH_PART_COMPUTE, 10);
	assert_true(r->found.replays);
	tfh_result_free(r);
}

/* Two devices, one of which hardly works: its idleness does not hide that the other one waits, nor
 * does it make the job idle. */
static void test_idle_device(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->device[2] = 1;
	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		dg_launch(d, 0, 2, 0.5);
		dg_launches(d, 1, 10, 1);
		dg_sync_all(d, 0);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_COMPUTE_BOUND);
	gen_part(r, TFH_PART_COMPUTE, 10);
	tfh_result_free(r);
}

/* The second device works while the first one waits for the input: the step waits all the same
 * where the device that ends it does. */
static void test_busy_neighbour(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->device[2] = 1;
	for (int i = 0; i < 60; i++) {
		dg_launch(d, 0, 2, 9);
		dg_get(d, 0, 10);
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
	gen_part(r, TFH_PART_INPUT, 10);
	tfh_result_free(r);
}

/* Kernels on two streams in turn, ordered by events: neither stream's idleness counts. */
static void test_two_streams(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		for (int k = 0; k < 10; k++) {
			uint32_t s = 1 + (uint32_t)(k & 1);
			dg_launch(d, 0, s, 1);
			dg_record(d, 0, (uint32_t)k, s);
			dg_wait(d, 0, 3 - s, (uint32_t)k);
		}
		dg_sync_all(d, 0);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_COMPUTE_BOUND);
	gen_part(r, TFH_PART_COMPUTE, 10);
	tfh_result_free(r);
}

/* The loss is fetched and looked at in the middle of the step: the host's waking up is the sync's,
 * what it does with it its own. */
static void test_sync_latency(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 3 * US);
		for (int k = 0; k < 100; k++) {
			dg_launch(d, 0, 1, 20 * US);
			dg_sync(d, 0, 1);
		}
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	gen_part(r, TFH_PART_SYNC, 100 * DG_WAKE);
	gen_part(r, TFH_PART_LAUNCH, 100 * DG_LATENCY);
	gen_part(r, TFH_PART_COMPUTE, 2);
	dg_predicts(r, TFH_REMOVE_SYNC, 100 * (20 * US + DG_NEXT));
	tfh_result_free(r);
}

/* A host that polls instead of waiting. */
static void test_polling(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 5);
		dg_launches(d, 1, 10, 1);
		dg_record(d, 0, 1, 1);
		while (d->now[0] < d->event[1]) {
			struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuEventQuery, 2 * US);
			ev->w[0] = 0x1008;
			ev->result = 600;
			dg_code(d, 0, 3 * US);
		}
		dg_call(d, 0, TFH_FN_cuEventQuery, 2 * US)->w[0] = 0x1008;
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
	gen_part(r, TFH_PART_INPUT, 5);
	gen_part(r, TFH_PART_COMPUTE, 10);
	dg_predicts(r, TFH_REMOVE_INPUT, 10.02);
	tfh_result_free(r);
}

/* A collective on a stream of its own: what computing does not cover blocks. */
static struct tfh_result *exchange(double ms)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		dg_launches(d, 1, 5, 1);
		dg_record(d, 0, 1, 1);
		dg_wait(d, 0, 2, 1);
		if (ms > 0)
			dg_collective(d, 0, 2, ms);
		dg_record(d, 0, 2, 2);
		dg_launches(d, 1, 3, 1);
		dg_wait(d, 0, 1, 2);
		dg_launches(d, 1, 2, 1);
	}
	return dg_judge(d);
}

static void test_exchange(void **state)
{
	(void)state;
	struct tfh_result *r = exchange(7), *none = exchange(0);

	dg_check(r, TFH_CLASS_COMMUNICATION_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_COMMUNICATION_TRANSFER);
	gen_part(r, TFH_PART_COMMUNICATION, 4);
	gen_part(r, TFH_PART_COMPUTE, 10);
	dg_predicts(r, TFH_REMOVE_COMMUNICATION, none->steps.median_s * 1e3);
	tfh_result_free(r);
	tfh_result_free(none);
	r = exchange(2.9);
	dg_check(r, TFH_CLASS_COMPUTE_BOUND);
	tfh_result_free(r);
}

/* The backward pass is launched by a thread of its own, which waits while the first one goes on. */
static struct tfh_result *two_threads(double get)
{
	struct dg *d = dg_new();

	d->now[1] = 0;
	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, get);
		dg_launches(d, 1, 5, 1);
		dg_code_until(d, 1, d->now[0] + 0.03);
		for (int k = 0; k < 5; k++) {
			dg_code(d, 1, 0.1);
			dg_launch(d, 1, 1, 1);
		}
		dg_code_until(d, 0, d->now[1] + 0.03);
		dg_launch(d, 0, 1, 0.5);
		dg_sync(d, 0, 1);
	}
	return dg_judge(d);
}

static void test_two_threads(void **state)
{
	(void)state;
	struct tfh_result *r = two_threads(6), *fast = two_threads(3 * US);

	dg_check(r, TFH_CLASS_INPUT_BOUND);
	gen_part(r, TFH_PART_INPUT, 6);
	gen_part(r, TFH_PART_COMPUTE, 10.5);
	dg_predicts(r, TFH_REMOVE_INPUT, fast->steps.median_s * 1e3);
	tfh_result_free(r);
	tfh_result_free(fast);
}

/* Another thread fetches the batch and hands it over. */
static void test_getnext_thread(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_code_until(d, 1, d->now[0] + 0.02);
		dg_get(d, 1, 8);
		dg_code_until(d, 0, d->now[1] + 0.02);
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
	gen_part(r, TFH_PART_INPUT, 8);
	dg_predicts(r, TFH_REMOVE_INPUT, 10.06);
	tfh_result_free(r);
}

/* A function of the program's runs in the stream between two kernels, and one at its end that the
 * host waits for. */
static double host_functions(struct dg *d, double ms)
{
	double t0 = 0;

	for (int i = 0; i < 40; i++) {
		if (i == 39)
			t0 = d->now[0];
		dg_get(d, 0, 0.05);
		dg_launch(d, 0, 1, 4);
		for (int k = 0; k < 2; k++) {
			dg_call(d, 0, TFH_FN_cuLaunchHostFunc, DG_CALL)->stream = 1;
			if (ms > 0)
				gen_call(d->g, 2, TFH_FN_host_function, d->end[1] + 10 * US,
					 d->end[1] + 10 * US + ms);
			d->end[1] += 10 * US + ms + 5 * US;
			if (!k)
				dg_launch(d, 0, 1, 2);
		}
		dg_sync(d, 0, 1);
	}
	return d->now[0] - t0;
}

static void test_host_functions(void **state)
{
	(void)state;
	struct dg *d = dg_new(), *other = dg_new();

	host_functions(d, 3);
	double without = host_functions(other, 0);
	dg_free(other);
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_CALLBACK);
	assert_non_null(gen_says(r, "functions of the program that it queued"));
	gen_part(r, TFH_PART_HOST, 6);
	dg_predicts(r, TFH_REMOVE_HOST, without);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_ahead),    cmocka_unit_test(test_prefetch_bursts),
		cmocka_unit_test(test_graph),	       cmocka_unit_test(test_idle_device),
		cmocka_unit_test(test_busy_neighbour), cmocka_unit_test(test_two_streams),
		cmocka_unit_test(test_sync_latency),   cmocka_unit_test(test_polling),
		cmocka_unit_test(test_exchange),       cmocka_unit_test(test_two_threads),
		cmocka_unit_test(test_getnext_thread), cmocka_unit_test(test_host_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
