/* More edge cases of the analysis with device times, each from a small simulation: several
 * iterators, copies between devices, one late rank among many. */
#include "../devgen.h"

static void get_from(struct dg *d, uint32_t iterator, double ms)
{
	struct tfh_event *ev = dg_call(d, 0, TFH_FN_tf_getnext_op, ms);

	ev->w[0] = iterator;
	ev->depth = 1;
}

/* Each step takes a batch of two data sets, one of which is slow: a step is a step. */
static void test_two_data_sets(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		get_from(d, 1, 3);
		get_from(d, 2, 0.2);
		dg_launches(d, 1, 10, 0.5);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
	assert_true(r->steps.total >= 39 && r->steps.total <= 40);
	gen_part(r, TFH_PART_INPUT, 3.2);
	dg_predicts(r, TFH_REMOVE_INPUT, 5 + 9 * DG_NEXT + DG_LATENCY + DG_WAKE);
	tfh_result_free(r);
}

/* Two networks are trained in turn, each with batches of its own (a GAN). Whichever is taken for
 * the step, what is waited for is the input, and the kernels of both are computing. */
static void test_in_turn(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 40; i++) {
		get_from(d, 1, 3);
		dg_launches(d, 1, 10, 0.4);
		dg_sync(d, 0, 1);
		get_from(d, 2, 2);
		dg_launches(d, 1, 10, 0.6);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
	assert_true(fabs(r->breakdown[TFH_PART_INPUT].share - 5 / 15.05) < 0.01);
	assert_true(fabs(r->breakdown[TFH_PART_COMPUTE].share - 10 / 15.05) < 0.01);
	tfh_result_free(r);
}

/* Activations go from one device to the other, which waits for them. */
static void test_between_devices(void **state)
{
	(void)state;
	struct dg *d = dg_new();
	d->device[2] = 1;

	for (int i = 0; i < 40; i++) {
		dg_get(d, 0, 0.05);
		dg_launch(d, 0, 1, 2);
		struct tfh_op *op = dg_op(d, 1, d->now[0], DG_LATENCY, 4);
		struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuMemcpyPeerAsync, DG_CALL);
		ev->stream = 1;
		ev->w[0] = 1 << 24;
		dg_copy_op(op, TFH_DIR_P2P, 1 << 24, false);
		dg_issued(op, ev);
		dg_record(d, 0, 1, 1);
		dg_wait(d, 0, 2, 1);
		dg_launch(d, 0, 2, 6);
		dg_sync_all(d, 0);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_TRANSFER_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_P2P);
	gen_part(r, TFH_PART_TRANSFER, 4);
	dg_predicts(r, TFH_REMOVE_TRANSFER, 8 + 0.05 + DG_NEXT + DG_LATENCY + DG_WAKE);
	tfh_result_free(r);
}

/* Eight steps in one call of a function, which threads of an executor run: the call lasts as long
 * as they do. */
static void test_graph_of_others(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	d->g->name[TFT_NAME_OP][7] = "__inference_several_1";
	for (int i = 0; i < 16; i++) {
		double t0 = d->now[0], t = t0;
		for (int k = 0; k < 8; k++) {
			dg_code_until(d, 2, t + 0.02);
			dg_get(d, 2, 8);
			dg_code_until(d, 1, d->now[2] + 0.02);
			for (int n = 0; n < 10; n++)
				dg_launch(d, 1, 1, 1);
			dg_sync(d, 1, 1);
			t = d->now[1];
		}
		dg_code_until(d, 0, t + 0.02);
		gen_exec(d->g, 7, t0, d->now[0]);
		dg_code(d, 0, 0.02);
	}
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_INPUT_BOUND);
	gen_part(r, TFH_PART_INPUT, 8);
	dg_predicts(r, TFH_REMOVE_INPUT, 10.06);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_data_sets),
		cmocka_unit_test(test_in_turn),
		cmocka_unit_test(test_between_devices),
		cmocka_unit_test(test_graph_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
