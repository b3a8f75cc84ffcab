/* Number formatting: three significant digits and the right unit at every boundary, integer
 * percentages that add up to 100, names cut in the middle to the given width, and n/a for what was
 * not measured. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "report/format.h"

static void times(void **state)
{
	(void)state;
	static const struct {
		double s;
		const char *text;
	} cases[] = {{0, "0 ns"},	   {850e-9, "850 ns"}, {999.6e-9, "1.00 us"},
		     {71.6e-3, "71.6 ms"}, {0.174, "174 ms"},  {0.9996, "1.00 s"},
		     {9.996, "10.0 s"},	   {99.94, "99.9 s"},  {99.96, "1m40s"},
		     {372, "6m12s"},	   {3599.6, "1h00m"},  {11100, "3h05m"},
		     {1.4e-9, "1.40 ns"},  {NAN, "n/a"},       {-1, "0 ns"}};
	char out[TFH_TEXT];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(tfh_fmt_time(out, cases[i].s), cases[i].text);
}

/* One unit in a range, unless the low end would be nothing but zeros. */
static void ranges(void **state)
{
	char out[TFH_RANGE];

	(void)state;
	assert_string_equal(tfh_fmt_times(out, 2.05e-3, 2.63e-3), "2.05 to 2.63 ms");
	assert_string_equal(tfh_fmt_times(out, 406e-6, 2.71e-3), "0.41 to 2.71 ms");
	assert_string_equal(tfh_fmt_times(out, 0.9, 12.3), "0.90 to 12.3 s");
	assert_string_equal(tfh_fmt_times(out, 20.6e-6, 1.5e-3), "20.6 us to 1.50 ms");
	assert_string_equal(tfh_fmt_times(out, 35, 372), "35.0 s to 6m12s");
}

static void amounts(void **state)
{
	(void)state;
	char out[TFH_TEXT];

	assert_string_equal(tfh_fmt_bytes(out, 8), "8 B");
	assert_string_equal(tfh_fmt_bytes(out, 999), "999 B");
	assert_string_equal(tfh_fmt_bytes(out, 999.7), "1.00 kB");
	assert_string_equal(tfh_fmt_bytes(out, 77.14e6), "77.1 MB");
	assert_string_equal(tfh_fmt_bytes(out, NAN), "n/a");
	assert_string_equal(tfh_fmt_rate(out, 7.9e9), "7.90 GB/s");
	assert_string_equal(tfh_fmt_rate(out, 5e15), "5000 TB/s");
	assert_string_equal(tfh_fmt_count(out, 0), "0");
	assert_string_equal(tfh_fmt_count(out, 999), "999");
	assert_string_equal(tfh_fmt_count(out, 1000), "1,000");
	assert_string_equal(tfh_fmt_count(out, UINT64_MAX), "18,446,744,073,709,551,615");
	assert_string_equal(tfh_fmt_mean(out, 96), "96");
	assert_string_equal(tfh_fmt_mean(out, 2.5), "2.50");
	assert_string_equal(tfh_fmt_mean(out, 99.96), "100");
	assert_string_equal(tfh_fmt_mean(out, 3412.4), "3,412");
	assert_string_equal(tfh_fmt_factor(out, 1.7), "1.70x");
	assert_string_equal(tfh_fmt_factor(out, 1234), "1234x");
	assert_string_equal(tfh_fmt_share(out, 0.411), "41 %");
	assert_string_equal(tfh_fmt_share(out, 0.0008), "0.08 %");
	assert_string_equal(tfh_fmt_share(out, 1e-7), "<0.01 %");
	assert_string_equal(tfh_fmt_share(out, 0), "0 %");
	assert_string_equal(tfh_fmt_share(out, NAN), "n/a");
}

/* Any shares that add to 1 give whole numbers that add to 100, each within one of its share. */
static void percents(void **state)
{
	(void)state;
	uint64_t seed = 1;

	for (int round = 0; round < 2000; round++) {
		double share[8], sum = 0;
		int percent[8], total = 0;
		for (int i = 0; i < 8; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			share[i] = (double)(seed >> 40);
			sum += share[i];
		}
		for (int i = 0; i < 8; i++)
			share[i] /= sum;
		tfh_percents(share, 8, percent);
		for (int i = 0; i < 8; i++) {
			assert_true(fabs(percent[i] - share[i] * 100) <= 1.0001);
			total += percent[i];
		}
		assert_int_equal(total, 100);
	}
	double third[3] = {1.0 / 3, 1.0 / 3, 1.0 / 3}, half[3] = {0.5, NAN, 0.25};
	int percent[3];
	tfh_percents(third, 3, percent);
	assert_int_equal(percent[0] + percent[1] + percent[2], 100);
	tfh_percents(half, 3, percent);
	assert_int_equal(percent[0] + percent[1] + percent[2], 75);
	assert_int_equal(percent[1], 0);
}

static void cuts(void **state)
{
	(void)state;
	char out[256], tiny[8];

	assert_string_equal(tfh_fmt_cut(out, sizeof(out), "short", 20), "short");
	assert_string_equal(tfh_fmt_cut(out, sizeof(out), "exactly_ten", 11), "exactly_ten");
	assert_string_equal(tfh_fmt_cut(out, sizeof(out), "cutlass::Kernel2<256x128_tn>", 12),
			    "cutla..8_tn>");
	assert_int_equal(strlen(tfh_fmt_cut(out, sizeof(out), "cutlass::Kernel2<256x128_tn>", 13)),
			 13);
	/* Letters of two bytes count as one column; what is no text becomes a question mark. */
	assert_string_equal(tfh_fmt_cut(out, sizeof(out), "\303\244\303\244\303\244", 3),
			    "\303\244\303\244\303\244");
	assert_string_equal(tfh_fmt_cut(out, sizeof(out), "a\033[1m\377b", 20), "a\\x1b[1m\\xffb");
	assert_true(strlen(tfh_fmt_cut(tiny, sizeof(tiny), "a long name", 20)) < sizeof(tiny));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times),    cmocka_unit_test(ranges), cmocka_unit_test(amounts),
		cmocka_unit_test(percents), cmocka_unit_test(cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
