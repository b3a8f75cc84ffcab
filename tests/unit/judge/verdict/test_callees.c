/*
 * A line's callee is a function with over half of the line's time, whichever of its lines the
 * samples are at and in whatever order they come. Without such a function, and where the line's own
 * code has most of the time, none is named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "judge/verdict/callees.h"

static const struct tfh_model_line conv = {"conv.py", "Conv2d.forward", 565, true},
				   norm = {"norm.py", "BatchNorm.forward", 210, true},
				   relu = {"relu.py", "ReLU.forward", 7, true};

static void needs_half(void **state)
{
	struct tfh_callees of = {0};

	(void)state;
	tfh_callee_add(&of, &conv, 4);
	tfh_callee_add(&of, &relu, 3);
	tfh_callee_add(&of, &norm, 3); /* last, and not most */
	assert_null(tfh_callee_most(&of));
	tfh_callee_add(&of, &conv, 3);
	assert_string_equal(tfh_callee_most(&of)->function, "Conv2d.forward");
}

static void own_code(void **state)
{
	struct tfh_callees of = {0};

	(void)state;
	tfh_callee_add(&of, NULL, 6);
	tfh_callee_add(&of, &conv, 4);
	assert_null(tfh_callee_most(&of));
	tfh_callee_add(&of, &conv, 4);
	assert_string_equal(tfh_callee_most(&of)->function, "Conv2d.forward");
}

static void lines_of_one_function(void **state)
{
	static const uint32_t at[] = {570, 565, 560, 565, 565};
	struct tfh_callees of = {0};

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct tfh_model_line line = conv;
		line.line = at[i];
		tfh_callee_add(&of, &line, 1);
	}
	tfh_callee_add(&of, &norm, 4);
	assert_int_equal(tfh_callee_most(&of)->line, 565);
}

static void many_others(void **state)
{
	struct tfh_callees of = {0};
	char name[40][8];

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct tfh_model_line other = {"other.py", name[i], 1, true};
		snprintf(name[i], sizeof(name[i]), "f%d", i);
		tfh_callee_add(&of, &other, 1);
		tfh_callee_add(&of, &conv, 2);
	}
	assert_string_equal(tfh_callee_most(&of)->function, "Conv2d.forward");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(needs_half),
		cmocka_unit_test(own_code),
		cmocka_unit_test(lines_of_one_function),
		cmocka_unit_test(many_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
