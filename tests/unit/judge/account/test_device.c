/* Synthetic GPU jobs seen from the host only: from waits, copies, launches and pauses, the analysis
 * finds the class, cause and parts that the trace was made from. Host time hidden behind a busy
 * device is never blamed. */
#include "../analyze_gen.h"

#define US 0.001

static struct gen *gpu(void)
{
	struct gen *g = gen_new();

	g->name[TFT_NAME_FUNCTION][1] = "gemm";
	g->name[TFT_NAME_FUNCTION][2] = "relu";
	return g;
}

static void launch(struct gen *g, double t0, double t1, uint32_t function)
{
	struct tfh_event *ev = gen_call(g, 0, TFH_FN_cuLaunchKernel, t0, t1);

	ev->w[0] = function;
	ev->stream = 1;
}

static void sync(struct gen *g, double t0, double t1)
{
	gen_call(g, 0, TFH_FN_cuCtxSynchronize, t0, t1);
}

/* Shape of a simple step: host pause, pageable copy, launches, wait. */
struct shape {
	int steps;
	double pause, copy, launch_gap, wait;
	int launches;
	uint64_t bytes;
};

static struct tfh_result *loop(const struct shape *s)
{
	struct gen *g = gpu();
	double t = 100;

	for (int i = 0; i < s->steps; i++) {
		if (s->copy > 0)
			gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t, t + s->copy, s->bytes, true);
		t += s->copy;
		for (int k = 0; k < s->launches; k++, t += s->launch_gap)
			launch(g, t, t + 3 * US, k & 1 ? 2 : 1);
		sync(g, t, t + s->wait);
		t += s->wait + s->pause;
	}
	return gen_judge(g);
}

static void test_pageable_copies(void **state)
{
	(void)state;
	struct tfh_result *r = loop(&(struct shape){.steps = 50,
						    .copy = 15,
						    .launch_gap = 5 * US,
						    .launches = 10,
						    .wait = 4,
						    .bytes = 100 << 20});

	gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_H2D_PAGEABLE);
	assert_int_equal(r->steps.total, 50);
	assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_PERIOD);
	gen_part(r, TFH_PART_TRANSFER, 15);
	gen_part(r, TFH_PART_COMPUTE, 4.05);
	gen_closed(r);
	assert_int_equal(r->n_transfers, 1);
	assert_int_equal(r->transfers[0].pageable, 1);
	tfh_result_free(r);
}

static void test_long_kernels(void **state)
{
	(void)state;
	struct tfh_result *r = loop(&(struct shape){.steps = 50,
						    .copy = 0.2,
						    .launch_gap = 5 * US,
						    .launches = 10,
						    .wait = 30,
						    .bytes = 1 << 20});

	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
	gen_part(r, TFH_PART_COMPUTE, 30.05);
	tfh_result_free(r);
}

static void test_many_launches(void **state)
{
	(void)state;
	struct tfh_result *r = loop(&(struct shape){.steps = 40,
						    .copy = 0.1,
						    .launch_gap = 8 * US,
						    .launches = 2000,
						    .wait = 0.01,
						    .bytes = 1 << 16});

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
	gen_part(r, TFH_PART_LAUNCH, 16);
	assert_int_equal(r->steps.total, 40);
	tfh_result_free(r);
}

/* A thread that is now and then woken late from a wait does not make the launches before it
 * compute. */
static void test_late_wakeups(void **state)
{
	(void)state;
	struct gen *g = gpu();
	double t = 100;

	for (int i = 0; i < 60; i++) {
		double wait = i % 4 == 3 ? 4 : 0.01;
		for (int k = 0; k < 2000; k++, t += 8 * US)
			launch(g, t, t + 3 * US, k & 1 ? 2 : 1);
		sync(g, t, t + wait);
		t += wait;
	}
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
	gen_part(r, TFH_PART_LAUNCH, 16);
	assert_int_equal(r->steps.classes[TFH_CLASS_HOST_BOUND].count, r->steps.count);
	tfh_result_free(r);
}

/* A plain loader: nobody can tell a pause from waiting for data. */
static void test_no_pipeline(void **state)
{
	(void)state;
	struct tfh_result *r = loop(&(struct shape){.steps = 50,
						    .pause = 20,
						    .copy = 0.1,
						    .launch_gap = 5 * US,
						    .launches = 10,
						    .wait = 3,
						    .bytes = 1 << 16});

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_UNKNOWN);
	gen_part(r, TFH_PART_HOST, 20);
	assert_non_null(gen_remark(r, "no input pipeline was visible"));
	tfh_result_free(r);
}

