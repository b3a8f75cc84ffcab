/*
 * A PyTorch job on the CPU whose samples run at a line of the program before the backward pass. Without Python's lock the line may be
 * the forward pass, if the step computes for longer in all; with the lock, where the recording does not say, where PyTorch is not
 * loaded, in a function of a package, or where computing takes less, it is the host's own code. A package's forward() computes either
 * way. Where one sample represents most of the time, nothing is known of the host's own code.
 */
#include "../analyze_gen.h"

enum { AT_OWN = 1, AT_PACKAGE, AT_FORWARD, AT_ZERO };

#define GAUSS "/usr/lib/python3/site-packages/gauss/kernel.py"

static const gen_stack stacks[] = {
	[AT_OWN] = {{"/job/train.py", "main", 20, false}},
	[AT_PACKAGE] = {{GAUSS, "smooth", 7, true}, {"/job/train.py", "main", 20, false}},
	[AT_FORWARD] = {{GAUSS, "Kernel.forward", 7, true}, {"/job/train.py", "main", 20, false}},
	[AT_ZERO] = {{"/job/train.py", "main", 22, false}},
};

static bool one_tells; /* one sample represents more time than all others */

/* 120 steps of 6 ms, of which the program's line takes own_ms, and the backward pass almost all of the rest. */
static void judge(double own_ms, bool torch, uint32_t at, enum tft_gil gil, enum tfh_class class,
		  enum tfh_cause cause)
{
	static const struct tfh_software software = {.name = "PyTorch"};
	struct gen *g = gen_new();
	double t = 100, cpu = 0;

	GEN_STACKS(&g->feed, stacks);
	g->process.software = &software;
	g->process.n_software = torch;
	g->name[TFT_NAME_STRING][2] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (int i = 0; i < 120; i++, t += 6) {
		struct tfh_event *ev =
			gen_sample(g, 0, t + 0.2 + fmod(i * 0.37, own_ms - 0.4), TFT_STATE_RUNNING,
				   at, one_tells && i != 60 ? 0.01 : 2.5);
		ev->w[0] = gil;
		gen_cpu(g, 0, t + own_ms - 0.01, cpu += own_ms, AT_ZERO);
		gen_call(g, 0, TFH_FN_torch_backward, t + own_ms, t + 5.95)->w[0] = 1;
		gen_cpu(g, 0, t + 5.95, cpu += 5.95 - own_ms, 0);
		ev = gen_call(g, 0, TFH_FN_torch_range, t + 5.96, t + 6);
		ev->kind = TFT_RANGE;
		ev->w[0] = 2;
	}
	struct tfh_result *r = gen_judge(g);
	gen_expect(r, class, cause);
	if (class == TFH_CLASS_HOST_BOUND || at == AT_FORWARD)
		assert_int_equal(r->found.line.line, 20);
	tfh_result_free(r);
}

static void is_host(double own_ms, bool torch, uint32_t at, enum tft_gil gil)
{
	judge(own_ms, torch, at, gil, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
}

static void test_released(void **state)
{
	(void)state;
	judge(2.4, true, AT_OWN, TFT_GIL_RELEASED, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	is_host(2.4, true, AT_OWN, TFT_GIL_HELD);
	is_host(2.4, true, AT_OWN, TFT_GIL_UNKNOWN);
	is_host(2.4, false, AT_OWN, TFT_GIL_RELEASED);
	is_host(2.4, true, AT_PACKAGE, TFT_GIL_RELEASED);
	is_host(5.5, true, AT_OWN, TFT_GIL_RELEASED);
}

/* Where one sample represents most of the time, it is as if there was only that one. */
static void test_one_tells(void **state)
{
	(void)state;
	one_tells = true;
	judge(2.4, true, AT_OWN, TFT_GIL_HELD, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	is_host(5.5, true, AT_OWN, TFT_GIL_HELD); /* it computes hardly */
	one_tells = false;
}

static void test_forward(void **state)
{
	(void)state;
	judge(5.5, true, AT_FORWARD, TFT_GIL_HELD, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_released),
					   cmocka_unit_test(test_one_tells),
					   cmocka_unit_test(test_forward)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
