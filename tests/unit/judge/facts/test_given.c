/*
 * A PyTorch job on the CPU that waits for a lock of its own before each step. If a child process is at work meanwhile, it makes
 * the batches, and releases the lock with each of them; but not if that is the fork server, which makes none, or if another
 * thread that the program started works as well, which holds the lock more likely. If a library's thread runs a function of the
 * program, the wait is for that callback. Otherwise it is for a lock; unless JAX is there, which computes on threads of its own
 * what the program then reads, and neither another thread of the program works nor the wait is a function of the standard
 * library. A range that begins inside of the pause tells where the wait was, if no stack was read at the call after it.
 */
#include "../analyze_gen.h"

enum { AT_LOCK = 1, AT_ZERO, AT_CHILD, AT_CALLED, AT_SERVER, AT_CONDITION };

static bool jax;
static bool both; /* a child process and a thread */
static uint32_t waits = AT_LOCK;

static const gen_stack stacks[] = {
	[AT_LOCK] = {{"/job/train.py", "main", 20, false}},
	[AT_ZERO] = {{"/job/train.py", "main", 22, false}},
	[AT_CHILD] = {{"/job/train.py", "resize", 7, false},
		      {"/usr/lib/python3.11/multiprocessing/process.py", "BaseProcess._bootstrap",
		       314, true}},
	[AT_CALLED] = {{"/job/train.py", "distance", 9, false},
		       {"/usr/lib/python3/site-packages/jax/_src/callback.py", "_callback", 226,
			true}},
	[AT_SERVER] = {{"/usr/lib/python3.15/multiprocessing/forkserver.py", "main", 258, true},
		       {"<string>", "<module>", 1, false}},
	[AT_CONDITION] = {{"/usr/lib/python3.11/threading.py", "Condition.wait", 327, true},
			  {"/job/train.py", "main", 20, false}},
};

static void range(struct gen *g, uint32_t name, double t0, double t1)
{
	struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_range, t0, t1);

	ev->kind = TFT_RANGE;
	ev->w[0] = name;
}

static struct tfh_result *judge(uint32_t child, uint32_t place)
{
	struct gen *g = gen_new();
	double t = 100, cpu = 0;

	static const struct tfh_software software = {"JAX", "0.10", "/lib/libjax_common.so"};

	GEN_STACKS(&g->feed, stacks);
	g->process.software = &software;
	g->process.n_software = jax;
	g->name[TFT_NAME_STRING][2] = "Optimizer.zero_grad#SGD.zero_grad";
	g->name[TFT_NAME_STRING][3] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int i = 0; i < 120; i++, t += 6) {
		gen_sample(g, 0, t + 0.5 + fmod(i * 0.37, 4), TFT_STATE_LOCK, waits, 2.5);
		struct tfh_event *ev = gen_sample(g, 0, t + 1, TFT_STATE_RUNNING, place, 2.5);
		ev->kind = TFT_CHILD;
		ev->ctx = child;
		ev->stream = GEN_PID + 5;
		if (both) {
			ev = gen_sample(g, 0, t + 2, TFT_STATE_PIPE, AT_CHILD, 2.5);
			ev->kind = TFT_CHILD;
			ev->ctx = GEN_PID;
			ev->stream = GEN_PID + 6;
		}
		gen_cpu(g, 0, t + 5.5, cpu += 0.1, AT_ZERO);
		range(g, 2, t + 5.51, t + 5.55);
		if (i % 3 == 0) /* a stack at the call itself */
			gen_cpu(g, 0, t + 5.745, cpu, AT_ZERO);
		gen_call(g, 0, TFH_FN_torch_backward, t + 5.75, t + 5.95)->w[0] = 1;
		gen_cpu(g, 0, t + 5.95, cpu += 0.4, 0);
		range(g, 3, t + 5.96, t + 6);
	}
	return gen_judge(g);
}

static void test_given(void **state)
{
	(void)state;
	struct tfh_result *r = judge(GEN_PID + 1, AT_CHILD);

	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
	assert_int_equal(r->found.line.line, 20);
	tfh_result_free(r);
	both = true;
	r = judge(GEN_PID + 1, AT_CHILD);
	both = false;
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOCK);
	assert_int_equal(r->found.workers.more.to, 0);
	tfh_result_free(r);
	r = judge(GEN_PID + 1, AT_SERVER);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOCK);
	assert_int_equal(r->found.workers.processes, 0);
	tfh_result_free(r);
	r = judge(GEN_PID, AT_CHILD); /* another thread of the same process */
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOCK);
	tfh_result_free(r);
	r = judge(GEN_PID, AT_CALLED);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CALLBACK);
	assert_true(r->found.calls_back);
	assert_int_equal(r->found.line.line, 9);
	tfh_result_free(r);
}

static void test_jax(void **state)
{
	(void)state;
	jax = true;
	struct tfh_result *r = judge(GEN_PID + 1, AT_SERVER);
	gen_expect(r, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	assert_int_equal(r->found.line.line, 20);
	tfh_result_free(r);
	r = judge(GEN_PID, AT_CHILD);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOCK);
	tfh_result_free(r);
	waits = AT_CONDITION;
	r = judge(GEN_PID + 1, AT_SERVER);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOCK);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_given),
					   cmocka_unit_test(test_jax)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
