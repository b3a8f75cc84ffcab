/* Edge cases of the analysis with device times, each from a small simulation: unusual steps and
 * what is known about them. Checkpoints, recompilation, evaluation, several batches per execution,
 * holes and intervals without device times, causes within compute, ops on the host, memory. Parts
 * are exact to 1 %. */
#include "../devgen.h"

/* Every 20th step saves a checkpoint: fetches much and writes it. Those are no usual steps, and one
 * for which the disk took 40 times as long as a step is no pause. */
static void test_checkpoint(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 100; i++) {
		dg_get(d, 0, 0.05);
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
		if (i % 20 == 19) {
			dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 500 << 20, 40);
			dg_code(d, 0, i == 39 ? 400 : 150);
		}
	}
	struct tfh_result *r = dg_judge(d);
	/* They take nearly half of the time, so the run is about them; the steps keep their own verdict. */
	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_CHECKPOINT);
	assert_int_equal(r->steady.cls, TFH_CLASS_COMPUTE_BOUND);
	/* What it fetched is no copy of training. */
	assert_true(r->stages[TFH_STAGE_D2H].hidden_s < 1e-6);
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
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_COMPUTE_BOUND);
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
		dg_launches(d, 1, n, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
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
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
		if (i == 34)
			to = d->now[0] - 1;
	}
	d->g->hole[d->g->n_hole++] =
		(struct tfh_hole){.t0 = gen_ns(from), .t1 = gen_ns(to), .count = 9};
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
	assert_in_range(r->steps.unclassified, 5, 7);
	gen_part(r, TFH_PART_INPUT, 10);
	tfh_result_free(r);
}

/* Device times of a part of the run only: those steps are judged from them, the others from the
 * host, and the verdict is that of the former. Every step begins where the one before ends, also
 * where device times begin and end. */
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
		dg_launches(d, 1, 10, 1);
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
	for (uint64_t i = 1; i < r->n_step; i++) {
		const struct tfh_step *s = &r->step[i - 1];
		if (fabs(s->start_s + s->dur_s - r->step[i].start_s) > 1e-9)
			fail_msg("step %llu ends at %.6f s, the next begins at %.6f s",
				 (unsigned long long)i, s->start_s + s->dur_s, r->step[i].start_s);
	}
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
		dg_launches(d, 1, 10, 1);
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
		dg_check(r, TFH_CLASS_COMPUTE_BOUND);
		assert_int_equal(r->verdict.cause, turn ? TFH_CAUSE_COMPUTE_DOMINANT_OP
							: TFH_CAUSE_COMPUTE_UNDERFILLED);
		if (turn)
			assert_string_equal(r->kernels[0].name, "slow");
		tfh_result_free(r);
	}
}

/* In the middle of the step an op falls back to the host: fetch, compute there, copy back. What is launched then goes into stream
 * `after`. */
static struct tfh_result *fallback(bool there, uint32_t after)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.05);
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 20, 0.1);
		dg_launches(d, 1, 5, 1);
		if (there) {
			dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 8 << 20, 1);
			dg_code(d, 0, 4);
			dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 8 << 20, 1);
		}
		dg_launches(d, after, 5, 1);
		dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 1 << 20, 0.1);
	}
	return dg_judge(d);
}

static void test_fallback(void **state)
{
	(void)state;
	struct tfh_result *r = fallback(true, 1), *without = fallback(false, 1);
	double rest = 0.1 + 0.1 + DG_WAKE;

	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_FALLBACK);
	gen_part(r, TFH_PART_TRANSFER, 6 + rest);
	/* All copies are removed, those of the batch and the loss, too. */
	dg_predicts(r, TFH_REMOVE_TRANSFER, without->steps.median_s * 1e3 - rest);
	tfh_result_free(r);
	tfh_result_free(without);
	/* Parts of a batch that streams of their own compute are no fallback. */
	r = fallback(true, 2);
	assert_true(r->found.cause_s[TFH_CAUSE_TRANSFER_FALLBACK] == 0);
	tfh_result_free(r);
}

/* A copy that blocks, from or to an address in host memory. */
static void copy_at(struct dg *d, enum tfh_dir dir, uint64_t host)
{
	dg_copy_blocking(d, 0, 1, dir, 8 << 20, 1);
	d->g->ev[d->g->n - 1].w[dir == TFH_DIR_H2D ? 2 : 1] = host;
	d->g->ev[d->g->n - 1].w[dir == TFH_DIR_H2D ? 1 : 2] = 0xd000000;
}

static const gen_stack in_library[] = {
	[7] = {{"/v/site-packages/numba/cuda/dispatcher.py", "call", 687, true},
	       {"/home/me/train.py", "train", 12, false}},
};

/* What was fetched goes up again before the next launch, after `ms` of host code, from the same memory or another. Only if it is
 * the same, less time than the copies take went by, and a library's Python was seen, nothing was computed: a library copies what
 * it is given there and back around each launch. */
