/* A graph is executed by a thread of the framework's executor, which has nothing to do before: what holds up its launches is what
 * the thread did that called for the execution. If that ran the program's code, the step is host-bound and the gain is that of
 * a step without it; if it copied within the host's memory what was fetched, or what is sent next, the step is transfer-bound.
 * If the call began long before, and the executor's thread waits within it for a batch, the step is input-bound. */
#include "../devgen.h"

enum { MAIN, EXECUTOR, FEEDER };
enum { NONE, TRAIN, ROOT = 1 };
enum { OWN = 5, NUMPY = 6, CONSTANT = 7 }; /* places of samples */

#define STEP "/home/me/train.py", "step", 12, false
#define FRAMEWORK "/x/site-packages/tensorflow/python/framework/"

static const gen_stack stacks[] = {
	[OWN] = {{STEP}},
	[NUMPY] = {{FRAMEWORK "ops.py", "_EagerTensorBase.numpy", 441, true}, {STEP}},
	[CONSTANT] = {{FRAMEWORK "constant_op.py", "convert_to_eager_tensor", 96, true}, {STEP}},
};

/* An execution: the executor's thread launches 2 ms of kernels once there is a batch, after `input`. */
static void execute(struct dg *d, double input)
{
	double from = d->now[MAIN];

	dg_code_until(d, EXECUTOR, from + 0.1);
	dg_code_until(d, FEEDER, from + 0.05);
	if (input > 0) {
		dg_get(d, FEEDER, input);
		dg_code_until(d, EXECUTOR, d->now[FEEDER] + 0.02);
	}
	for (int k = 0; k < 20; k++)
		dg_launch(d, EXECUTOR, 1, 0.1);
	d->now[MAIN] = d->now[EXECUTOR] + 0.05;
	gen_exec(d->g, TRAIN, from, d->now[MAIN]);
}

/* Steps of an execution, its result's copy back (1 ms), and `code` ms seen at `place`. */
static struct tfh_result *judge(uint32_t place, double code, double input)
{
	struct dg *d = dg_new();

	d->g->name[TFT_NAME_OP][TRAIN] = "__inference_train_step_12";
	d->g->name[TFT_NAME_STAGE][ROOT] = "Iterator::Root#id=1,parent_id=0#";
	for (int i = 0; i < 120; i++) {
		execute(d, input);
		dg_copy_blocking(d, MAIN, 1, TFH_DIR_D2H, 1 << 26, 1);
		double at = d->now[MAIN] + fmod(i * 0.618, 1) * code;
		if (code > 0)
			gen_sample(d->g, MAIN, at, TFT_STATE_RUNNING, place, 10);
		gen_sample(d->g, EXECUTOR, at, TFT_STATE_LOCK, 0, 10);
		dg_code(d, MAIN, code);
	}
	GEN_STACKS(&d->g->feed, stacks);
	return dg_judge(d);
}

static double without_ms(const struct tfh_result *r, enum tfh_remove what)
{
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == what)
			return 1e3 * r->whatif[i].step_s;
	return NAN;
}

static void test_code(void **state)
{
	(void)state;
	struct tfh_result *r = judge(OWN, 6, 0);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
	gen_part(r, TFH_PART_HOST, 6.1); /* until the executor's thread goes on */
	assert_float_equal(without_ms(r, TFH_REMOVE_HOST), 3.2, 0.3);
	tfh_result_free(r);
}

static void test_copied_on_the_host(void **state)
{
	(void)state;
	struct tfh_result *r = judge(NUMPY, 6, 0);

	gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_D2H);
	gen_part(r, TFH_PART_TRANSFER, 7);
	assert_float_equal(without_ms(r, TFH_REMOVE_TRANSFER), 2.2, 0.3);
	tfh_result_free(r);
	r = judge(CONSTANT, 6, 0);
	gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_H2D_PAGEABLE);
	tfh_result_free(r);
}

/* In 0.1 ms the library does little but get to its next call. */
static void test_brief(void **state)
{
	(void)state;
	struct tfh_result *r = judge(CONSTANT, 0.1, 0);

	assert_int_not_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_H2D_PAGEABLE);
	tfh_result_free(r);
}

static void test_input_within(void **state)
{
	(void)state;
	struct tfh_result *r = judge(OWN, 0.3, 8);

	assert_int_equal(r->verdict.cls, TFH_CLASS_INPUT_BOUND);
	gen_part(r, TFH_PART_INPUT, 8);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_copied_on_the_host),
		cmocka_unit_test(test_brief),
		cmocka_unit_test(test_input_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
