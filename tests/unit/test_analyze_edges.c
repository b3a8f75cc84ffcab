/* The edge cases of judging from device times, each made by a small simulation: host far ahead,
 * prefetching, copies and graphs that overlap, migration, several devices, evaluation, checkpoints,
 * recompilation, polling hosts, holes. Parts are exact to 1 %, and what costs nothing is not
 * blamed. */
#include "devgen.h"

static void check(const struct tfh_result *r, enum tfh_class cls)
{
	gen_closed(r);
	assert_int_equal(r->verdict.tier, 'A');
	if (r->verdict.cls != cls)
		for (int p = 0; p < TFH_PART_COUNT; p++)
			print_message("%s %.4f ms\n", tfh_part_name(p),
				      r->breakdown[p].s_per_step * 1e3);
	assert_string_equal(tfh_class_name(r->verdict.cls), tfh_class_name(cls));
}

static void kernels(struct dg *d, uint32_t stream, int n, double ms)
{
	for (int i = 0; i < n; i++)
		dg_launch(d, 0, stream, ms);
}

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
		kernels(d, 1, 10, 1);
		dg_record(d, 0, (uint32_t)i % 8, 1);
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_COMPUTE_BOUND);
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
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	return dg_judge(d);
}

static void test_prefetch_bursts(void **state)
{
	(void)state;
	struct tfh_result *r = sawtooth(60, 0.1);

	check(r, TFH_CLASS_INPUT_BOUND);
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

/* The copy for the next step runs beside this step's kernels on a stream of its own. */
static struct tfh_result *prefetch_to_device(double copy)
{
	struct dg *d = dg_new();

	dg_get(d, 0, 0.1);
	dg_copy(d, 0, 2, TFH_DIR_H2D, 50 << 20, copy);
	dg_record(d, 0, 1, 2);
	for (int i = 0; i < 60; i++) {
		dg_wait(d, 0, 1, 1);
		kernels(d, 1, 10, 1);
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

	check(r, TFH_CLASS_COMPUTE_BOUND);
	gen_part(r, TFH_PART_TRANSFER, 0);
	tfh_result_free(r);
	/* Slower than a step: what is not hidden blocks. */
	r = prefetch_to_device(14);
	check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_H2D_PINNED);
	gen_part(r, TFH_PART_COMPUTE, 10);
	fast = prefetch_to_device(US);
	dg_predicts(r, TFH_REMOVE_TRANSFER, fast->steps.median_s * 1e3);
	tfh_result_free(fast);
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
	check(r, TFH_CLASS_COMPUTE_BOUND);
	gen_part(r, TFH_PART_LAUNCH, 0);
	gen_part(r, TFH_PART_COMPUTE, 10);
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
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_COMPUTE_BOUND);
	gen_part(r, TFH_PART_TRANSFER, 0);
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
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_TRANSFER_BOUND);
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
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_TRANSFER_BOUND);
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
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_TRANSFER_BOUND);
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
	check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_MANAGED);
	gen_part(r, TFH_PART_TRANSFER, 5);
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
		kernels(d, 1, 10, 1);
		dg_sync_all(d, 0);
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_COMPUTE_BOUND);
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
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_INPUT_BOUND);
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
	check(r, TFH_CLASS_COMPUTE_BOUND);
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
	check(r, TFH_CLASS_HOST_BOUND);
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
		kernels(d, 1, 10, 1);
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
	check(r, TFH_CLASS_INPUT_BOUND);
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
		kernels(d, 1, 5, 1);
		dg_record(d, 0, 1, 1);
		dg_wait(d, 0, 2, 1);
		if (ms > 0)
			dg_collective(d, 0, 2, ms);
		dg_record(d, 0, 2, 2);
		kernels(d, 1, 3, 1);
		dg_wait(d, 0, 1, 2);
		kernels(d, 1, 2, 1);
	}
	return dg_judge(d);
}

static void test_exchange(void **state)
{
	(void)state;
	struct tfh_result *r = exchange(7), *none = exchange(0);

	check(r, TFH_CLASS_COMMUNICATION_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_COMMUNICATION_TRANSFER);
	gen_part(r, TFH_PART_COMMUNICATION, 4);
	gen_part(r, TFH_PART_COMPUTE, 10);
	dg_predicts(r, TFH_REMOVE_COMMUNICATION, none->steps.median_s * 1e3);
	tfh_result_free(r);
	tfh_result_free(none);
	r = exchange(2.9);
	check(r, TFH_CLASS_COMPUTE_BOUND);
	tfh_result_free(r);
}

