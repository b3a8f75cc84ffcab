/* Synthetic jobs that compute on the processor: the number of steps is the job's own, whether functions, single ops, new
 * iterators or optimizer steps show them. */
#include "../analyze_gen.h"

/* Without get-next and marks the function executed most is the clock, found without a look of its
 * own at the calls. */
static void test_executed(void **state)
{
	(void)state;
	struct gen *g = gen_new();

	g->name[TFT_NAME_OP][1] = "__inference_train_12";
	g->name[TFT_NAME_OP][2] = "__inference_metric_7";
	for (int i = 0; i < 40; i++) {
		gen_exec(g, 1, i * 10, i * 10 + 8);
		gen_exec(g, 2, i * 10 + 8.5, i * 10 + 9);
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_EXEC);
	assert_int_equal(r->steps.total, 40);
	assert_int_equal(gen_passes, 2);
	gen_closed(r);
	tfh_result_free(r);
}

/* A processor executes op by op, without functions or an input pipeline: an agent's moves, then an update. The update
 * shows the steps, and the run's tree consists of them. A get-next or a launch is a better clock than ops. */
static void test_ops(void **state)
{
	(void)state;
	for (int more = 0; more < 3; more++) {
		struct gen *g = gen_new();
		uint64_t steps = 0;
		double t = 0;

		g->name[TFT_NAME_OP][1] = "MatMul";
		g->name[TFT_NAME_OP][2] = "Softmax";
		g->name[TFT_NAME_OP][3] = "ResourceApplyAdam";
		for (int i = 0; i < 30; i++) {
			if (more == 1 && i % 2 == 0)
				gen_get(g, 0, 7, 1, t, t + 0.1);
			for (int k = 0; k < 12; k++, t += 0.4) {
				gen_exec(g, 1, t + 0.1, t + 0.2);
				gen_exec(g, 2, t + 0.3, t + 0.4);
			}
			gen_exec(g, 3, t + 0.2, t + 0.4);
			t += 0.5;
			if (more == 2 && i % 3 == 0)
				gen_call(g, 0, TFH_FN_cuLaunchKernel, t, t + 0.1)->w[0] = 9;
			t += 0.2;
		}
		steps = more == 1 ? 15 : more == 2 ? 10 : 30;
		struct tfh_result *r = gen_judge(g);
		assert_int_equal(r->steps.total, steps);
		if (!more) {
			assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_PERIOD);
			assert_int_equal(r->tree[r->n_tree - 2].kind, TFH_BRANCH_STEP);
			assert_int_equal(r->tree[r->n_tree - 2].count, 30);
		}
		gen_closed(r);
		tfh_result_free(r);
	}
}

/* Each step makes an iterator of its own, takes its only batch for one function, and trains with another. The first
 * batch belongs to the same loop, although the first executions take longest where they trace; making an iterator is no
 * computing. */
static void test_iterator_each_step(void **state)
{
	(void)state;
	struct gen *g = gen_new();

	g->name[TFT_NAME_OP][1] = "MakeIterator";
	g->name[TFT_NAME_OP][2] = "PrefetchDataset";
	g->name[TFT_NAME_OP][3] = "__inference_predict_158";
	g->name[TFT_NAME_OP][4] = "__inference_train_282";
	for (int i = 0; i < 30; i++) {
		double t = 100 * i;
		gen_exec(g, 2, t, t + 1);
		gen_exec(g, 1, t + 1, t + 8);
		gen_get(g, 0, 10 + (uint32_t)i, 1, t + 8, t + 8.5)->depth = 0;
		gen_exec(g, 3, t + 9, t + (i ? 9.2 : 45));
		gen_exec(g, 4, t + 46, t + (i ? 46.4 : 72));
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_ITERATOR);
	assert_int_equal(r->steps.total, 30);
	assert_true(r->breakdown[TFH_PART_COMPUTE].s_per_step < 1e-3);
	gen_closed(r);
	tfh_result_free(r);
}

/* Functions of TensorFlow's compute; the small ops around them are as small a share of it. */
static void test_small_ops(void **state)
{
	(void)state;
	struct gen *g = gen_new();

	g->name[TFT_NAME_OP][1] = "_EagerConst";
	g->name[TFT_NAME_OP][2] = "__inference_train_282";
	for (int i = 0; i < 60; i++) {
		gen_exec(g, 1, 20 * i, 20 * i + 1);
		gen_exec(g, 2, 20 * i + 1.1, 20 * i + 19.9);
	}
	struct tfh_result *r = gen_judge(g);
	const struct tfh_code_time *ops = &r->found.verdict;
	assert_int_equal(r->steps.total, 60);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_COMPUTE_CPU);
	assert_int_equal(ops->n, 1);
	assert_float_equal(ops->function[0].s_per_step / ops->s_per_step, 0.05, 0.01);
	gen_closed(r);
	tfh_result_free(r);
}