static void test_balanced(void **state)
{
	(void)state;
	/* 87 % compute; copy, pause and nothing else above 4.5 % */
	struct tfh_result *r = loop(&(struct shape){.steps = 50,
						    .pause = 0.44,
						    .copy = 0.44,
						    .launch_gap = 4 * US,
						    .launches = 2,
						    .wait = 7.9,
						    .bytes = 1 << 20});

	gen_part(r, TFH_PART_COMPUTE, 7.908);
	tfh_result_free(r);
}

/* The batch comes from a get-next, the device works on: hidden or not shows the wait behind it. */
static struct tfh_result *asynchronous(double get, double device_left)
{
	struct gen *g = gpu();
	double t = 100;

	for (int i = 0; i < 60; i++) {
		gen_get(g, 0, 1, 0, t, t + get)->depth = 0;
		t += get;
		if (i) {
			sync(g, t, t + device_left);
			t += device_left;
		}
		gen_copy(g, TFH_FN_cuMemcpyHtoDAsync_v2, t, t + 5 * US, 1 << 16, false);
		t += 6 * US;
		for (int k = 0; k < 10; k++, t += 6 * US)
			launch(g, t, t + 4 * US, 1);
	}
	return gen_judge(g);
}

static void test_hidden_input(void **state)
{
	(void)state;
	/* 10 ms of get-next while the device has 14 ms to do: no harm */
	struct tfh_result *r = asynchronous(10, 4);
	assert_int_equal(r->verdict.cls, TFH_CLASS_COMPUTE_BOUND);
	gen_closed(r);
	tfh_result_free(r);
	/* the device was done long before */
	r = asynchronous(10, 0.005);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	gen_closed(r);
	tfh_result_free(r);
}

/* A queue that is full makes launches long: the device computes. */
static void test_full_queue(void **state)
{
	(void)state;
	struct gen *g = gpu();
	double t = 100;

	for (int i = 0; i < 40; i++) {
		gen_copy(g, TFH_FN_cuMemcpyHtoDAsync_v2, t, t + 4 * US, 1 << 12, false);
		t += 5 * US;
		for (int k = 0; k < 100; k++) {
			double d = i > 2 ? 0.2 : 4 * US;
			launch(g, t, t + d, 1);
			t += d + US;
		}
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->verdict.cls, TFH_CLASS_COMPUTE_BOUND);
	tfh_result_free(r);
}

/* Pinned copies that are queued and waited for alone are transfer. */
static void test_pinned_copies(void **state)
{
	(void)state;
	struct gen *g = gpu();
	double t = 100;

	for (int i = 0; i < 50; i++) {
		gen_copy(g, TFH_FN_cuMemcpyHtoDAsync_v2, t, t + 5 * US, 200 << 20, false);
		sync(g, t + 6 * US, t + 10);
		launch(g, t + 10.01, t + 10.02, 1);
		sync(g, t + 10.03, t + 14);
		t += 14.01;
	}
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_H2D_PINNED);
	gen_part(r, TFH_PART_TRANSFER, 10);
	gen_part(r, TFH_PART_COMPUTE, 3.98);
	tfh_result_free(r);
}

/* Results fetched with a blocking copy: waiting for the kernels is compute, the copying itself
 * transfer. */
static void test_fetch(void **state)
{
	(void)state;
	for (int big = 0; big < 2; big++) {
		struct gen *g = gpu();
		double t = 100, compute = big ? 2 : 12, copy = big ? 12 : 0.01;
		/* the link's speed shows in a copy with nothing before it */
		gen_copy(g, TFH_FN_cuMemcpyDtoH_v2, t - 50, t - 50 + copy, big ? 120 << 20 : 4096,
			 true);
		for (int i = 0; i < 50; i++) {
			for (int k = 0; k < 5; k++, t += 5 * US)
				launch(g, t, t + 3 * US, 1);
			gen_copy(g, TFH_FN_cuMemcpyDtoH_v2, t, t + compute + copy,
				 big ? 120 << 20 : 4096, true);
			t += compute + copy + 0.01;
		}
		struct tfh_result *r = gen_judge(g);
		if (big)
			gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_D2H);
		else
			gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
		gen_part(r, TFH_PART_TRANSFER, copy);
		assert_int_equal(r->steps.total, 50);
		tfh_result_free(r);
	}
}

