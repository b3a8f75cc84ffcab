/* A pause divided by shares is charged completely and without overlap, to the causes of these shares only, and the chain of its step holds
 * exactly what its account does. Prefetching managed memory is a transfer at every tier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "judge/account/account.h"

static void divided(void **state)
{
	static const double thirds[] = {1.0 / 3, 1.0 / 3, 1.0 / 3};
	static const int64_t lengths[] = {1, 2, 3, 100, 1000003, INT64_C(10000000000000007)};
	struct tfh_share_end part[TFH_CAUSE_COUNT];
	double share[TFH_CAUSE_COUNT] = {0};

	(void)state;
	for (int i = 0; i < 3; i++)
		share[TFH_CAUSE_HOST_PYTHON + i] = thirds[i];
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		int64_t at = 7;
		assert_int_equal(tfh_divide(7, 7 + lengths[i], share, part), 3);
		for (int k = 0; k < 3; at = part[k++].t1) {
			assert_int_equal(part[k].cause, TFH_CAUSE_HOST_PYTHON + k);
			assert_true(part[k].t1 >= at);
		}
		assert_int_equal(at, 7 + lengths[i]);
	}
	for (int i = 0; i < 3; i++)
		share[TFH_CAUSE_HOST_PYTHON + i] = 0;
	assert_int_equal(tfh_divide(7, 9, share, part), 0);
}

static void both(void **state)
{
	struct tfh_account a = {0}, sum = {0};
	struct tfh_chain chain;
	int64_t in_chain = 0;

	(void)state;
	tfh_chain_init(&chain, 0, 0);
	tfh_account_charge(&a, &chain, 0, 10, TFH_CAUSE_HOST_SYNC, true);
	tfh_account_charge(&a, &chain, 10, 10, TFH_CAUSE_HOST_ALLOC, true);
	tfh_account_charge(&a, &chain, 10, 30, TFH_CAUSE_NONE, false);
	assert_int_equal(a.cause[TFH_CAUSE_HOST_SYNC], 10);
	assert_int_equal(a.compute, 20);
	assert_int_equal(a.direct, 10);
	assert_int_equal(chain.link.n, 2);
	for (size_t i = 0; i < chain.link.n; i++)
		in_chain += chain.link.v[i].t1 - chain.link.v[i].t0;
	assert_int_equal(in_chain, 30);
	tfh_account_sum(&sum, &a);
	tfh_account_sum(&sum, &a);
	assert_int_equal(sum.cause[TFH_CAUSE_HOST_SYNC] + sum.compute + sum.direct, 80);
	tfh_chain_free(&chain);
}

static void calls(void **state)
{
	(void)state;
	assert_int_equal(tfh_other_cause(TFH_FAM_MANAGED, 1000), TFH_CAUSE_TRANSFER_MANAGED);
	assert_int_equal(tfh_other_cause(TFH_FAM_GRAPH, 2 * TFH_ACCOUNT_GRAPH_NS),
			 TFH_CAUSE_HOST_COMPILE);
	assert_int_equal(tfh_other_cause(TFH_FAM_EVENT, 1000), TFH_CAUSE_HOST_LAUNCH);
	static const struct tfh_accounts none, evaluates = {.evaluates = true};
	assert_int_equal(tfh_exec_cause(&none, false, true, false), TFH_CAUSE_HOST_COMPILE);
	assert_int_equal(tfh_exec_cause(&evaluates, false, true, false), TFH_CAUSE_HOST_CALLBACK);
	assert_int_equal(tfh_exec_cause(&none, true, true, true), TFH_CAUSE_HOST_CHECKPOINT);
	assert_int_equal(tfh_exec_cause(&none, false, false, false), TFH_CAUSE_HOST_LAUNCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(divided),
		cmocka_unit_test(both),
		cmocka_unit_test(calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
