/* Pieces of work that each take a batch are steps, also if something else follows every n-th, and the first of the n launch a
 * kernel of their own. */
#include "../devgen.h"

enum { FLY = 1, REDUCE, FIRST, SECOND, IMAGE };

static void launch(struct dg *d, uint64_t function)
{
	dg_launch(d, 0, 1, 20 * US);
	d->g->ev[d->g->n - 1].w[0] = function;
}

static void hop(struct dg *d, int hop)
{
	dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 20, 10 * US);
	launch(d, FLY);
	if (hop < 2)
		launch(d, hop ? SECOND : FIRST);
	for (int i = 0; i < 3; i++)
		launch(d, REDUCE);
	dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 1, 2 * US);
}

static struct tfh_result *frames(void)
{
	struct dg *d = dg_new();

	for (int f = 0; f < 60; f++) {
		for (int i = 0; i < 12; i++)
			hop(d, i);
		launch(d, IMAGE);
		dg_sync(d, 0, 1);
	}
	return dg_judge(d);
}

static void test_fed(void **state)
{
	(void)state;
	struct tfh_result *r = frames();

	assert_in_range(r->steps.total, 59 * 12, 61 * 12);
	tfh_result_free(r);
}

/* Four accumulated pieces, the last one with the update behind it and no wait between, are one step. */
static void test_update(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int f = 0; f < 80; f++) {
		for (int i = 0; i < 4; i++) {
			dg_copy(d, 0, 1, TFH_DIR_H2D, 1000, 10 * US);
			launch(d, FLY);
		}
		launch(d, IMAGE);
		dg_sync(d, 0, 1);
	}
	struct tfh_result *r = dg_judge(d);
	assert_in_range(r->steps.total, 79, 81);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fed),
		cmocka_unit_test(test_update),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
