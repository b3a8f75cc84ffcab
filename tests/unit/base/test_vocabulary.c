/* The vocabulary: names and numbers map to each other, every cause's name begins with its class,
 * and every class that can block has a part of the step's time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/vocabulary.h"

/* Every member has a name, and no two of a list the same. */
#define NAMES_DIFFER(type, PREFIX)                                                                 \
	for (int i = 0; i < TFH_##PREFIX##_COUNT; i++) {                                           \
		assert_non_null(tfh_##type##_name((enum tfh_##type)i));                            \
		for (int k = 0; k < i; k++)                                                        \
			assert_string_not_equal(tfh_##type##_name((enum tfh_##type)i),             \
						tfh_##type##_name((enum tfh_##type)k));            \
	}

static void test_names(void **state)
{
	(void)state;
	NAMES_DIFFER(class, CLASS)
	NAMES_DIFFER(part, PART)
	NAMES_DIFFER(cause, CAUSE)
	NAMES_DIFFER(stage, STAGE)
	NAMES_DIFFER(segment, SEGMENT)
	NAMES_DIFFER(remove, REMOVE)
	NAMES_DIFFER(step_clock, STEP_CLOCK)
	NAMES_DIFFER(confidence, CONFIDENCE)
	NAMES_DIFFER(end, END)
	assert_int_equal(TFH_CLASS_COUNT, 7);
	assert_int_equal(TFH_PART_COUNT, 8);
	assert_int_equal(TFH_STAGE_COUNT, 8);
	assert_int_equal(TFH_REMOVE_COUNT, 7);
	assert_string_equal(tfh_step_clock_name(TFH_STEP_CLOCK_PERIOD), "period");
	assert_string_equal(tfh_confidence_name(TFH_CONFIDENCE_HIGH), "high");
	assert_string_equal(tfh_end_name(TFH_END_KILLED), "killed");
	assert_int_equal(tfh_end_find("killed"), TFH_END_KILLED);
	assert_int_equal(tfh_end_find("tired"), TFH_END_NONE);
	assert_int_equal(tfh_end_find(NULL), TFH_END_NONE);
}

static void test_none(void **state)
{
	(void)state;
	assert_null(tfh_class_name(TFH_CLASS_NONE));
	assert_null(tfh_cause_name(TFH_CAUSE_COUNT));
	assert_int_equal(tfh_cause_class(TFH_CAUSE_NONE), TFH_CLASS_NONE);
	assert_int_equal(tfh_cause_part(TFH_CAUSE_NONE), TFH_PART_NONE);
	assert_int_equal(tfh_part_class(TFH_PART_NONE), TFH_CLASS_NONE);
}

static void test_causes(void **state)
{
	(void)state;
	for (int i = 0; i < TFH_CAUSE_COUNT; i++) {
		const char *cause = tfh_cause_name(i), *class = tfh_class_name(tfh_cause_class(i));
		size_t stem = strcspn(cause, ".");

		assert_int_equal(strncmp(cause, class, stem), 0);
		assert_string_equal(class + stem, "-bound");
		assert_int_equal(tfh_part_class(tfh_cause_part(i)), tfh_cause_class(i));
	}
	assert_int_equal(tfh_cause_part(TFH_CAUSE_HOST_LAUNCH), TFH_PART_LAUNCH);
	assert_int_equal(tfh_cause_part(TFH_CAUSE_HOST_SYNC), TFH_PART_SYNC);
	assert_int_equal(tfh_cause_part(TFH_CAUSE_HOST_UNKNOWN), TFH_PART_HOST);
	assert_int_equal(tfh_remove_part(TFH_REMOVE_INPUT), TFH_PART_INPUT);
	assert_int_equal(tfh_remove_part(TFH_REMOVE_EVERYTHING_BUT_COMPUTE), TFH_PART_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_causes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
