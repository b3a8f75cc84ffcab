/* Every deciding number is in one table, and every bound on memory in another: names differ, each
 * has a unit and a source, shares lie between 0 and 1, and no file of lib/judge or lib/report/words
 * defines a number of its own. Prints the tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ftw.h>
#include <regex.h>
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

/* Places for kinds of steps: as many as can have the share that makes one. */
static void test_kinds(void **state)
{
	(void)state;
	assert_true(TFH_VERDICT_KIND_PLACES * TFH_VERDICT_KIND_SHARE > 0.999);
}

static regex_t defines;
static int files, wrong;

static int look_at_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	char line[1024];
	FILE *f;

	(void)st;
	if (type != FTW_F || !strcmp(path + at->base, "numbers.h"))
		return 0;
	f = fopen(path, "r");
	assert_non_null(f);
	files++;
	while (fgets(line, sizeof(line), f))
		if (!regexec(&defines, line, 0, NULL, 0)) {
			printf("%s: %s", path, line);
			wrong++;
		}
	fclose(f);
	return 0;
}

static void test_no_other(void **state)
{
	static const char *const folder[] = {"lib/judge", "lib/report/words"};
	const char *src = getenv("TFH_SRC");
	char path[4096];

	(void)state;
	assert_int_equal(
		regcomp(&defines,
			"^[ \t]*#[ \t]*define[ \t]+[A-Za-z_0-9]+[ \t]+\\(?-?([0-9.]|TFH_[UM]S)",
			REG_EXTENDED | REG_NOSUB),
		0);
	for (size_t i = 0; i < ROWS(folder); i++) {
		snprintf(path, sizeof(path), "%s/%s", src ? src : ".", folder[i]);
		assert_int_equal(nftw(path, look_at_file, 8, FTW_PHYS), 0);
	}
	regfree(&defines);
	assert_true(files > 50);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
