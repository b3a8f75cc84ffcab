/* Synthetic whole runs of TensorFlow on the CPU: several models, epochs, evaluations, checkpoints,
 * an end in the middle of a step, holes. The number of steps, the phases and the verdict are those
 * that the trace was made from. */
#include "judge/chain.h"
#include "../tf_loops.h"

/* Four models trained one after the other, each through a function of its own, and an evaluation of
 * so many batches behind each: all of their steps are training, and those of the evaluations none. A function that runs
 * once behind each loop but the first, and takes longer than all of its steps, is not what the batches go to.
 */
static struct tfh_result *sweep(int test, bool sets_up)
{
	static const char *const name[] = {"__inference_one_step_10", "__inference_one_step_20",
					   "__inference_one_step_30", "__inference_one_step_40",
					   "__inference_one_step_50", "__inference_one_step_60",
					   "__inference_one_step_70", "__inference_one_step_80"};
	static const char *const set_up[] = {"__inference_set_up_11", "__inference_set_up_21",
					     "__inference_set_up_31", "__inference_set_up_41",
					     "__inference_set_up_51", "__inference_set_up_61",
					     "__inference_set_up_71", "__inference_set_up_81"};
	struct gen *g = tf();
	double t = 100;

	for (uint32_t loop = 0; loop < 8; loop++) {
		bool eval = loop % 2;
		g->name[TFT_NAME_OP][OP_SAVE + 1 + loop] = name[loop];
		for (int i = 0; i < (eval ? test : 30); i++, t += eval ? 7.5 : 10) {
			gen_get(g, 0, 1 + loop, ROOT, t, t + 6);
			gen_exec(g, OP_GET, t, t + 6);
			gen_exec(g, OP_SAVE + 1 + loop, t + 6.01, t + (eval ? 7.5 : 10));
		}
		gen_get(g, 0, 1 + loop, ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
		gen_exec(g, OP_GET, t, t + 0.03);
		g->name[TFT_NAME_OP][OP_SAVE + 9 + loop] = set_up[loop];
		if (sets_up && loop)
			gen_exec(g, OP_SAVE + 9 + loop, t + 1, t + 250);
		t += eval ? 3000 : 300; /* another model is made */
	}
	return gen_judge(g);
}

static void test_sweep(void **state)
{
	(void)state;
	static const int test[] = {0, 8, 30, 0};

	for (int i = 0; i < 4; i++) {
		struct tfh_result *r = sweep(test[i], i == 3);
		assert_int_equal(r->steady.cause, TFH_CAUSE_INPUT_UNKNOWN);
		assert_non_null(gen_remark(r, "4 loops have equally many batches"));
		assert_int_equal(r->steps.total, 120);
		assert_true(fabs(r->steps.median_s - 0.01) < 2e-4);
		tfh_result_free(r);
	}
}

/* Rounds of 15 training steps by a function with an ordinary name and 60 batches through one whose name says that it evaluates, which take
 * four times as long together: the steps are the former, whichever side is longer. Keras 3's names for fit() and predict() are such. */
static void longer_evaluation(const char *train, const char *test)
{
	struct gen *g = tf();
	double t = 100;

	g->name[TFT_NAME_OP][OP_TRAIN] = train;
	g->name[TFT_NAME_OP][OP_TEST] = test;
	for (uint32_t loop = 0; loop < 8; loop++) {
		bool eval = loop % 2;
		for (int i = 0; i < (eval ? 60 : 15); i++, t += 10.2) {
			gen_get(g, 0, 1 + loop, eval ? EVAL_ROOT : ROOT, t, t + 0.1);
			gen_exec(g, OP_GET, t, t + 0.1);
			gen_exec(g, eval ? OP_TEST : OP_TRAIN, t + 0.11, t + 10);
		}
		gen_get(g, 0, 1 + loop, eval ? EVAL_ROOT : ROOT, t, t + 0.02)->flags =
			TFT_F_OPTIONAL;
		gen_exec(g, OP_GET, t, t + 0.03);
		t += 1;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 60);
	for (uint32_t i = 0; i < r->n_tree; i++)
		assert_true(r->tree[i].kind != TFH_BRANCH_PREDICT ||
			    strstr(r->tree[i].name, "data"));
	tfh_result_free(r);
}

static void test_longer_evaluation(void **state)
{
	(void)state;
	longer_evaluation("__inference_one_step_12", "__inference_evaluate_34");
	longer_evaluation("__inference_multi_step_on_iterator_12",
			  "__inference_one_step_on_data_distributed_34");
}

/* A callback of 30 ms after each step of 5 ms: without it the step's function, which finds its data in the caches then, may be faster;
 * and more so what a framework does around many small functions, if that takes 2 ms. */
static void test_pause_cools(void **state)
{
	(void)state;
	for (int calls = 1; calls < 100; calls += 50) {
		struct gen *g = tf();
		double t = 100, low = NAN, each = 4.94 / calls;

		for (int i = 0; i < 60; i++, t += 30) {
			gen_get(g, 0, 1, ROOT, t, t + 0.05);
			gen_exec(g, OP_GET, t, t + 0.05);
			t += 0.06;
			for (int k = 0; k < calls; k++, t += each + 0.04)
				gen_exec(g, OP_TRAIN, t, t + each);
		}
		struct tfh_result *r = gen_judge(g);
		assert_int_equal(r->verdict.cls, TFH_CLASS_HOST_BOUND);
		for (uint32_t i = 0; i < r->n_whatif; i++)
			if (r->whatif[i].remove == TFH_REMOVE_HOST)
				low = 1e3 * r->whatif[i].low_s;
		if (!(fabs(low - (calls == 1 ? 4.45 : 5.92)) < 0.1))
			fail_msg("%d calls: %g ms", calls, low);
		tfh_result_free(r);
	}
}

/* Two batches are looked at to build the model, which takes long; then it is trained. What follows
 * a batch that is an iterator's last is not the loop's own time. */
static void test_build(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (uint32_t i = 0; i < 2; i++, t += i < 2 ? 50 : 20000) {
		gen_get(g, 0, 40 + i, EVAL_ROOT, t, t + 5);
		gen_exec(g, OP_GET, t, t + 5);
	}
	for (int i = 0; i < 60; i++)
		t = eager_step(g, t, 2, 10, 0);
	end_of_data(g, t);
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 60);
	for (uint32_t i = 0; i < r->n_segments; i++)
		assert_int_not_equal(r->segments[i].kind, TFH_SEGMENT_EVAL);
	tfh_result_free(r);
}

