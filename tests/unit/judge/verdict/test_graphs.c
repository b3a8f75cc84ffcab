/* What must hold: where most steps capture and instantiate a graph, its captured launches run nothing but take the host's time for
 * launching, and the advice is to keep the graph, not to capture one; a graph that is launched again leaves no such advice. */
#include "../devgen.h"

#define STEPS 60
#define NODES 100

static void capture(struct dg *d)
{
	dg_call(d, 0, TFH_FN_cuStreamBeginCapture, DG_CALL);
	for (int i = 0; i < NODES; i++) {
		struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuLaunchKernel, 10 * US);
		ev->w[0] = 1;
		ev->flags |= TFT_F_CAPTURED;
	}
	dg_call(d, 0, TFH_FN_cuStreamEndCapture, DG_CALL);
	dg_call(d, 0, TFH_FN_cuGraphInstantiateWithFlags, 40 * US);
}

static struct tfh_result *job(bool kept)
{
	struct dg *d = dg_new();

	for (int i = 0; i < STEPS; i++) {
		dg_copy(d, 0, 1, TFH_DIR_H2D, 100000, 0.01);
		if (!kept || !i)
			capture(d);
		dg_graph(d, 0, 1, NODES, 4 * US, DG_NEXT);
		dg_sync(d, 0, 1);
	}
	return dg_judge(d);
}

static bool says(const struct tfh_result *r, const char *finding)
{
	struct tfh_wording w;
	bool said = false;

	tfh_wording_make(&w, r);
	for (uint32_t i = 0; i < w.n_advice; i++)
		said |= !strcmp(w.advice[i].finding, finding);
	tfh_wording_free(&w);
	return said;
}

static void test_graphs(void **state)
{
	(void)state;
	static const char made[] = "steps make a graph instead of launching one again";
	struct tfh_result *r = job(false);

	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->steady.cause, TFH_CAUSE_HOST_LAUNCH);
	assert_in_range(r->steps.total, STEPS - 1, STEPS);
	assert_int_equal(r->pattern.graph_steps, r->steps.count);
	assert_true(r->found.cause_s[TFH_CAUSE_HOST_LAUNCH] > 0.9 * NODES * 10e-6);
	assert_true(says(r, made));
	tfh_result_free(r);
	r = job(true);
	assert_in_range(r->pattern.graph_steps, 0, 1);
	assert_false(says(r, made));
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_graphs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
