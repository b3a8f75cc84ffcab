/* What the likely steps waited for goes to the chains of the chosen ones, and only if each of these is among them and was kept whole; what was
 * tentative becomes the device's doing once, at the first settling after it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "judge/chain.h"
#include "judge/result.h"

static void add(struct tfh_chain *c, int64_t t0, bool tentative)
{
	tfh_chain_add(c, &(struct tfh_link){.t0 = t0, .t1 = t0 + 1, .tentative = tentative});
}

static void likely(struct tfh_likely *l)
{
	tfh_likely_init(l, TFH_NO_STEP);
	for (uint64_t i = 0; i < 3; i++) {
		l->chain[i].process = 1;
		l->chain[i].step = 10 * i;
		add(&l->chain[i], (int64_t)i, false);
	}
}

static void chosen(void **state)
{
	struct tfh_likely l;
	struct tfh_chain a, b;

	(void)state;
	likely(&l);
	tfh_chain_init(&a, 1, 20);
	tfh_chain_init(&b, 1, 0);
	a.next = &b;
	assert_true(tfh_likely_give(&l, &a));
	assert_int_equal(a.link.n, 1);
	assert_int_equal(a.link.v[0].t0, 2);
	assert_int_equal(b.link.n, 1);
	assert_int_equal(b.link.v[0].t0, 0);
	tfh_chain_free(&a);
	tfh_chain_free(&b);
	tfh_likely_free(&l);
}

static void not_likely(void **state)
{
	static const struct {
		uint32_t process;
		uint64_t step;
	} others[] = {{1, 5}, {0, 10}};
	struct tfh_likely l;
	struct tfh_chain a, b;

	(void)state;
	likely(&l);
	for (int i = 0; i < 2; i++) {
		tfh_chain_init(&a, 1, 10);
		tfh_chain_init(&b, others[i].process, others[i].step);
		a.next = &b;
		assert_false(tfh_likely_give(&l, &a));
		assert_int_equal(a.link.n, 0);
		tfh_chain_free(&a);
		tfh_chain_free(&b);
	}
	tfh_likely_free(&l);
}

static void not_whole(void **state)
{
	struct tfh_likely l;
	struct tfh_chain a;

	(void)state;
	likely(&l);
	for (int i = 1; i < TFH_CHAIN_LIKELY_LINKS; i++)
		add(&l.chain[1], 10 + i, false);
	assert_false(l.chain[1].cut);
	add(&l.chain[1], 1 << 20, false);
	assert_int_equal(l.chain[1].link.n, TFH_CHAIN_LIKELY_LINKS);
	tfh_chain_init(&a, 1, 10);
	assert_false(tfh_likely_give(&l, &a));
	tfh_chain_free(&a);
	tfh_likely_free(&l);
}

static void settled(void **state)
{
	struct tfh_chain a;

	(void)state;
	tfh_chain_init(&a, 1, 10);
	add(&a, 0, true);
	add(&a, 1, false);
	tfh_chain_settle(&a, true, TFH_CAUSE_COMPUTE_CPU);
	add(&a, 2, true);
	tfh_chain_settle(&a, false, TFH_CAUSE_COMPUTE_CPU);
	tfh_chain_settle(&a, true, TFH_CAUSE_COMPUTE_CPU);
	assert_int_equal(a.link.v[0].cause, TFH_CAUSE_COMPUTE_CPU);
	assert_int_not_equal(a.link.v[1].cause, TFH_CAUSE_COMPUTE_CPU);
	assert_int_not_equal(a.link.v[2].cause, TFH_CAUSE_COMPUTE_CPU);
	tfh_chain_free(&a);
}

static int rewind_none(void *arg, uint32_t process, struct tfh_err *err)
{
	(void)arg, (void)process, (void)err;
	return 0;
}

static bool next_none(void *arg, struct tfh_event *ev)
{
	(void)arg, (void)ev;
	return false;
}

/* A step that shares its window with others gets its part of the links. */
static void part_of_window(void **state)
{
	const struct tfh_feed feed = {.rewind = rewind_none, .next = next_none};
	const struct tfh_step step = {.index = 7, .start_s = 10e-9, .dur_s = 5e-9};
	struct tfh_chain a;

	(void)state;
	tfh_chain_init_step(&a, 1, &step);
	assert_int_equal(a.step, 7);
	tfh_chain_add(&a, &(struct tfh_link){.t0 = 0, .t1 = 10});
	tfh_chain_add(&a, &(struct tfh_link){.t0 = 8, .t1 = 12, .cause = TFH_CAUSE_HOST_SYNC});
	tfh_chain_add(&a, &(struct tfh_link){.t0 = 12, .t1 = 20});
	assert_int_equal(tfh_chain_finish(&a, &feed, NULL), 0);
	assert_int_equal(a.link.n, 2);
	assert_int_equal(a.link.v[0].t0, 10);
	assert_int_equal(a.link.v[1].t1, 15);
	tfh_chain_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chosen),	  cmocka_unit_test(not_likely),
		cmocka_unit_test(not_whole),	  cmocka_unit_test(settled),
		cmocka_unit_test(part_of_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