static void test_small_copies(void **state)
{
	(void)state;
	struct gen *g = gpu();
	double t = 100;

	for (int i = 0; i < 30; i++) {
		gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t, t + 20 * US, 5000, true);
		t += 21 * US;
		for (int k = 0; k < 400; k++, t += 21 * US)
			gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t, t + 20 * US, 4096, true);
		launch(g, t, t + 4 * US, 1);
		sync(g, t + 5 * US, t + 2);
		t += 2.01;
	}
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_SMALL_COPIES);
	assert_int_equal(r->steps.total, 30);
	tfh_result_free(r);
}

/* A wait with nothing to wait for costs the call; polling a busy device is waiting for it. */
static void test_waits(void **state)
{
	(void)state;
	struct gen *g = gpu();
	double t = 100;

	for (int i = 0; i < 50; i++) {
		gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t, t + 0.1, 1 << 16, true);
		launch(g, t + 0.11, t + 0.12, 1);
		t += 0.13;
		for (int k = 0; k < 200; k++, t += 0.05)
			gen_call(g, 0, TFH_FN_cuStreamQuery, t, t + 0.04)->result = 600;
		gen_call(g, 0, TFH_FN_cuStreamQuery, t, t + 0.004);
		t += 0.01;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->verdict.cls, TFH_CLASS_COMPUTE_BOUND);
	assert_int_equal(r->steps.total, 50);
	tfh_result_free(r);
}

static void test_marks_come_first(void **state)
{
	(void)state;
	struct gen *g = gpu();
	double t = 100;

	/* two copies and waits in each marked step */
	for (int i = 0; i < 30; i++) {
		double begin = t;
		for (int k = 0; k < 2; k++) {
			gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t, t + 1, 1 << 20, true);
			launch(g, t + 1.01, t + 1.02, 1);
			sync(g, t + 1.03, t + 4);
			t += 4.01;
		}
		gen_call(g, 0, TFH_FN_mark_step, begin, t - 0.005)->kind = TFT_MARK;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 30);
	assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_MARK);
	gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_H2D_PAGEABLE);
	gen_part(r, TFH_PART_TRANSFER, 2);
	tfh_result_free(r);
}

/* Callback after the step's last wait, in a job whose batches come from a visible pipeline. */
static void test_callback(void **state)
{
	(void)state;
	struct gen *g = gpu();
	double t = 100;

	for (int i = 0; i < 50; i++) {
		gen_get(g, 0, 1, 0, t, t + 0.1)->depth = 0;
		gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t + 0.11, t + 0.3, 1 << 20, true);
		launch(g, t + 0.31, t + 0.32, 1);
		sync(g, t + 0.33, t + 5);
		t += 15;
	}
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CALLBACK);
	gen_part(r, TFH_PART_HOST, 10);
	assert_int_equal(r->steps.total, 50);
	tfh_result_free(r);
}

/* A kernel is compiled in the middle of the run: that step is a phase of its own. */
static void test_compile(void **state)
{
	(void)state;
	struct gen *g = gpu();
	double t = 100;

	for (int i = 0; i < 60; i++) {
		gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t, t + 0.2, 1 << 20, true);
		launch(g, t + 0.21, t + 0.22, 1);
		sync(g, t + 0.23, t + 6);
		t += 6.01;
		if (i == 30) {
			gen_call(g, 0, TFH_FN_cuModuleLoadData, t, t + 80);
			t += 80;
		}
	}
	struct tfh_result *r = gen_judge(g);
	bool found = false;
	for (uint32_t i = 0; i < r->n_segments; i++)
		found |= r->segments[i].kind == TFH_SEGMENT_COMPILE && r->segments[i].count == 1;
	assert_true(found);
	assert_int_equal(r->verdict.cls, TFH_CLASS_COMPUTE_BOUND);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pageable_copies),	 cmocka_unit_test(test_long_kernels),
		cmocka_unit_test(test_many_launches),	 cmocka_unit_test(test_no_pipeline),
		cmocka_unit_test(test_late_wakeups),	 cmocka_unit_test(test_balanced),
		cmocka_unit_test(test_hidden_input),	 cmocka_unit_test(test_full_queue),
		cmocka_unit_test(test_pinned_copies),	 cmocka_unit_test(test_fetch),
		cmocka_unit_test(test_small_copies),	 cmocka_unit_test(test_waits),
		cmocka_unit_test(test_marks_come_first), cmocka_unit_test(test_callback),
		cmocka_unit_test(test_compile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
