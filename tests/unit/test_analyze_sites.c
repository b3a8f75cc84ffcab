/* The report names the call site that takes most of the time of a cause, copies by function, and
 * names none if no backtraces were recorded. */
#include "judge/account/account.h"
#include "devgen.h"

static const char *site(void *arg, uint32_t process, uint32_t stack)
{
	static const char *const text[] = {"", "rarely < main", "grow_buffer < train", "upload"};

	(void)arg;
	assert_int_equal(process, 0);
	return stack >= 100 ? "other" : text[stack];
}

/* Steps that allocate and free for 6 ms: at place 2, at place 1 every tenth time, else anywhere. */
static struct tfh_result *job(bool stacks)
{
	struct dg *d = dg_new();
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};
	uint32_t other = 100;

	for (int s = 0; s < 60; s++) {
		for (int k = 0; k < 3; k++) {
			struct tfh_event *ev =
				dg_call(d, 0, k ? TFH_FN_cuMemFree_v2 : TFH_FN_cuMemAlloc_v2, 2);
			ev->kind = TFT_ALLOC;
			if (stacks)
				ev->stack = k == 0 ? 2 : s % 10 == 0 ? 1 : other++;
		}
		dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 1 << 20, 0.5);
		if (stacks)
			d->g->ev[d->g->n - 1].stack = 3;
		for (int k = 0; k < 4; k++)
			dg_launch(d, 0, 1, 0.2);
		dg_sync(d, 0, 1);
	}
	struct tfh_feed *f = dg_feed(d);
	f->site = site;
	if (tfh_analyze_feed(f, &r, &err))
		print_error("%s\n", err.text);
	dg_free(d);
	assert_non_null(r);
	return r;
}

static void test_sites(void **state)
{
	(void)state;
	struct tfh_result *r = job(true);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_ALLOC);
	assert_non_null(gen_says(r, "cuMemAlloc_v2 called from grow_buffer < train"));
	assert_int_equal(r->n_transfers, 1);
	assert_string_equal(r->transfers[0].where, "upload");
	tfh_result_free(r);
}

static void test_none(void **state)
{
	(void)state;
	struct tfh_result *r = job(false);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_ALLOC);
	assert_null(gen_says(r, "called from"));
	assert_string_equal(r->transfers[0].where, "");
	tfh_result_free(r);
}

/* As long as there are no more places than are kept, the time of each is exact. */
static void test_exact_counts(void **state)
{
	(void)state;
	struct tfh_site_use use[TFH_ACCOUNT_SITES] = {0};

	for (int i = 0; i < 100; i++) {
		struct tfh_event ev = {.stack = 1 + (uint32_t)(i % TFH_ACCOUNT_SITES),
				       .t1 = 10 + i};
		tfh_site_count(use, &ev);
	}
	for (int k = 0; k < TFH_ACCOUNT_SITES; k++) {
		int64_t ns = 0;
		for (int i = k; i < 100; i += TFH_ACCOUNT_SITES)
			ns += 10 + i;
		assert_int_equal(use[k].stack, k + 1);
		assert_int_equal(use[k].ns, ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_counts),
		cmocka_unit_test(test_sites),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