/* The backward pass is launched by a thread of its own, which waits while the first one goes on. */
static struct tfh_result *two_threads(double get)
{
	struct dg *d = dg_new();

	d->now[1] = 0;
	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, get);
		kernels(d, 1, 5, 1);
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

	check(r, TFH_CLASS_INPUT_BOUND);
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
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_INPUT_BOUND);
	gen_part(r, TFH_PART_INPUT, 8);
	dg_predicts(r, TFH_REMOVE_INPUT, 10.06);
	tfh_result_free(r);
}

/* Every 20th step saves a checkpoint: fetches much and writes it. Those are no usual steps. */
static void test_checkpoint(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 100; i++) {
		dg_get(d, 0, 0.05);
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
		if (i % 20 == 19) {
			dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 500 << 20, 40);
			dg_code(d, 0, 150);
		}
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_COMPUTE_BOUND);
	bool seen = false;
	for (uint32_t i = 0; i < r->n_segments; i++)
		if (r->segments[i].kind == TFH_SEGMENT_CHECKPOINT) {
			seen = true;
			assert_int_equal(r->segments[i].count, 4);
			assert_true(fabs(r->segments[i].every_steps - 20) < 6);
		}
	assert_true(seen);
	tfh_result_free(r);
}

/* A module that is loaded in the middle of the run. */
static void test_recompile(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		if (i == 30)
			dg_call(d, 0, TFH_FN_cuModuleLoadData, 300);
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_COMPUTE_BOUND);
	bool seen = false;
	for (uint32_t i = 0; i < r->n_segments; i++)
		seen |= r->segments[i].kind == TFH_SEGMENT_COMPILE && r->segments[i].count == 1;
	assert_true(seen);
	tfh_result_free(r);
}

/* Steps of very different length are of one class all the same. */
static void test_lengths(void **state)
{
	(void)state;
	struct dg *d = dg_new();
	unsigned seed = 7;

	for (int i = 0; i < 80; i++) {
		seed = seed * 1103515245 + 12345;
		int n = 5 + (int)(seed >> 16) % 20;
		dg_get(d, 0, 0.6 * n);
		kernels(d, 1, n, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_INPUT_BOUND);
	assert_true(r->steps.classes[TFH_CLASS_INPUT_BOUND].count >= r->steps.count * 98 / 100);
	assert_true(fabs(r->breakdown[TFH_PART_INPUT].share - 0.6 / 1.6) < 0.01);
	tfh_result_free(r);
}

/* Steps that touch a hole are unclassified, and nothing of them is taken for idleness. */
static void test_hole(void **state)
{
	(void)state;
	struct dg *d = dg_new();
	double from = 0, to = 0;

	for (int i = 0; i < 60; i++) {
		if (i == 30)
			from = d->now[0] + 1;
		dg_get(d, 0, 10);
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
		if (i == 34)
			to = d->now[0] - 1;
	}
	d->g->hole[d->g->n_hole++] =
		(struct tfh_hole){.thread = 0, .t0 = gen_ns(from), .t1 = gen_ns(to), .count = 9};
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_INPUT_BOUND);
	assert_in_range(r->steps.unclassified, 5, 7);
	gen_part(r, TFH_PART_INPUT, 10);
	tfh_result_free(r);
}

/* Device times of a part of the run only: those steps are judged from them, the others from the
 * host, and the verdict is that of the former. */
static void test_span(void **state)
{
	(void)state;
	struct dg *d = dg_new();
	double from = 0, to = 0;
	size_t n = 0;

	for (int i = 0; i < 100; i++) {
		if (i == 40)
			from = d->now[0] - 0.01;
		if (i == 60)
			to = d->now[0] + 0.01;
		if (i > 1)
			dg_sync_event(d, 0, (uint32_t)(i - 2) % 8);
		dg_get(d, 0, 6);
		kernels(d, 1, 10, 1);
		dg_record(d, 0, (uint32_t)i % 8, 1);
	}
	/* Ops that were issued before are not seen, nor those that are not done at the end. */
	for (size_t i = 0; i < d->n; i++)
		if (d->op[i].issue0 >= gen_ns(from) && d->op[i].t1 < gen_ns(to))
			d->op[n++] = d->op[i];
	d->n = n;
	d->gpu.n_span = 1;
	d->span[0] = (struct tfh_gpu_span){gen_ns(from), gen_ns(to), true};
	struct tfh_result *r = dg_judge(d);
	uint32_t a = 0;
	gen_closed(r);
	assert_int_equal(r->verdict.tier, 'A');
	for (uint64_t i = 0; i < r->n_step; i++)
		a += r->step[i].tier == 'A';
	assert_in_range(a, 15, 19);
	gen_part(r, TFH_PART_COMPUTE, 10);
	tfh_result_free(r);
}