/* Two replicas, each with a thread and an iterator of its own, of which now one and now the other
 * is a few batches ahead: neither evaluates. */
static void test_replicas(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (uint32_t i = 0; i < 120; i++, t += 10) {
		uint32_t replica = i / 3 % 2; /* three of one, three of the other */
		gen_get(g, 1 + replica, 70 + replica, ROOT, t, t + 0.1);
		if (i % 2)
			gen_exec(g, OP_TRAIN, t + 0.5, t + 9);
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 60);
	for (uint32_t i = 0; i < r->n_segments; i++)
		assert_int_not_equal(r->segments[i].kind, TFH_SEGMENT_EVAL);
	tfh_result_free(r);
}

/* Writing a summary, as an op by itself, is logging and no computing. */
static void test_summary(void **state)
{
	(void)state;
	enum { OP_SUMMARY = 60 };
	struct gen *g = tf();
	double t = 100;

	g->name[TFT_NAME_OP][OP_SUMMARY] = "WriteScalarSummary";
	for (int i = 0; i < 40; i++, t += 10) {
		gen_get(g, 0, 1, ROOT, t, t + 0.1);
		gen_exec(g, OP_TRAIN, t + 0.11, t + 4);
		gen_exec(g, OP_SUMMARY, t + 4.01, t + 9.99);
	}
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOGGING);
	tfh_result_free(r);
}

/* Two epochs with a new iterator each, an evaluation behind each: the training steps are counted
 * and judged, the evaluation's are not. */
