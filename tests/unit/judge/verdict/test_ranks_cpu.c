/* Ranks on the CPU, which exchange on threads of their own (PyTorch's names of gloo's): what a backward pass waits for is
 * communication, processes without ranks are known by what they exchange, and a rank that makes the others wait is named, with the
 * line at which it is meanwhile. */
#include "../world.h"

enum { BACKWARD = 1, ALL_REDUCE = 1, SEND = 2 };

static void exchange(struct dg *d, uint32_t thread, uint32_t name, double t0, double t1)
{
	struct tfh_event *ev = gen_call(d->g, thread, TFH_FN_mark_range, t0, t1);

	ev->kind = TFT_RANGE;
	ev->w[0] = name;
	ev->w[1] = TFT_RANGE_EXCHANGE;
}

static struct dg *on_cpu(void)
{
	struct dg *d = dg_new();

	d->g->name[TFT_NAME_OP][BACKWARD] = "__inference_backward_1";
	d->g->name[TFT_NAME_STRING][ALL_REDUCE] = "gloo:all_reduce";
	d->g->name[TFT_NAME_STRING][SEND] = "gloo:send";
	d->g->process.torch = "recorded";
	d->gpu = (struct tfh_gpu_info){.source = TFH_GPU_NONE};
	return d;
}

/*
 * Each step of a rank: its batch, a backward pass whose last gradients are there after 5 ms, and the exchange of two
 * buckets, the first of which (2 ms) is hidden behind computing. The last takes 6 ms from when all ranks have come.
 */
static struct tfh_result *on_cpus(uint32_t n, uint32_t late, double get, bool ranks)
{
	struct world w = {.n = n};
	double t = 100;

	for (uint32_t i = 0; i < n; i++)
		w.d[i] = on_cpu();
	for (int s = 0; s < 60; s++) {
		double met = t + fmax(get, 0.1) + 5;
		for (uint32_t i = 0; i < n; i++) {
			double own = t + (i == late ? get : 0.1);
			gen_get(w.d[i]->g, 0, 1, 0, t, own)->depth = 0;
			gen_exec(w.d[i]->g, BACKWARD, own, met + 7);
			exchange(w.d[i], 1, ALL_REDUCE, own + 1, met - 2);
			exchange(w.d[i], 2, ALL_REDUCE, own + 5, met + 6);
		}
		t = met + 7.02;
	}
	return judge_some(&w, ranks);
}

/* What the backward pass waits for is communication; what it computes meanwhile is not. */
static void test_exposed_exchange(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 2; n++) {
		struct tfh_result *r = on_cpus(n, 0, 0.1, true);
		gen_closed(r);
		gen_expect(r, TFH_CLASS_COMMUNICATION_BOUND, TFH_CAUSE_COMMUNICATION_TRANSFER);
		gen_part(r, TFH_PART_COMMUNICATION, 6);
		gen_part(r, TFH_PART_COMPUTE, 6);
		assert_true(r->jitter_s == 0);
		tfh_result_free(r);
	}
}

/* The rank whose loader is slow leads, with its own cause; the other one's wait for it is distinguished from the transfer of both buckets. */
static void test_late_on_cpu(void **state)
{
	(void)state;
	struct tfh_result *r = on_cpus(2, 1, 15, true);

	gen_closed(r);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	assert_int_equal(r->process, 1);
	assert_true(r->rank[1].straggler && !r->rank[0].straggler);
	assert_int_equal(r->rank[0].cause, TFH_CAUSE_COMMUNICATION_JITTER);
	assert_true(fabs(r->rank[0].jitter_s * 1e3 - 12.9) < 0.2);
	tfh_result_free(r);
	for (uint32_t late = 0; late < 2; late++) { /* so it is if nobody numbers them */
		r = on_cpus(2, late, 15, false);
		gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
		assert_int_equal(r->process, late);
		assert_int_equal(r->n_rank, 2);
		assert_true(r->rank[late].straggler && r->rank[late].rank == (int32_t)late);
		assert_non_null(gen_remark(r, "no launcher numbers the ranks"));
		tfh_result_free(r);
	}
}

/* Two jobs that exchange, each for itself, are no ranks of one, although their exchanges overlap. */
static void test_two_jobs(void **state)
{
	(void)state;
	struct world w = {.n = 2};

	for (uint32_t i = 0; i < 2; i++) {
		double t = 100 + 3 * i, step = i ? 10.3 : 10;
		w.d[i] = on_cpu();
		for (int s = 0; s < 60; s++, t += step) {
			gen_get(w.d[i]->g, 0, 1, 0, t, t + 0.1)->depth = 0;
			gen_exec(w.d[i]->g, BACKWARD, t + 0.1, t + step);
			exchange(w.d[i], 1, ALL_REDUCE, t + 3, t + 9.9);
		}
	}
	struct tfh_result *r = judge_some(&w, false);
	assert_int_equal(r->n_rank, 0);
	assert_non_null(gen_remark(r, "1 more made about as many calls and is not judged"));
	tfh_result_free(r);
}

