/*
 * A job that receives from child processes over pipes before each step. Where these also wait, at pipes of their own, for what the
 * program sends to them (actions), they are no loader: the step waits for another process, and more of them are no advice. Where
 * they wait for work from a queue, or not at all, they make the batches. A thread that is seen running in the function that only waits was just
 * woken, and waits no less.
 */
#include "../analyze_gen.h"

#define STD "/usr/lib/python3.11/multiprocessing/"

enum { AT_RECEIVES = 1, AT_STEP, AT_WORKS, AT_TOLD, AT_QUEUE };

#define RECEIVE STD "connection.py", "_ConnectionBase.recv", 250, true
#define BEGIN STD "process.py", "BaseProcess._bootstrap", 314, true

static const gen_stack stacks[] = {
	[AT_RECEIVES] = {{STD "connection.py", "Connection._recv", 395, true},
			 {RECEIVE},
			 {"/job/train.py", "main", 20, false}},
	[AT_STEP] = {{"/job/train.py", "main", 22, false}},
	[AT_WORKS] = {{"/job/train.py", "simulate", 7, false}, {BEGIN}},
	[AT_TOLD] = {{RECEIVE}, {"/job/train.py", "simulate", 5, false}, {BEGIN}},
	[AT_QUEUE] = {{RECEIVE},
		      {STD "queues.py", "SimpleQueue.get", 365, true},
		      {"/job/train.py", "simulate", 5, false},
		      {BEGIN}},
};

static void child(struct gen *g, double t, uint32_t place, enum tft_state state)
{
	struct tfh_event *ev = gen_sample(g, 0, t, state, place, 2.5);

	ev->kind = TFT_CHILD;
	ev->ctx = GEN_PID + 1;
	ev->stream = GEN_PID + 5;
}

/* In every other step the worker is seen where it waits. */
static struct tfh_result *judge_state(uint32_t waits, uint8_t state)
{
	struct gen *g = gen_new();
	double t = 100, cpu = 0, runs = state == TFT_STATE_RUNNING ? 4.5 : 0.1;

	GEN_STACKS(&g->feed, stacks);
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int i = 0; i < 120; i++, t += 6) {
		gen_sample(g, 0, t + 0.5 + fmod(i * 0.37, 4), state, AT_RECEIVES, 2.5);
		if (waits && i % 2)
			child(g, t + 1, waits, TFT_STATE_SOCKET);
		else
			child(g, t + 1, AT_WORKS, TFT_STATE_RUNNING);
		gen_cpu(g, 0, t + 5.5, cpu += runs, AT_STEP);
		gen_call(g, 0, TFH_FN_torch_backward, t + 5.55, t + 5.95)->w[0] = 1;
		gen_cpu(g, 0, t + 5.96, cpu += 0.4, 0);
	}
	return gen_judge(g);
}

static struct tfh_result *judge(uint32_t waits)
{
	return judge_state(waits, TFT_STATE_SOCKET);
}

/* Each time the thread was just woken, to wait for the next answer. */
static void test_woken(void **state)
{
	(void)state;
	struct tfh_result *r = judge_state(AT_TOLD, TFT_STATE_RUNNING);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_WAIT);
	tfh_result_free(r);
}

static void test_told(void **state)
{
	(void)state;
	struct tfh_result *r = judge(AT_TOLD);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_WAIT);
	assert_int_equal(r->found.line.line, 20);
	assert_int_equal(r->found.workers.line.line, 7); /* where it works, not where it waits */
	assert_true(r->found.workers.busy > 0.4 && r->found.workers.busy < 0.6);
	assert_int_equal(r->found.workers.more.to, 0);
	assert_non_null(gen_says(r, "1 worker process, 50 % busy"));
	tfh_result_free(r);
}

static void test_not_told(void **state)
{
	(void)state;
	for (int queue = 0; queue < 2; queue++) {
		struct tfh_result *r = judge(queue ? AT_QUEUE : 0);
		assert_int_equal(r->verdict.cls, TFH_CLASS_INPUT_BOUND);
		tfh_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_told),
					   cmocka_unit_test(test_woken),
					   cmocka_unit_test(test_not_told)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
