/* A get-next that waits although the pipeline has far less to do for a batch than a step takes was only woken up late: a what-if keeps
 * the time that it took. One that waits for a pipeline with that much to do returns no earlier than it did. */
#include "../devgen.h"

enum { ROOT = 1, PREFETCH, BATCH };

/* Each eighth batch comes 2 ms late. The job launches for most of a step. */
static struct tfh_result *loop(double work)
{
	struct dg *d = dg_new();
	struct gen *g = d->g;

	g->name[TFT_NAME_STAGE][ROOT] = "Iterator::Root#id=1,parent_id=0#";
	g->name[TFT_NAME_STAGE][PREFETCH] = "Iterator::Root::Prefetch#id=2,parent_id=1#";
	g->name[TFT_NAME_STAGE][BATCH] = "Iterator::Root::Prefetch::BatchV2#id=3,parent_id=2#";
	for (int i = 0; i < 160; i++) {
		double t = d->now[0], get = i % 8 ? 3 * US : 2;
		gen_stage(g, 0, PREFETCH, t, t + get, get);
		gen_get(g, 0, 1, ROOT, t, t + get);
		gen_stage(g, 1, BATCH, t, t + work, work);
		d->now[0] += get;
		for (int k = 0; k < 100; k++) {
			dg_code(d, 0, 40 * US);
			dg_launch(d, 0, 1, 10 * US);
		}
		dg_sync(d, 0, 1);
	}
	return dg_judge(d);
}

/* The step without launching, in ms. */
static double launched_ms(const struct tfh_result *r)
{
	const struct tfh_whatif *w = dg_whatif(r, TFH_REMOVE_LAUNCH);

	assert_non_null(w);
	return (isnan(w->step_s) ? w->about_s : w->step_s) * 1e3;
}

static void test_late(void **state)
{
	(void)state;
	struct tfh_result *r = loop(0.5);

	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_LAUNCH);
	/* 100 kernels of 10 us, 1 us from one to the next, and an eighth of 2 ms */
	assert_float_equal(launched_ms(r), 100 * 11 * US + 2.0 / 8, 0.05);
	tfh_result_free(r);
}

static void test_starved(void **state)
{
	(void)state;
	struct tfh_result *r = loop(4.3);

	assert_true(launched_ms(r) > 4.3 * 0.9);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_starved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
