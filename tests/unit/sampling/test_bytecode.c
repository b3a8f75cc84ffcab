/* What must hold: a variable that grows by 1 once in each iteration is its loop's counter, with its start and end, also with `continue`
 * behind it; one behind `continue` is none; one of an inner loop that is not set anew goes on; where a range begins is known from 3.12 on; loops that
 * nothing but an iterator counts are found, too; and damaged bytecode of any version does no harm. The functions were compiled by CPython 3.8, 3.11, 3.13 and 3.14. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sampling/bytecode.h"

/*
 * COUNTED: i = 0; while i < n: h(); i += 1; if g(): continue; h()
 * SKIPPED: i = 0; while i < n: if g(): continue; i += 1
 * GOES_ON: i = 0; for e in n: while True: i = i + 1; if g(): break
 * RANGES: for i in range(3, n + 1): h()
 */
enum what { COUNTED, SKIPPED, GOES_ON, RANGES };
static const struct compiled {
	unsigned minor;
	enum what what;
	int constant[4]; /* -1: no int */
	uint32_t units;
	uint8_t code[160], line[80]; /* line: of each unit */
} compiled[] = {
	/* clang-format off */
	{8, COUNTED, {-1, 0, 1}, 23, {100, 1, 125, 1, 124, 1, 124, 0, 107, 0, 114, 42, 116, 0, 131, 0, 1, 0, 124, 1, 100, 2, 55, 0, 125, 1, 116, 1, 131, 0, 114, 34, 113, 4, 116, 0, 131, 0, 1, 0, 113, 4, 100, 0, 83, 0},
	 {3, 3, 4, 4, 4, 4, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8}},
	{8, SKIPPED, {-1, 0, 1}, 17, {100, 1, 125, 1, 124, 1, 124, 0, 107, 0, 114, 30, 116, 0, 131, 0, 114, 20, 113, 4, 124, 1, 100, 2, 55, 0, 125, 1, 113, 4, 100, 0, 83, 0},
	 {3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6}},
	{8, GOES_ON, {-1, 0, 1}, 18, {100, 1, 125, 1, 124, 0, 68, 0, 93, 22, 125, 2, 124, 1, 100, 2, 23, 0, 125, 1, 116, 0, 131, 0, 114, 12, 113, 8, 113, 12, 113, 8, 100, 0, 83, 0},
	 {3, 3, 4, 4, 4, 4, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7}},
	{8, RANGES, {-1, 3, 1}, 15, {116, 0, 100, 1, 124, 0, 100, 2, 23, 0, 131, 2, 68, 0, 93, 10, 125, 1, 116, 1, 131, 0, 1, 0, 113, 14, 100, 0, 83, 0},
	 {3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4}},
	{11, COUNTED, {-1, 0, 1}, 67, {151, 0, 100, 1, 125, 1, 124, 1, 124, 0, 107, 0, 0, 0, 0, 0, 114, 56, 116, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 166, 0, 0, 0, 171, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 124, 1, 100, 2, 122, 13, 0, 0, 125, 1, 116, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 166, 0, 0, 0, 171, 0, 0, 0, 0, 0, 0, 0, 0, 0, 114, 1, 140, 40, 116, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 166, 0, 0, 0, 171, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 124, 1, 124, 0, 107, 0, 0, 0, 0, 0, 176, 54, 100, 0, 83, 0, 100, 0, 83, 0},
	 {2, 3, 3, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
	{11, SKIPPED, {-1, 0, 1}, 39, {151, 0, 100, 1, 125, 1, 124, 1, 124, 0, 107, 0, 0, 0, 0, 0, 114, 28, 116, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 166, 0, 0, 0, 171, 0, 0, 0, 0, 0, 0, 0, 0, 0, 114, 1, 140, 21, 124, 1, 100, 2, 122, 13, 0, 0, 125, 1, 124, 1, 124, 0, 107, 0, 0, 0, 0, 0, 176, 26, 100, 0, 83, 0, 100, 0, 83, 0},
	 {2, 3, 3, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
	{11, GOES_ON, {-1, 0, -1, 1}, 32, {151, 0, 100, 1, 125, 1, 124, 0, 68, 0, 93, 24, 125, 2, 9, 0, 124, 1, 100, 3, 122, 0, 0, 0, 125, 1, 116, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 166, 0, 0, 0, 171, 0, 0, 0, 0, 0, 0, 0, 0, 0, 114, 1, 110, 1, 140, 21, 140, 25, 100, 0, 83, 0},
	 {2, 3, 3, 4, 4, 4, 4, 5, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 5, 7, 4, 4}},
	{11, RANGES, {-1, 3, 1}, 39, {151, 0, 116, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 1, 124, 0, 100, 2, 122, 0, 0, 0, 166, 2, 0, 0, 171, 2, 0, 0, 0, 0, 0, 0, 0, 0, 68, 0, 93, 16, 125, 1, 116, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 166, 0, 0, 0, 171, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 140, 17, 100, 0, 83, 0},
	 {2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3}},
	{13, COUNTED, {-1, 0, 1}, 59, {149, 0, 83, 1, 110, 1, 88, 16, 58, 18, 0, 0, 97, 50, 0, 0, 91, 1, 0, 0, 0, 0, 0, 0, 0, 0, 53, 0, 0, 0, 0, 0, 0, 0, 32, 0, 85, 1, 83, 2, 45, 13, 0, 0, 110, 1, 91, 3, 0, 0, 0, 0, 0, 0, 0, 0, 53, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 97, 2, 0, 0, 77, 37, 0, 0, 91, 1, 0, 0, 0, 0, 0, 0, 0, 0, 53, 0, 0, 0, 0, 0, 0, 0, 32, 0, 88, 16, 58, 18, 0, 0, 97, 2, 0, 0, 77, 49, 0, 0, 103, 0, 103, 0},
	 {2, 3, 3, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
	{13, SKIPPED, {-1, 0, 1}, 39, {149, 0, 83, 1, 110, 1, 88, 16, 58, 18, 0, 0, 97, 30, 0, 0, 91, 1, 0, 0, 0, 0, 0, 0, 0, 0, 53, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 97, 2, 0, 0, 77, 22, 0, 0, 85, 1, 83, 2, 45, 13, 0, 0, 110, 1, 88, 16, 58, 18, 0, 0, 97, 2, 0, 0, 77, 29, 0, 0, 103, 0, 103, 0},
	 {2, 3, 3, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
	{13, GOES_ON, {-1, 0, 1}, 36, {149, 0, 83, 1, 110, 1, 85, 0, 19, 0, 72, 26, 0, 0, 110, 2, 30, 0, 85, 1, 83, 2, 45, 0, 0, 0, 110, 1, 91, 1, 0, 0, 0, 0, 0, 0, 0, 0, 53, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 97, 2, 0, 0, 77, 26, 0, 0, 77, 24, 0, 0, 11, 0, 32, 0, 103, 0},
	 {2, 3, 3, 4, 4, 4, 4, 4, 5, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 5, 5, 4, 4, 4}},
	{13, RANGES, {-1, 3, 1}, 34, {149, 0, 91, 1, 0, 0, 0, 0, 0, 0, 0, 0, 83, 1, 85, 0, 83, 2, 45, 0, 0, 0, 53, 2, 0, 0, 0, 0, 0, 0, 19, 0, 72, 13, 0, 0, 110, 1, 91, 3, 0, 0, 0, 0, 0, 0, 0, 0, 53, 0, 0, 0, 0, 0, 0, 0, 32, 0, 77, 15, 0, 0, 11, 0, 32, 0, 103, 0},
	 {2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3}},
	{14, COUNTED, {0, -1}, 60, {128, 0, 94, 0, 112, 1, 87, 16, 56, 18, 0, 0, 100, 50, 0, 0, 28, 0, 92, 1, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 31, 0, 86, 1, 94, 1, 44, 13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 112, 1, 92, 3, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 39, 0, 0, 0, 0, 0, 0, 0, 100, 3, 0, 0, 28, 0, 75, 43, 0, 0, 92, 1, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 31, 0, 75, 55, 0, 0, 82, 1, 35, 0},
	 {2, 3, 3, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 4}},
	{14, SKIPPED, {0, -1}, 40, {128, 0, 94, 0, 112, 1, 87, 16, 56, 18, 0, 0, 100, 30, 0, 0, 28, 0, 92, 1, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 39, 0, 0, 0, 0, 0, 0, 0, 100, 3, 0, 0, 28, 0, 75, 24, 0, 0, 86, 1, 94, 1, 44, 13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 112, 1, 75, 35, 0, 0, 82, 1, 35, 0},
	 {2, 3, 3, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 4, 4}},
	{14, GOES_ON, {0, -1}, 42, {128, 0, 94, 0, 112, 1, 86, 0, 16, 0, 70, 31, 0, 0, 112, 2, 27, 0, 86, 1, 94, 1, 44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 112, 1, 92, 1, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 39, 0, 0, 0, 0, 0, 0, 0, 103, 3, 0, 0, 28, 0, 75, 28, 0, 0, 75, 33, 0, 0, 9, 0, 30, 0, 82, 1, 35, 0},
	 {2, 3, 3, 4, 4, 4, 4, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 4, 4, 4, 4}},
	{14, RANGES, {3, -1}, 39, {128, 0, 92, 1, 0, 0, 0, 0, 0, 0, 0, 0, 94, 3, 86, 0, 94, 1, 44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 52, 2, 0, 0, 0, 0, 0, 0, 16, 0, 70, 13, 0, 0, 112, 1, 92, 3, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 31, 0, 75, 15, 0, 0, 9, 0, 30, 0, 82, 1, 35, 0},
	 {2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3}},
	/* clang-format on */
};
#define COMPILED (sizeof(compiled) / sizeof(*compiled))

static bool constant(void *arg, uint32_t index, int32_t *value)
{
	const struct compiled *c = arg;

	*value = index < 4 ? c->constant[index] : -1;
	return *value >= 0;
}

static int32_t line(void *arg, uint32_t unit)
{
	const struct compiled *c = arg;

	return unit < c->units ? c->line[unit] : 0;
}

/* In 3.13 and 3.14 it is the second instruction; the lines would tell. */
static int32_t callee(void *arg, uint32_t unit)
{
	(void)arg;
	return unit > 1 ? 1 : -1;
}

static bool is_range(void *arg, uint32_t name)
{
	(void)arg;
	return name == 0;
}

static int loops_of(const struct compiled *c, unsigned minor, uint32_t units, const uint8_t *code,
		    struct tfh_py_code_loop loop[TFH_PY_CODE_LOOPS])
{
	struct tfh_py_function f = {.minor = minor,
				    .unit = code,
				    .units = units,
				    .arguments = 1,
				    .constant = constant,
				    .line = line,
				    .callee = callee,
				    .is_range = is_range,
				    .arg = (void *)c};

	return tfh_py_code_loops(&f, loop);
}

static void finds_counters(void **state)
{
	struct tfh_py_code_loop l[TFH_PY_CODE_LOOPS];

	(void)state;
	for (size_t i = 0; i < COMPILED; i++) {
		const struct compiled *c = &compiled[i];
		int n = loops_of(c, c->minor, c->units, c->code, l);

		if (c->what == SKIPPED) {
			assert_int_equal(n, 0);
			continue;
		}
		assert_int_equal(n, c->what == GOES_ON ? 2 : 1);
		assert_int_equal(l[0].is_for, c->what != COUNTED);
		if (c->what == RANGES) {
			assert_int_equal(l[0].of_range, c->minor >= 12);
			assert_true(!l[0].of_range || l[0].from == 3);
			continue;
		}
		assert_int_equal(l[n - 1].counter.where, TFH_PY_FAST);
		assert_int_equal(l[n - 1].counter.index, 1);
		assert_true(l[n - 1].has_start && !l[n - 1].start);
		assert_int_equal(l[n - 1].goes_on, c->what == GOES_ON);
		assert_int_equal(l[n - 1].end.where,
				 c->what == COUNTED ? TFH_PY_FAST : TFH_PY_NOWHERE);
		assert_true(c->what != COUNTED || (!l[0].end.index && !l[0].end_more));
		assert_true(n == 1 ||
			    (l[0].lo < l[1].lo && l[1].hi <= l[0].hi && !l[0].counter.where));
	}
}

/* In memory of its own length, so that a reading behind its end is seen. */
static void damaged(void **state)
{
	struct tfh_py_code_loop l[TFH_PY_CODE_LOOPS];

	(void)state;
	srand(1);
	for (int round = 0; round < 20000; round++) {
		const struct compiled *c = &compiled[(size_t)rand() % COMPILED];
		uint32_t units = (uint32_t)rand() % (c->units + 1);
		uint8_t *code = malloc(2 * units + 1);
		unsigned minor = rand() % 4 ? c->minor : 8 + (unsigned)rand() % 8;

		memcpy(code, c->code, 2 * (size_t)units);
		for (int k = rand() % 8; k && units; k--)
			code[(uint32_t)rand() % (2 * units)] = (uint8_t)rand();
		for (int n = loops_of(c, minor, units, code, l); n-- > 0;)
			assert_true(l[n].lo < l[n].hi && l[n].hi <= units && l[n].store < units);
		free(code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_counters),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
