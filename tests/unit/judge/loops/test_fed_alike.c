/* Iterators whose batches go the same way are one training loop, and an evaluation is none, though no function tells: synthetic
 * runs of TensorFlow. The number of steps is that which the trace was made from. */
#include "judge/chain.h"
#include "../tf_loops.h"

/* Ops that are executed one by one show which loop trains: after its first epoch, cache() makes
 * another pipeline, whose batches go through as many ops. The evaluation's go through fewer. */
static void test_epochs_of_single_ops(void **state)
{
	(void)state;
	static const char *const below[] = {"Iterator::Root::MemoryCacheImpl#id=2,parent_id=1#",
					    "Iterator::Root::BatchV2#id=21,parent_id=20#",
					    "Iterator::Root::Map#id=41,parent_id=40#"};
	struct gen *g = tf();
	double t = 100;

	for (uint32_t loop = 0; loop < 3; loop++) {
		uint32_t root = loop ? 20 * loop : ROOT;
		g->name[TFT_NAME_STAGE][root] = g->name[TFT_NAME_STAGE][ROOT];
		g->name[TFT_NAME_STAGE][root + 1] = below[loop];
		for (int i = 0; i < 30; i++, t += 10) {
			gen_stage(g, 0, root + 1, t, t + 0.9, 0.9);
			gen_get(g, 0, 1 + loop, root, t, t + 1);
			for (int op = 0; op < (loop < 2 ? 40 : 15); op++)
				gen_exec(g, OP_SMALL, t + 1.1 + op * 0.2, t + 1.2 + op * 0.2);
		}
		gen_get(g, 0, 1 + loop, root, t, t + 0.02)->flags = TFT_F_OPTIONAL;
		t += 20;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 60);
	tfh_result_free(r);
}

/* A curriculum: each stage has a pipeline and a step time of its own, but all launch the same kernels, the last one more of them. An
 * evaluation launches those of the forward pass only. */
static void test_stages_of_a_curriculum(void **state)
{
	(void)state;
	static const char *const below[] = {"Iterator::Root::BatchV2#id=2,parent_id=1#",
					    "Iterator::Root::Shuffle#id=21,parent_id=20#",
					    "Iterator::Root::Map#id=41,parent_id=40#",
					    "Iterator::Root::Skip#id=61,parent_id=60#"};
	static const char *const kernel[] = {"", "forward", "loss", "wgrad", "adamw"};
	struct gen *g = tf();
	double t = 100;

	for (uint32_t k = 1; k < 5; k++)
		g->name[TFT_NAME_FUNCTION][k] = kernel[k];
	for (uint32_t loop = 0; loop < 4; loop++) {
		uint32_t root = loop ? 20 * loop : ROOT, last = loop == 3 ? 2 : 4;
		double ms = loop == 3 ? 2 : 4 + loop;
		g->name[TFT_NAME_STAGE][root] = g->name[TFT_NAME_STAGE][ROOT];
		g->name[TFT_NAME_STAGE][root + 1] = below[loop];
		for (int i = 0; i < 30; i++) {
			gen_stage(g, 0, root + 1, t, t + 0.1, 0.1);
			gen_get(g, 0, 1 + loop, root, t, t + 0.2);
			for (uint32_t k = 1; k <= last; k++)
				for (uint32_t n = 0; n < (k == 1 ? 1 + loop : 1); n++)
					gen_call(g, 0, TFH_FN_cuLaunchKernel,
						 t + 0.3 + 0.1 * k + 0.02 * n,
						 t + 0.31 + 0.1 * k + 0.02 * n)
						->w[0] = k;
			gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 1, t + ms);
			t += ms + 0.1;
		}
		gen_get(g, 0, 1 + loop, root, t, t + 0.02)->flags = TFT_F_OPTIONAL;
		t += 20;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 90);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epochs_of_single_ops),
		cmocka_unit_test(test_stages_of_a_curriculum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