/* Ops without their calls: copies that run are blamed while they run, the rest is what the threads
 * did meanwhile; nothing is predicted but bounds. */
static void test_tier_b(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 10);
		dg_copy(d, 0, 1, TFH_DIR_H2D, 40 << 20, 2);
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	for (size_t i = 0; i < d->n; i++) {
		d->op[i].issue0 = d->op[i].issue1 = INT64_MIN;
		d->op[i].thread = UINT32_MAX;
	}
	d->gpu.dependencies = false;
	struct tfh_result *r = dg_judge(d);
	gen_closed(r);
	assert_int_equal(r->verdict.tier, 'B');
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	gen_part(r, TFH_PART_INPUT, 10);
	gen_part(r, TFH_PART_TRANSFER, 2);
	assert_true(isnan(dg_whatif(r, TFH_REMOVE_INPUT)->step_s));
	tfh_result_free(r);
}

/* Kernels of a few blocks, and one kernel among others that takes most of the time. */
static void test_compute_causes(void **state)
{
	(void)state;
	struct tfh_result *r;

	for (int turn = 0; turn < 2; turn++) {
		struct dg *d = dg_new();
		for (int i = 0; i < 60; i++) {
			dg_get(d, 0, 0.05);
			for (int k = 0; k < 10; k++) {
				struct tfh_op *op = dg_launch(d, 0, 1, turn && k == 3 ? 30 : 1);
				op->name = k == 3 ? "slow" : k & 1 ? "a" : "b";
				op->grid = turn ? op->grid : 4 | 1ull << 32 | 1ull << 48;
			}
		}
		r = dg_judge(d);
		check(r, TFH_CLASS_COMPUTE_BOUND);
		assert_int_equal(r->verdict.cause, turn ? TFH_CAUSE_COMPUTE_DOMINANT_OP
							: TFH_CAUSE_COMPUTE_UNDERFILLED);
		if (turn)
			assert_string_equal(r->kernels[0].name, "slow");
		tfh_result_free(r);
	}
}

/* In the middle of the step an op falls back to the host: fetch, compute there, copy back. */
static struct tfh_result *fallback(bool there)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 20, 0.1);
		kernels(d, 1, 5, 1);
		if (there) {
			dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 8 << 20, 1);
			dg_code(d, 0, 4);
			dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 8 << 20, 1);
		}
		kernels(d, 1, 5, 1);
		dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 1 << 20, 0.1);
	}
	return dg_judge(d);
}

static void test_fallback(void **state)
{
	(void)state;
	struct tfh_result *r = fallback(true), *without = fallback(false);
	double rest = 0.1 + 0.1 + DG_WAKE;

	check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_FALLBACK);
	gen_part(r, TFH_PART_TRANSFER, 6 + rest);
	/* All copies are removed, those of the batch and the loss, too. */
	dg_predicts(r, TFH_REMOVE_TRANSFER, without->steps.median_s * 1e3 - rest);
	tfh_result_free(r);
	tfh_result_free(without);
}

/* Every tenth step writes a log. */
static void test_periodic(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 100; i++) {
		dg_get(d, 0, 0.05);
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
		if (i % 10 == 9)
			dg_code(d, 0, 6);
	}
	struct tfh_result *r = dg_judge(d);
	bool seen = false;
	check(r, TFH_CLASS_COMPUTE_BOUND);
	for (uint32_t i = 0; i < r->n_remark; i++)
		seen |= strstr(r->remark[i], "every 10th step takes 6.0 ms longer") &&
			strstr(r->remark[i], "(host)");
	assert_true(seen);
	tfh_result_free(r);
}

/* Training, then an evaluation over another iterator with a shorter graph, in turn. */
static void test_evaluation(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->g->name[TFT_NAME_OP][1] = "__inference_train_function_10";
	d->g->name[TFT_NAME_OP][2] = "__inference_test_function_20";
	for (int epoch = 0; epoch < 4; epoch++) {
		for (int i = 0; i < 30; i++) {
			dg_get(d, 0, 6);
			double t = d->now[0];
			kernels(d, 1, 10, 1);
			dg_sync(d, 0, 1);
			gen_exec(d->g, 1, t, d->now[0]);
		}
		for (int i = 0; i < 10; i++) {
			struct tfh_event *ev = dg_call(d, 0, TFH_FN_tf_getnext_op, 0.05);
			ev->w[0] = 2;
			ev->depth = 1;
			double t = d->now[0];
			kernels(d, 1, 3, 1);
			dg_sync(d, 0, 1);
			gen_exec(d->g, 2, t, d->now[0]);
		}
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_INPUT_BOUND);
	gen_part(r, TFH_PART_INPUT, 6);
	gen_part(r, TFH_PART_COMPUTE, 10);
	bool seen = false;
	for (uint32_t i = 0; i < r->n_segments; i++)
		seen |= r->segments[i].kind == TFH_SEGMENT_EVAL && r->segments[i].count == 4;
	assert_true(seen);
	tfh_result_free(r);
}

