/* The public reading API, from its own header alone: returns every record of a file in order, again
 * after a rewind, with names, times and numbers; reports a damaged file; for a file that is no
 * trace, gives a helpful message. */
#include "tfhook/tft.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void golden(char *path, size_t size)
{
	const char *src = getenv("TFH_SRC");

	snprintf(path, size, "%s/tests/golden/format-1.0.tft", src ? src : ".");
}

static void test_read(void **state)
{
	struct tft_record r = {0}, first = {0}; /* compared with its padding */
	char path[4096], error[200];

	(void)state;
	golden(path, sizeof(path));
	struct tft_file *f = tft_file_open(path, error, sizeof(error));
	assert_non_null(f);
	for (int pass = 0; pass < 2; pass++) {
		uint64_t n = 0;
		while (tft_file_next(f, &r) == 1) {
			assert_int_equal(r.number, n++);
			assert_int_equal(r.thread, 1);
			assert_int_equal(r.tid, 10);
			if (n == 1 && pass == 0)
				first = r;
			if (n == 1)
				assert_memory_equal(&first, &r, sizeof(r));
			if (n % 20 == 0) /* a record of random bytes */
				continue;
			assert_int_equal(r.kind, 1);
			assert_int_equal(r.word[2], 256);
			assert_true(r.t_end > r.t_begin);
			assert_true(strlen(tft_file_function(f, r.fn)) > 0 || r.fn == 12);
		}
		assert_int_equal(n, 60);
		assert_int_equal(tft_file_next(f, &r), 0);
		tft_file_rewind(f);
	}
	assert_string_equal(tft_file_text(f, "host"), "node7");
	assert_string_equal(tft_file_text(f, "no such key"), "");
	assert_int_equal(tft_file_number(f, "rank"), 3);
	assert_int_equal(tft_file_number(f, "events"), 60);
	assert_int_equal(tft_file_number(f, "clean_end"), 1);
	assert_int_equal(tft_file_number(f, "no such key"), -1);
	assert_int_equal(tft_file_monotonic_ns(f, (1ull << 40) + 26), 5000010);
	assert_int_equal(tft_file_realtime_ns(f, 1ull << 40), 1700000000000000000ull);
	assert_string_equal(tft_file_function(f, 65535), "");
	tft_file_close(f);
}

static void test_refused(void **state)
{
	char error[200] = "";

	(void)state;
	assert_null(tft_file_open("/dev/null", error, sizeof(error)));
	assert_true(strlen(error) > 10);
	assert_null(tft_file_open("/nonexistent", NULL, 0));
	tft_file_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