static void test_epochs_and_eval(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (uint32_t epoch = 0; epoch < 2; epoch++) {
		for (int i = 0; i < 40; i++, t += 10) {
			gen_get(g, 0, 1 + epoch, ROOT, t, t + 6);
			gen_exec(g, OP_GET, t, t + 6);
			gen_exec(g, OP_TRAIN, t + 6.01, t + 10);
		}
		gen_get(g, 0, 1 + epoch, ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
		gen_exec(g, OP_GET, t, t + 0.03);
		t += 300; /* the evaluation is set up */
		t = evaluate(g, t, 10 + epoch, 10, 12);
		t += 50;
	}
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	assert_int_equal(r->steps.total, 80);
	gen_part(r, TFH_PART_INPUT, 6);
	uint32_t evals = 0, eval_steps = 0;
	for (uint64_t i = 0; i < r->n_step; i++)
		eval_steps += r->step[i].segment == TFH_SEGMENT_EVAL;
	assert_int_equal(eval_steps, 20);
	for (uint32_t i = 0; i < r->n_segments; i++)
		if (r->segments[i].kind == TFH_SEGMENT_EVAL)
			evals = r->segments[i].count;
	assert_int_equal(evals, 2);
	tfh_result_free(r);
}

/* Two batches are evaluated to see whether that works, and then all of them after each of four epochs: the first evaluation is no epoch,
 * nor is the last one. */
static void test_sanity_check(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = evaluate(g, 100, 9, 2, 12) + 50;
	uint64_t epochs = 0;

	for (uint32_t epoch = 0; epoch < 4; epoch++) {
		for (int i = 0; i < 40; i++, t += 10) {
			gen_get(g, 0, 1 + epoch, ROOT, t, t + 6);
			gen_exec(g, OP_GET, t, t + 6);
			gen_exec(g, OP_TRAIN, t + 6.01, t + 10);
		}
		gen_get(g, 0, 1 + epoch, ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
		t = evaluate(g, t + 30, 10 + epoch, 10, 12) + 50;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 160);
	for (uint32_t i = 0; i < r->n_tree; i++)
		epochs += r->tree[i].kind == TFH_BRANCH_EPOCH ? r->tree[i].count : 0;
	assert_int_equal(epochs, 4);
	tfh_result_free(r);
}

/* Every 20th step writes a checkpoint: a phase of its own, not part of what a step is judged by. Steps that only compute lead, if they take
 * longer than all of these. */
static void test_checkpoint(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (int i = 1; i <= 80; i++) {
		t = eager_step(g, t, 0.2, 10, 0);
		if (i % 20 == 10) {
			gen_exec(g, OP_SAVE, t, t + 150);
			t += 151;
		}
	}
	end_of_data(g, t);
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	assert_int_equal(r->steps.total, 80);
	uint32_t saves = 0;
	for (uint32_t i = 0; i < r->n_segments; i++)
		if (r->segments[i].kind == TFH_SEGMENT_CHECKPOINT)
			saves = r->segments[i].count;
	assert_int_equal(saves, 4);
	tfh_result_free(r);
}

/* Killed in the middle of a step: the batch was taken, so the step counts. */
static void test_cut_off(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (int i = 0; i < 30; i++)
		t = eager_step(g, t, 4, 6, 0);
	gen_get(g, 0, 1, ROOT, t, t + 4);
	gen_exec(g, OP_GET, t, t + 4);
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 31);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	tfh_result_free(r);
}

/* Steps that a hole touches are unclassified; with most of them so, there is no verdict but a
 * reason. */
static void test_holes(void **state)
{
	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		struct gen *g = tf();
		double t = 100;
		for (int i = 0; i < 50; i++)
			t = eager_step(g, t, 10, 5, 0);
		end_of_data(g, t);
		g->n_hole = 1;
		g->hole[0] = (struct tfh_hole){.t0 = gen_ns(wide ? 110 : 401),
					       .t1 = gen_ns(wide ? 860 : 402)};
		struct tfh_result *r = gen_judge(g);
		assert_int_equal(r->steps.total, 50);
		if (wide) {
			assert_int_equal(r->verdict.cls, TFH_CLASS_UNCLASSIFIED);
			assert_non_null(gen_says(r, "holes in the recording"));
		} else {
			assert_int_equal(r->steps.unclassified, 1);
			gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
		}
		tfh_result_free(r);
	}
}

