/* Ops that start late for no known reason: this costs time only as far as the device is busy until
 * the end, not if it waits for the host soon. Classes of steps with much time without a cause. */
#include "../devgen.h"
#include "judge/account/account.h"

/* Steps of 20 launches; the device begins one of twelve 1 ms after the first launch. `apart`: the host's own
 * work between two launches; `ms`: each kernel's duration. */
static struct tfh_result *stalled(double apart, double ms, bool waits)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 0.01);
		if (i % 12 == 5)
			d->end[1] = d->now[0] + 1;
		for (int k = 0; k < 20; k++) {
			dg_launch(d, 0, 1, ms);
			dg_code(d, 0, apart);
			if (waits && !k)
				dg_sync(d, 0, 1);
		}
		dg_sync(d, 0, 1);
	}
	return dg_judge(d);
}

/* The host launches for 2 ms. The device catches up with it, so the stall did not matter. */
static void test_hidden(void **state)
{
	(void)state;
	struct tfh_result *r = stalled(0.1, 0.005, false);

	dg_check(r, TFH_CLASS_HOST_BOUND);
	gen_part(r, TFH_PART_UNATTRIBUTED, 0);
	tfh_result_free(r);
}

/* All is launched within 0.1 ms, or the host waits for the first kernel: the stall delays the end. */
static void test_not_hidden(void **state)
{
	(void)state;
	struct tfh_result *r = stalled(0, 0.1, false);

	gen_part(r, TFH_PART_UNATTRIBUTED, 1 / 12.);
	tfh_result_free(r);
	r = stalled(0.1, 0.005, true);
	gen_part(r, TFH_PART_UNATTRIBUTED, 1 / 12.);
	tfh_result_free(r);
}

/* The host launches one more kernel when the stall has ended, on another stream, which is idle. That
 * the stall did not delay it is seen whether the stream ran anything before or not. */
static void test_first_of_stream(void **state)
{
	(void)state;
	for (int fresh = 0; fresh < 2; fresh++) {
		struct dg *d = dg_new();

		for (int i = 0; i < 60; i++) {
			bool late = i % 12 == 5;
			dg_get(d, 0, 0.01);
			if (late)
				d->end[1] = d->now[0] + 1;
			for (int k = 0; k < 20; k++)
				dg_launch(d, 0, 1, 0.1);
			dg_code(d, 0, 1.05);
			dg_launch(d, 0, late && fresh ? 3 + i / 12 : 2, 0.005);
			dg_sync(d, 0, 1);
		}
		struct tfh_result *r = dg_judge(d);
		gen_part(r, TFH_PART_UNATTRIBUTED, 0);
		tfh_result_free(r);
	}
}

static enum tfh_class class_of(double compute, double communication, double host, double unknown)
{
	const double part[TFH_PART_COUNT] = {[TFH_PART_COMPUTE] = compute,
					     [TFH_PART_COMMUNICATION] = communication,
					     [TFH_PART_HOST] = host,
					     [TFH_PART_UNATTRIBUTED] = unknown};

	return tfh_class_of(part, compute + communication + host + unknown);
}

/* A class stands if it has more than the next one together with all time without a cause. */
static void test_class_without_causes(void **state)
{
	(void)state;
	assert_int_equal(class_of(1, 63, 14, 22), TFH_CLASS_COMMUNICATION_BOUND);
	assert_int_equal(class_of(1, 45, 28, 26), TFH_CLASS_UNCLASSIFIED);
	assert_int_equal(class_of(1, 14, 63, 22), TFH_CLASS_HOST_BOUND);
	assert_int_equal(class_of(60, 15, 0, 25), TFH_CLASS_UNCLASSIFIED);
	assert_int_equal(class_of(90, 0, 5, 5), TFH_CLASS_COMPUTE_BOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_not_hidden),
		cmocka_unit_test(test_first_of_stream),
		cmocka_unit_test(test_class_without_causes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