/* Steps whose amount of work grows, as episodes of an agent do: their computing and the program's own code grow
 * together. The short steps do not show that the rest of a step could be faster; they do where only computing varies.
 * Behind the program's own code up to half of PyTorch's computing may be slowness. */
static void test_growing_steps(void **state)
{
	(void)state;
	for (int together = 0; together < 2; together++) {
		struct gen *g = gen_new();
		double t = 0, low = 0;

		g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
		g->name[TFT_NAME_OP][1] = "Engine::execute";
		for (int i = 0; i < 120; i++) {
			double back = 2 + 0.1 * i, own = together ? back : 8 - 0.01 * (i % 2);
			gen_call(g, 0, TFH_FN_torch_backward, t + own, t + own + back)->w[0] = 1;
			struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_range, t + own + back,
							t + own + back + 0.5);
			ev->kind = TFT_RANGE;
			ev->w[0] = 3;
			t += own + back + 0.5;
		}
		struct tfh_result *r = gen_judge(g);
		assert_int_equal(r->steps.total, 120);
		for (uint32_t i = 0; i < r->n_whatif; i++)
			if (r->whatif[i].remove == TFH_REMOVE_HOST)
				low = r->whatif[i].low_s /
				      (r->breakdown[TFH_PART_COMPUTE].s_per_step);
		if (together ? low < 0.45 : low > 0.4 || low < 0.2)
			fail_msg("%d: %g", together, low);
		gen_closed(r);
		tfh_result_free(r);
	}
}

/* PyTorch without a loader: an optimizer's step ends a step. Two models that are trained in turn are one step, which
 * the lengths of their backward passes show, or their number, or the launches in them, however long they are; work in every
 * second step is none. In a job of several ranks, a pass that exchanges gradients is longer whenever another rank is late. */
static void test_models_in_turn(void **state)
{
	enum { ALONE, OF_LATE_RANK, BY_LENGTH, BY_NUMBER, BY_LAUNCHES, TURNS };

	(void)state;
	for (int turns = ALONE; turns < TURNS; turns++) {
		struct gen *g = gen_new();
		double t = 0;

		g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
		g->name[TFT_NAME_STRING][4] = "gloo:all_reduce";
		g->name[TFT_NAME_OP][1] = "Engine::execute";
		for (int i = 0; i < 80; i++) {
			bool shorter = i % 2 && (turns == BY_LENGTH || turns == OF_LATE_RANK);
			double back = shorter ? 1 : 2 + 0.01 * (i * 7 % 5);
			if (i % 2 && turns == BY_NUMBER)
				gen_call(g, 0, TFH_FN_torch_backward, t + 0.5, t + 0.52)->w[0] = 1;
			gen_call(g, 0, TFH_FN_torch_backward, t + 1, t + 1 + back)->w[0] = 1;
			for (int k = 0; k < 5 + i % 2 && turns == BY_LAUNCHES; k++) {
				double at = k ? t + 1 + 0.1 * k : t;
				gen_call(g, 0, TFH_FN_cuLaunchKernel, at, at + 0.05)->w[0] = 7;
			}
			struct tfh_event *ev =
				gen_call(g, 0, TFH_FN_torch_range, t + 1 + back, t + 1.5 + back);
			ev->kind = TFT_RANGE;
			ev->w[0] = 3;
			if (turns == OF_LATE_RANK) {
				ev = gen_call(g, 1, TFH_FN_torch_range, t + 1.1, t + 0.9 + back);
				ev->kind = TFT_RANGE;
				ev->w[0] = 4;
				ev->w[1] = TFT_RANGE_EXCHANGE;
			}
			t += 4 + i % 2;
		}
		struct tfh_result *r = gen_judge(g);
		assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_MARK);
		assert_int_equal(r->steps.total, turns < BY_LENGTH ? 80 : 40);
		gen_closed(r);
		tfh_result_free(r);
	}
}

/* Optimizers of a model's parts that step one after the other after one backward pass end one step. If a pass precedes each, or
 * nothing but time (updates without gradients, beside some with them), each ends a step of its own. */