static void test_there_and_back(void **state)
{
	static const struct {
		double ms;
		uint64_t from;
		bool seen;
		enum tfh_cause cause;
	} row[] = {{0.15, 0xa000000, true, TFH_CAUSE_TRANSFER_H2D_PAGEABLE},
		   {4, 0xa000000, false, TFH_CAUSE_TRANSFER_FALLBACK},
		   {0.15, 0xa000000, false, TFH_CAUSE_TRANSFER_FALLBACK},
		   {0.15, 0xb000000, true, TFH_CAUSE_TRANSFER_FALLBACK}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct dg *d = dg_new();
		for (int i = 0; i < 60; i++) {
			dg_get(d, 0, 0.05);
			copy_at(d, TFH_DIR_H2D, 0xc000000);
			dg_launches(d, 1, 5, 0.1);
			copy_at(d, TFH_DIR_D2H, 0xa000000);
			if (row[k].seen)
				gen_sample(d->g, 0, d->now[0] + row[k].ms / 2, TFT_STATE_RUNNING, 7,
					   10);
			dg_code(d, 0, row[k].ms);
			copy_at(d, TFH_DIR_H2D, row[k].from);
			dg_launches(d, 1, 5, 0.1);
			dg_sync(d, 0, 1);
		}
		GEN_STACKS(&d->g->feed, in_library);
		struct tfh_result *r = dg_judge(d);
		dg_check(r, TFH_CLASS_TRANSFER_BOUND);
		assert_int_equal(r->verdict.cause, row[k].cause);
		tfh_result_free(r);
	}
}

/* Every tenth step writes a log. */
static void test_periodic(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 100; i++) {
		dg_get(d, 0, 0.05);
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
		if (i % 10 == 9)
			dg_code(d, 0, 6);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_COMPUTE_BOUND);
	const char *said = gen_remark(r, "every 10th step takes 6.00 ms longer");
	assert_non_null(said);
	assert_non_null(strstr(said, "(host)"));
	tfh_result_free(r);
}

/* Ordinals as they are written. */
static void test_periodic_words(void **state)
{
	(void)state;
	static const struct {
		int every;
		const char *said;
	} of[] = {{12, "every 12th step takes"}, {22, "every 22nd"}, {33, "every 33rd"}};

	for (size_t k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
		struct dg *d = dg_new();
		for (int i = 0; i < 10 * of[k].every; i++) {
			dg_get(d, 0, 0.05);
			dg_launches(d, 1, 10, 1);
			dg_sync(d, 0, 1);
			if (i % of[k].every == of[k].every - 1)
				dg_code(d, 0, 15);
		}
		struct tfh_result *r = dg_judge(d);
		assert_non_null(gen_remark(r, of[k].said));
		tfh_result_free(r);
	}
}

/* Every 40th step writes a log, and others are slow now and then, for no reason of the job's. */
static void test_periodic_among_others(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 260; i++) {
		dg_get(d, 0, 0.05);
		dg_launches(d, 1, 10, 1);
		dg_sync(d, 0, 1);
		if (i % 40 == 39)
			dg_code(d, 0, 15);
		else if (i % 23 == 7 || i % 31 == 3)
			dg_code(d, 0, 3 + i % 5);
	}
	struct tfh_result *r = dg_judge(d);
	assert_non_null(gen_remark(r, "every 40th step takes 15.0 ms longer"));
	tfh_result_free(r);
}

/* Three of 60 steps write a log for three times the time of a step, at no constant distance: the
 * verdict is that of the others, and names theirs beside it. Where they take half of the time they
 * come first.
 */
static void test_far_steps(void **state)
{
	(void)state;
	for (int log = 45; log <= 130; log += 85) {
		struct dg *d = dg_new();
		for (int i = 0; i < 60; i++) {
			dg_get(d, 0, 0.05);
			dg_launches(d, 1, 10, 1);
			dg_sync(d, 0, 1);
			if (i == 10 || i == 24 || i == 50)
				dg_code(d, 0, log);
		}
		struct tfh_result *r = dg_judge(d);
		dg_check(r, log == 45 ? TFH_CLASS_COMPUTE_BOUND : TFH_CLASS_HOST_BOUND);
		if (log == 45) {
			assert_int_equal(r->verdict.n_also, 1);
			assert_int_equal(r->verdict.also[0], TFH_CLASS_HOST_BOUND);
		} else {
			assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_LOW);
		}
		tfh_result_free(r);
	}
}

/* Three steps that are all launching: too few for a sure mean, but each by itself says so. */
static void test_three_steps(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 4; i++) {
		dg_get(d, 0, 0.005);
		for (int k = 0; k < 10 * (i + 1); k++)
			dg_launch(d, 0, 1, 1 * US);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->verdict.cls, TFH_CLASS_HOST_BOUND);
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
			dg_launches(d, 1, 10, 1);
			dg_sync(d, 0, 1);
			gen_exec(d->g, 1, t, d->now[0]);
		}
		for (int i = 0; i < 10; i++) {
			struct tfh_event *ev = dg_call(d, 0, TFH_FN_tf_getnext_op, 0.05);
			ev->w[0] = 2;
			ev->depth = 1;
			double t = d->now[0];
			dg_launches(d, 1, 3, 1);
			dg_sync(d, 0, 1);
			gen_exec(d->g, 2, t, d->now[0]);
		}
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
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
			dg_launches(d, 1, 10, 1);
			dg_sync(d, 0, 1);
		}
		gen_exec(d->g, 1, t, d->now[0] + 0.01);
		dg_code(d, 0, 0.05);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
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
		dg_launches(d, 1, 10, 1);
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
		cmocka_unit_test(test_checkpoint),     cmocka_unit_test(test_recompile),
		cmocka_unit_test(test_lengths),	       cmocka_unit_test(test_hole),
		cmocka_unit_test(test_span),	       cmocka_unit_test(test_tier_b),
		cmocka_unit_test(test_compute_causes), cmocka_unit_test(test_fallback),
		cmocka_unit_test(test_periodic),       cmocka_unit_test(test_periodic_among_others),
		cmocka_unit_test(test_far_steps),      cmocka_unit_test(test_three_steps),
		cmocka_unit_test(test_evaluation),     cmocka_unit_test(test_steps_per_execution),
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_periodic_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