/* Eight batches per executed call, whose launches follow each get-next. */
static void test_steps_per_execution(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->g->name[TFT_NAME_OP][1] = "__inference_multi_step_17";
	for (int i = 0; i < 20; i++) {
		double t = d->now[0];
		for (int k = 0; k < 8; k++) {
			dg_get(d, 0, 4);
			kernels(d, 1, 10, 1);
			dg_sync(d, 0, 1);
		}
		gen_exec(d->g, 1, t, d->now[0] + 0.01);
		dg_code(d, 0, 0.05);
	}
	struct tfh_result *r = dg_judge(d);
	check(r, TFH_CLASS_INPUT_BOUND);
	gen_part(r, TFH_PART_INPUT, 4);
	gen_part(r, TFH_PART_COMPUTE, 10);
	tfh_result_free(r);
}

static void memory(struct dg *d, enum tfh_fn fn, uint64_t bytes, uint64_t address, uint16_t result)
{
	struct tfh_event *ev = dg_call(d, 0, fn, 10 * US);

	ev->kind = TFT_ALLOC;
	ev->w[0] = bytes;
	ev->w[1] = address;
	ev->result = result;
}

/* What was in use when, the peak, and a request that failed. */
static void test_memory(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	memory(d, TFH_FN_cuMemAlloc_v2, 1 << 30, 0x10000, 0);
	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		if (i == 20)
			memory(d, TFH_FN_cuMemAlloc_v2, 2ull << 30, 0x20000, 0);
		if (i == 30)
			memory(d, TFH_FN_cuMemFree_v2, 0, 0x20000, 0);
		if (i == 40)
			memory(d, TFH_FN_cuMemAlloc_v2, 7ull << 30, 0, 2);
		memory(d, TFH_FN_cuMemAllocHost_v2, 1 << 30, 0x900000 + (uint64_t)i, 0);
		kernels(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	const struct tfh_heap_sum *h = &r->heap;
	assert_int_equal(h->peak, 3ull << 30);
	assert_int_equal(h->in_use, 1ull << 30);
	assert_int_equal(h->allocations, 2);
	assert_int_equal(h->failed, 1);
	assert_int_equal(h->failure[0].at.bytes, 7ull << 30);
	assert_int_equal(h->failure[0].in_use, 1ull << 30);
	assert_int_equal(h->failure[0].n_before, 2);
	assert_int_equal(h->failure[0].before[0].bytes, 2ull << 30);
	assert_int_equal(h->drawn, TFH_HEAP_POINTS);
	assert_int_equal(h->line[TFH_HEAP_POINTS - 1], 1ull << 30);
	assert_int_equal(h->line[TFH_HEAP_POINTS * 45 / 100], 3ull << 30);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_ahead),
		cmocka_unit_test(test_prefetch_bursts),
		cmocka_unit_test(test_prefetch_to_device),
		cmocka_unit_test(test_graph),
		cmocka_unit_test(test_hidden_copies),
		cmocka_unit_test(test_small_copies),
		cmocka_unit_test(test_queued_copies),
		cmocka_unit_test(test_prefetched_pages),
		cmocka_unit_test(test_managed),
		cmocka_unit_test(test_idle_device),
		cmocka_unit_test(test_busy_neighbour),
		cmocka_unit_test(test_two_streams),
		cmocka_unit_test(test_sync_latency),
		cmocka_unit_test(test_polling),
		cmocka_unit_test(test_exchange),
		cmocka_unit_test(test_two_threads),
		cmocka_unit_test(test_getnext_thread),
		cmocka_unit_test(test_checkpoint),
		cmocka_unit_test(test_recompile),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_hole),
		cmocka_unit_test(test_span),
		cmocka_unit_test(test_tier_b),
		cmocka_unit_test(test_compute_causes),
		cmocka_unit_test(test_fallback),
		cmocka_unit_test(test_periodic),
		cmocka_unit_test(test_evaluation),
		cmocka_unit_test(test_steps_per_execution),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