/* One of two ranks has longer batches: it is said what its step would be if both had equally long ones. */
static void test_uneven_on_cpu(void **state)
{
	(void)state;
	struct world w = {.n = 3};
	const double compute[] = {4, 4, 10};

	for (uint32_t i = 0; i < w.n; i++)
		w.d[i] = on_cpu();
	for (int s = 0; s < 60; s++)
		for (uint32_t i = 0; i < w.n; i++) {
			double t = 100 + 12 * s;
			gen_get(w.d[i]->g, 0, 1, 0, t, t + 0.1)->depth = 0;
			gen_exec(w.d[i]->g, BACKWARD, t + 0.1, t + 11.9);
			exchange(w.d[i], 1, ALL_REDUCE, t + 0.1 + compute[i], t + 11.5);
		}
	struct tfh_result *r = judge_some(&w, false);
	assert_int_equal(r->n_rank, 3);
	assert_int_equal(r->process, 2);
	assert_true(r->rank[2].straggler);
	assert_non_null(gen_says(r, "computes 10.4 ms of every step, the others 4.4 ms"));
	tfh_result_free(r);
}

enum { AT_LOOP = 1, AT_VALIDATION, TRAINS = 1, VALIDATES, FORWARD = 3 };

static const gen_stack stacks[] = {
	[AT_LOOP] = {{"/job/model.py", "forward", 7, false}, {"/job/train.py", "main", 21, false}},
	[AT_VALIDATION] = {{"/job/model.py", "forward", 7, false},
			   {"/job/train.py", "validate", 11, false},
			   {"/lib/torch/decorate.py", "decorate", 1, true},
			   {"/job/train.py", "main", 23, false}},
};

/* One of two ranks evaluates every fourth step, and the other waits for it: it is that one that is named, with the line
 * at which it is meanwhile, and a step is predicted with what it takes without. */
static void test_late_evaluation(void **state)
{
	(void)state;
	struct world w = {.n = 2};
	double t = 100;

	for (uint32_t i = 0; i < w.n; i++)
		w.d[i] = on_cpu();
	GEN_STACKS(&w.feed, stacks);
	for (int s = 0; s < 80; s++, t += 11) {
		for (uint32_t i = 0; i < w.n; i++) {
			gen_get(w.d[i]->g, 0, TRAINS, 0, t, t + 0.1)->depth = 0;
			gen_sample(w.d[i]->g, 0, t + 0.4, TFT_STATE_RUNNING, AT_LOOP, 5);
			gen_exec(w.d[i]->g, BACKWARD, t + 1, t + 10);
			exchange(w.d[i], 1, ALL_REDUCE, t + 9 + 0.1 * i, t + 9.9);
		}
		if (s % 4 != 3)
			continue;
		double met = t + 11 + 50;
		for (int e = 0; e < 5; e++) {
			double at = t + 11 + 10 * e;
			gen_get(w.d[0]->g, 0, VALIDATES, 0, at, at + 0.1)->depth = 0;
			gen_sample(w.d[0]->g, 0, at + 1, TFT_STATE_RUNNING, AT_VALIDATION, 5);
			gen_exec(w.d[0]->g, FORWARD, at + 2, at + 9.9);
		}
		gen_exec(w.d[1]->g, FORWARD, t + 11, met + 0.5);
		exchange(w.d[0], 1, ALL_REDUCE, met, met + 0.5);
		exchange(w.d[1], 1, ALL_REDUCE, t + 11, met + 0.5);
		t = met + 0.5;
	}
	for (uint32_t i = 0; i < w.n; i++) {
		w.d[i]->g->name[TFT_NAME_OP][FORWARD] = "__inference_forward_2";
		w.d[i]->g->process.has_gpu = false; /* samples are calls of no library */
	}
	struct tfh_result *r = judge_some(&w, true);
	gen_expect(r, TFH_CLASS_COMMUNICATION_BOUND, TFH_CAUSE_COMMUNICATION_JITTER);
	assert_int_equal(r->process, 1);
	assert_true(r->rank[0].straggler && !r->rank[1].straggler);
	assert_string_equal(r->found.line.function, "main");
	assert_int_equal(r->found.line.line, 23);
	assert_string_equal(r->found.line.callee, "validate");
	assert_non_null(gen_says(r, "rank 0 of 2 makes all others wait"));
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == TFH_REMOVE_COMMUNICATION)
			assert_true(r->whatif[i].about_s > 10e-3 && r->whatif[i].about_s < 14e-3 &&
				    r->whatif[i].high_s > r->whatif[i].about_s &&
				    r->whatif[i].high_s < 20e-3);
	tfh_result_free(r);
}

/* Messages between two ranks, on which the others wait for nobody, are transferred all the time. */
static void test_messages(void **state)
{
	(void)state;
	struct world w = {.n = 2};

	for (uint32_t i = 0; i < 2; i++)
		w.d[i] = on_cpu();
	for (int s = 0; s < 60; s++)
		for (uint32_t i = 0; i < 2; i++) {
			double t = 100 + 10 * s;
			gen_get(w.d[i]->g, 0, 1, 0, t, t + 0.1)->depth = 0;
			gen_exec(w.d[i]->g, BACKWARD, t + 0.1, t + 4);
			exchange(w.d[i], 1, SEND, t + 4, t + 9.9 - i);
		}
	struct tfh_result *r = judge_all(&w);
	gen_closed(r);
	gen_expect(r, TFH_CLASS_COMMUNICATION_BOUND, TFH_CAUSE_COMMUNICATION_TRANSFER);
	assert_true(r->jitter_s == 0);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exposed_exchange), cmocka_unit_test(test_late_on_cpu),
		cmocka_unit_test(test_two_jobs),	 cmocka_unit_test(test_uneven_on_cpu),
		cmocka_unit_test(test_late_evaluation),	 cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
