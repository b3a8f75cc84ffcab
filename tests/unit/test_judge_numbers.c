/* Every number that decides stands in one table, and what bounds memory in another: names differ,
 * each has a unit and a source, and shares lie between 0 and 1. Prints the tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "judge/numbers.h"

struct row {
	const char *name;
	double value;
	const char *unit, *text;
};

#define WHOLE(name, value, unit, source) {#name, TFH_##name, unit, source},
#define REAL(name, value, unit, source) {#name, TFH_##name, unit, source},
static const struct row number[] = {
#include "judge/numbers.def"
};
#define LIMIT(name, value, unit, beyond) {#name, TFH_##name, unit, beyond},
static const struct row limit[] = {
#include "judge/limits.def"
};

#define ROWS(table) (sizeof(table) / sizeof(*(table)))

static void look_at(const struct row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		printf("%-28s %12g %-12s %s\n", v[i].name, v[i].value, v[i].unit, v[i].text);
		assert_true(v[i].value > 0);
		assert_true(*v[i].unit && strlen(v[i].text) > 10);
		if (!strcmp(v[i].unit, "share"))
			assert_true(v[i].value < 1);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(v[i].name, v[k].name);
	}
}

static void test_rows(void **state)
{
	(void)state;
	look_at(number, ROWS(number));
	look_at(limit, ROWS(limit));
	for (size_t i = 0; i < ROWS(number); i++)
		for (size_t k = 0; k < ROWS(limit); k++)
			assert_string_not_equal(number[i].name, limit[k].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