/* Six steps are judged on those that are whole and not the first, and never with high confidence.
 */
static void test_few_steps(void **state)
{
	(void)state;
	struct tfh_result *r = eager(6, 20, 5, 0);

	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	assert_int_equal(r->steps.total, 6);
	assert_int_equal(r->steps.count, 4);
	assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_MEDIUM);
	tfh_result_free(r);
}

/* A loop whose weights are updated by hand is PyTorch's if that is loaded, unless TensorFlow is, too. */
static void test_library(void **state)
{
	(void)state;
	static const struct tfh_software loaded[] = {{.name = "PyTorch"}, {.name = "TensorFlow"}};

	for (uint32_t n = 0; n < 3; n++) {
		struct gen *g = tf();
		double t = 100;
		g->process.software = loaded;
		g->process.n_software = n;
		for (int i = 0; i < 30; i++)
			t = eager_step(g, t, 2, 10, 0);
		struct tfh_result *r = gen_judge(g);
		assert_int_equal(r->found.torch, n == 1);
		tfh_result_free(r);
	}
}

/* What a step waited for lies within that step, in any epoch: the time between epochs is cut out as well, but is no step. */
static void test_chain_of_later_epoch(void **state)
{
	(void)state;
	struct gen *g = tf();
	struct tfh_chain chain;
	double t = 100, covered = 0;

	for (int epoch = 0; epoch < 3; epoch++, t += 300) {
		for (int i = 0; i < 30; i++)
			t = eager_step(g, t, 6, 4, 0);
		end_of_data(g, t);
	}
	tfh_chain_init(&chain, 0, 75);
	g->feed.chain = &chain;
	struct tfh_result *r = gen_judge(g);
	const struct tfh_step *step = &r->step[75];
	assert_int_equal(r->steps.total, 90);
	for (size_t i = 0; i < chain.link.n; i++) {
		assert_true((double)chain.link.v[i].t0 / 1e9 >= step->start_s - 1e-8);
		assert_true((double)chain.link.v[i].t1 / 1e9 <= step->start_s + step->dur_s + 1e-8);
		covered += (double)(chain.link.v[i].t1 - chain.link.v[i].t0) / 1e9;
	}
	assert_true(fabs(covered / step->dur_s - 1) < 0.01);
	tfh_chain_free(&chain);
	tfh_result_free(r);
}

/* Steps that take next to no time, with a wait for batches as their largest part: they only issue work, for which the program
 * waits behind each epoch. The verdict is about that computing, and the report gives its time per step. */
static void test_computes_between(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;

	for (int epoch = 0; epoch < 8; epoch++) {
		for (int i = 0; i < 25; i++, t += 0.1) {
			gen_get(g, 0, 1, ROOT, t, t + 0.07);
			gen_exec(g, OP_GET, t, t + 0.07);
			gen_exec(g, OP_TRAIN, t + 0.071, t + 0.074);
		}
		gen_get(g, 0, 1, ROOT, t, t + 0.02)->flags = TFT_F_OPTIONAL;
		gen_exec(g, OP_TEST, t + 0.1, t + 150);
		t += 150.2;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 200);
	assert_int_equal(r->steady.cls, TFH_CLASS_INPUT_BOUND);
	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	assert_true(r->verdict.share > 0.9);
	struct tfh_wording w;
	tfh_wording_make(&w, r);
	assert_non_null(strstr(w.text, "work that its steps only issue"));
	assert_true(isnan(w.advice[0].saved_s));
	tfh_wording_free(&w);
	tfh_result_free(r);
}

/* Epochs of two steps, of which the first takes three times as long (two models in turn): neither is the usual one, so that no time is
 * that of longer first steps. Of epochs of six steps, the first one's excess is. */
