/* What must hold: of the tree of lines, those with at least a hundredth of the time and three samples are shown, the largest first; all others
 * below one parent are one row, unless they are too small together; nothing is counted twice or lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/seen_tree.h"

#define ROOT UINT32_MAX

static const struct tfh_seen_node node[] = {
	{"a.py", "main", 1, 0, 1.00, 0.10, 100}, /* 0 */
	{"a.py", "small", 2, 0, 0.20, 0.20, 20}, /* 1 */
	{"a.py", "large", 3, 0, 0.50, 0.50, 50}, /* 2 */
	{"a.py", "rare", 4, 0, 0.15, 0.15, 2},	 /* 3: in a long pause */
	{"a.py", "tiny", 5, 0, 0.01, 0.01, 5},	 /* 4 */
	{"a.py", "once", 6, 2, 0.01, 0.01, 1},	 /* 5: too small even with all others */
	{"b.py", "other", 7, 6, 1.00, 1.00, 80}, /* 6 */
};

static void shown(void **state)
{
	struct tfh_seen_tree t = tfh_seen_tree_of(node, (uint32_t)(sizeof(node) / sizeof(*node)));
	struct tfh_seen_rest rest;

	(void)state;
	assert_true(t.all_s > 1.999 && t.all_s < 2.001);
	assert_int_equal(t.samples, 180);
	assert_int_equal(tfh_seen_tree_next(&t, ROOT, ROOT), 0);
	assert_int_equal(tfh_seen_tree_next(&t, ROOT, 0), 6); /* as large: in order */
	assert_int_equal(tfh_seen_tree_next(&t, ROOT, 6), ROOT);
	assert_int_equal(tfh_seen_tree_rest(&t, ROOT).n, 0);
	assert_int_equal(tfh_seen_tree_next(&t, 0, ROOT), 2);
	assert_int_equal(tfh_seen_tree_next(&t, 0, 2), 1);
	assert_int_equal(tfh_seen_tree_next(&t, 0, 1), ROOT);
	rest = tfh_seen_tree_rest(&t, 0);
	assert_int_equal(rest.n, 2);
	assert_int_equal(rest.samples, 7);
	assert_true(rest.s_per_step > 0.159 && rest.s_per_step < 0.161);
	assert_int_equal(tfh_seen_tree_next(&t, 2, ROOT), ROOT);
	assert_int_equal(tfh_seen_tree_rest(&t, 2).n, 0);
}

static void nothing(void **state)
{
	struct tfh_seen_tree t = tfh_seen_tree_of(NULL, 0);

	(void)state;
	assert_int_equal(tfh_seen_tree_next(&t, ROOT, ROOT), ROOT);
	assert_int_equal(tfh_seen_tree_rest(&t, ROOT).n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(shown), cmocka_unit_test(nothing)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
