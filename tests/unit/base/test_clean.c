/* Untrusted text is shown on one line of visible characters, with everything else escaped: control
 * characters of one and two bytes, bidi controls, zero-width characters, invalid UTF-8. The printer
 * escapes each %s and %c, pads by columns, and otherwise prints like printf. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clean.h"
#include "base/print.h"

static const struct {
	const char *text, *shown;
} cases[] = {
	{"plain ~ text", "plain ~ text"},
	{"\303\244\342\202\254\360\220\215\210", "\303\244\342\202\254\360\220\215\210"},
	{"a\nb\rc\td", "a\\nb\\rc\\td"},
	{"\033[31mred\007\177", "\\x1b[31mred\\x07\\x7f"},
	{"\302\23331m", "\\u009b31m"},
	{"\342\200\256txt.exe", "\\u202etxt.exe"},
	{"\342\201\246a\342\201\251", "\\u2066a\\u2069"},
	{"a\342\200\213b\357\273\277\302\255", "a\\u200bb\\ufeff\\u00ad"},
	{"\342\200\250\342\200\251", "\\u2028\\u2029"},
	{"\363\240\200\201", "\\U000e0001"},
	{"\357\277\277", "\\uffff"},
	{"\300\233", "\\xc0\\x9b"},		      /* overlong ESC */
	{"\340\202\233", "\\xe0\\x82\\x9b"},	      /* overlong CSI */
	{"\355\240\200", "\\xed\\xa0\\x80"},	      /* a surrogate */
	{"\364\220\200\200", "\\xf4\\x90\\x80\\x80"}, /* above U+10FFFF */
	{"\377\376", "\\xff\\xfe"},
	{"\342\202", "\\xe2\\x82"}, /* cut off */
};

static void clean(void **state)
{
	char out[128], again[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = tfh_clean(out, sizeof(out), cases[i].text, strlen(cases[i].text));
		assert_string_equal(out, cases[i].shown);
		assert_int_equal(n, strlen(out));
		tfh_clean(again, sizeof(again), out, n);
		assert_string_equal(again, out);
	}
	assert_int_equal(tfh_clean(out, sizeof(out), "a\0b", 3), 6);
	assert_string_equal(out, "a\\x00b");
	/* Cut between characters. */
	tfh_clean(out, 8, "ab\033\033", 4);
	assert_string_equal(out, "ab\\x1b");
	assert_int_equal(tfh_columns("\303\244\033x", 4), 6);
}

/* Whatever comes in, only visible UTF-8 goes out. */
static void any_bytes(void **state)
{
	uint64_t seed = 88172645463325252u;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char text[16], out[16 * 12];
		for (size_t i = 0; i < sizeof(text); i++) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			text[i] = (char)(seed >> 32);
		}
		size_t n = tfh_clean(out, sizeof(out), text, sizeof(text));
		for (size_t at = 0, step; at < n; at += step) {
			uint32_t c = 0;
			step = tfh_utf8(out + at, n - at, &c);
			assert_true(step && tfh_shown(c));
		}
	}
}

static char *printed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char *printed(const char *fmt, ...)
{
	static char text[16384];
	va_list args;
	FILE *out = fmemopen(text, sizeof(text), "w");

	memset(text, 0, sizeof(text));
	assert_non_null(out);
	va_start(args, fmt);
	tfh_vprint(out, fmt, args);
	va_end(args);
	fclose(out);
	return text;
}

#define SAME(...)                                                                                  \
	do {                                                                                       \
		char want[4096];                                                                   \
		snprintf(want, sizeof(want), __VA_ARGS__);                                         \
		assert_string_equal(printed(__VA_ARGS__), want);                                   \
	} while (0)

static void as_printf(void **state)
{
	(void)state;
	SAME("%d %5d|%-5d|%05d|%+d %% %i", 7, -7, 8, 9, 10, INT_MIN);
	SAME("%u %x %X %#x %o %hhu", UINT_MAX, 0xbeefu, 0xBEEFu, 255u, 8u, (unsigned char)200);
	SAME("%ld %lu %lld %llu", LONG_MIN, ULONG_MAX, LLONG_MIN, ULLONG_MAX);
	SAME("%zu %zd %jd %ju %td", SIZE_MAX, (ssize_t)-3, (intmax_t)-4, UINTMAX_MAX,
	     (ptrdiff_t)-5);
	SAME("%f %.2f %9.3f|%-9.1f|%g %e %.9f", 1.5, 2.345, 3.0, 4.0, 1e-7, 12345.678, 1e308);
	SAME("%*d|%-*d|%.*f|%.*s", 6, 42, 6, 42, 1, 2.25, 3, "abcdef");
	SAME("%s|%10s|%-10s|%.2s|%c", "text", "right", "left", "cut", 'c');
	SAME("%*s|%*s", 4, "", -4, "x");
}

static void cleaned(void **state)
{
	char text[9000];

	(void)state;
	assert_string_equal(printed("\n%s\033[0m\n", "\033[1m\nx"), "\n\\x1b[1m\\nx\033[0m\n");
	assert_string_equal(printed("%c", '\033'), "\\x1b");
	assert_string_equal(printed("%-6s|%6s|", "\303\244", "\n"), "\303\244     |    \\n|");
	assert_string_equal(printed("%.1s", "\303\244"), "\\xc3");
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_string_equal(printed("%s", text), text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean),
		cmocka_unit_test(any_bytes),
		cmocka_unit_test(as_printf),
		cmocka_unit_test(cleaned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