static void test_first_of_two(void **state)
{
	(void)state;
	for (int steps = 2; steps <= 6; steps += 4) {
		struct gen *g = tf();
		double t = 100, first = 0;

		for (int i = 0; i < 40; i++) {
			for (int k = 0; k < steps; k++)
				t = eager_step(g, t, 0.2, k ? 5 : 15, 0);
			end_of_data(g, t);
			t += 0.1;
		}
		struct tfh_result *r = gen_judge(g);
		for (uint32_t i = 0; i < r->n_tree; i++)
			first += r->tree[i].kind == TFH_BRANCH_FIRST ? r->tree[i].wall_s : 0;
		assert_float_equal(first, steps == 2 ? 0 : 0.4, 0.02);
		tfh_result_free(r);
	}
}

/* A strategy of two devices reads an iterator for each: the function's name says that these steps train, whichever iterator counts as that
 * of the training. */
static void test_devices(void **state)
{
	(void)state;
	struct gen *g = tf();
	double t = 100;
	double train = 0;

	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_train_step_10";
	for (int i = 0; i < 60; i++, t += 10) {
		for (uint32_t device = 0; device < 2; device++) {
			gen_get(g, 0, 1 + device, device ? EVAL_ROOT : ROOT, t + device,
				t + device + 0.1);
			gen_exec(g, OP_GET, t + device, t + device + 0.1);
		}
		gen_exec(g, OP_TRAIN, t + 2, t + 9.9);
	}
	struct tfh_result *r = gen_judge(g);
	for (uint32_t i = 1; i < r->n_tree; i++) {
		assert_int_not_equal(r->tree[i].kind, TFH_BRANCH_EVALUATE);
		train += r->tree[i].kind == TFH_BRANCH_TRAIN ? r->tree[i].wall_s : 0;
	}
	assert_true(train > 0.5);
	tfh_result_free(r);
}

/* JAX queues its work, and every tenth step waits for all of it: nothing would be saved by doing that less often, as it would be by
 * evaluating less often where the other steps compute. */
static void test_queued(void **state)
{
	(void)state;
	for (int queued = 0; queued < 2; queued++) {
		struct gen *g = tf();
		double t = 100;
		for (int i = 0; i < 100; i++) {
			double computes = i % 10 == 9 ? 100 : queued ? 0.05 : 8;
			gen_get(g, 0, 1, ROOT, t, t + 0.1);
			gen_exec(g, OP_GET, t, t + 0.1);
			gen_exec(g, OP_TRAIN, t + 0.2, t + 0.2 + computes);
			t += 2 + computes;
		}
		struct tfh_result *r = gen_judge(g);
		assert_int_equal(r->steps.total, 100);
		assert_int_equal(r->found.slow.every > 0, !queued);
		tfh_result_free(r);
	}
}

/* The data ends the job with an error: the get-next that fails delivers no batch, and is no step. TensorFlow's reports the error in a status
 * that is not recorded, so what shows it is the end of the job. */
static struct tfh_result *end_with(uint8_t flags, bool failed)
{
	struct gen *g = tf();
	double t = 100;

	for (int i = 0; i < 30; i++)
		t = eager_step(g, t, 4, 6, 0);
	gen_get(g, 0, 1, ROOT, t, t + 4)->flags = flags;
	gen_exec(g, OP_GET, t, t + 4);
	g->feed.failed = failed;
	return gen_judge(g);
}

static void test_failed_batch(void **state)
{
	(void)state;
	struct tfh_result *r = end_with(TFT_F_FAILED, false);

	assert_int_equal(r->steps.total, 30);
	tfh_result_free(r);
	r = end_with(0, true);
	assert_int_equal(r->steps.total, 30);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sweep),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_queued),
		cmocka_unit_test(test_build),
		cmocka_unit_test(test_summary),
		cmocka_unit_test(test_replicas),
		cmocka_unit_test(test_epochs_and_eval),
		cmocka_unit_test(test_sanity_check),
		cmocka_unit_test(test_longer_evaluation),
		cmocka_unit_test(test_computes_between),
		cmocka_unit_test(test_pause_cools),
		cmocka_unit_test(test_checkpoint),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_failed_batch),
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_few_steps),
		cmocka_unit_test(test_chain_of_later_epoch),
		cmocka_unit_test(test_first_of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