static void test_optimizers_together(void **state)
{
	enum { TOGETHER, PASS_EACH, APART, CASES };

	(void)state;
	for (int how = TOGETHER; how < CASES; how++) {
		struct gen *g = gen_new();

		g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
		g->name[TFT_NAME_OP][1] = "Engine::execute";
		for (int i = 0; i < 80; i++) {
			double t = 10 * i, second = how == TOGETHER ? t + 4.6 : t + 9;
			if (how != APART || i < 5)
				gen_call(g, 0, TFH_FN_torch_backward, t + 1, t + 4)->w[0] = 1;
			if (how == PASS_EACH)
				gen_call(g, 0, TFH_FN_torch_backward, t + 5, t + 8)->w[0] = 1;
			for (int k = 0; k < 2; k++) {
				double at = k ? second : t + 4;
				struct tfh_event *ev =
					gen_call(g, 0, TFH_FN_torch_range, at, at + 0.5);
				ev->kind = TFT_RANGE;
				ev->w[0] = 3;
			}
		}
		struct tfh_result *r = gen_judge(g);
		assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_MARK);
		assert_int_equal(r->steps.total, how == TOGETHER ? 80 : 160);
		gen_closed(r);
		tfh_result_free(r);
	}
}

static struct tfh_sample sample[20];

static uint32_t samples(void *arg, uint32_t process, const struct tfh_sample **out)
{
	(void)arg;
	(void)process;
	*out = sample;
	return 20;
}

/* A PyTorch loop that waits 15 of 20 ms for its loader's processes, and uses a CPU for `cpu_ms`: what receiving the batches takes
 * stays where the wait goes. */
static double at_best(double cpu_ms, enum tfh_fn loader)
{
	struct gen *g = gen_new();
	double low = 0;

	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int i = 0; i < 200; i++) {
		gen_call(g, 0, loader, 20 * i, 20 * i + 15)->w[0] = 9;
		gen_call(g, 0, TFH_FN_torch_backward, 20 * i + 15.01, 20 * i + 20)->w[0] = 1;
	}
	for (int i = 0; i < 20; i++) {
		sample[i] = (struct tfh_sample){.t = gen_ns(200 * i + 1), .threads = 1, .cpus = 2};
		sample[i].thread[0] = (struct tfh_thread_times){0, 0.01 * i * cpu_ms, 0};
	}
	g->feed.samples = samples;
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_INPUT_DATALOADER);
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == TFH_REMOVE_INPUT)
			low = r->whatif[i].low_s;
	tfh_result_free(r);
	return low * 1e3;
}

static void test_receiving(void **state)
{
	(void)state;
	assert_float_equal(at_best(5, TFH_FN_torch_multi), 0.97 * 5, 0.05);
	assert_float_equal(at_best(8, TFH_FN_torch_multi), 0.97 * 8, 0.05);
	/* Without processes, receiving is making the batch. */
	assert_float_equal(at_best(20, TFH_FN_torch_single), 0.99 * 5 - 0.5 * 5, 0.05);
}

/* A server that sleeps 18 of 20 ms and then finds requests, which another thread needs `made_ms` for meanwhile: the longest step without
 * the sleep, in ms. */
static double without_sleep(double made_ms)
{
	struct gen *g = gen_new();
	double high = 0;

	g->name[TFT_NAME_OP][1] = "__inference_score_12";
	for (int i = 0; i < 200; i++) {
		gen_sample(g, 0, 20 * i + 9, TFT_STATE_SLEEP, 0, 10);
		gen_exec(g, 1, 20 * i + 19.5, 20 * i + 20);
	}
	for (int i = 0; i < 20; i++) {
		sample[i] = (struct tfh_sample){.t = gen_ns(200 * i + 1),
						.cpu_s = 0.01 * (1 + made_ms),
						.threads = 2,
						.cpus = 2};
		sample[i].thread[0] = (struct tfh_thread_times){0, 0.01 * i, 0};
		sample[i].thread[1] = (struct tfh_thread_times){1, 0.01 * i * made_ms, 0};
	}
	g->feed.samples = samples;
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_SLEEP);
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == TFH_REMOVE_HOST)
			high = r->whatif[i].high_s;
	tfh_result_free(r);
	return high * 1e3;
}

/* What other threads do while the loop sleeps remains, at most on all CPUs. */
static void test_polling(void **state)
{
	(void)state;
	assert_float_equal(without_sleep(6) - without_sleep(0), 3, 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_executed),
		cmocka_unit_test(test_ops),
		cmocka_unit_test(test_small_ops),
		cmocka_unit_test(test_growing_steps),
		cmocka_unit_test(test_models_in_turn),
		cmocka_unit_test(test_optimizers_together),
		cmocka_unit_test(test_iterator_each_step),
		cmocka_unit_test(test_receiving),
		cmocka_unit_test(test_polling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
