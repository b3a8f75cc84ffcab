/* Settings: defaults are valid, every type is parsed within its bounds, a bad value keeps the
 * default and is counted, long text is rejected, and unknown names are reported with the nearest
 * known one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/nearest.h"
#include "base/options.h"

static struct tfh_options options;

static void test_defaults(void **state)
{
	(void)state;
	assert_int_equal(tfh_options_read(&options, NULL), 0);
	assert_true(tfh_opt_bool(&options, TFH_OPT_ENABLED));
	assert_int_equal(tfh_opt_int(&options, TFH_OPT_MAX_SIZE), (int64_t)4 << 30);
	assert_int_equal(tfh_opt_int(&options, TFH_OPT_RING_TOTAL), 64 << 20);
	assert_int_equal(tfh_opt_int(&options, TFH_OPT_RANK), -1);
	assert_int_equal(tfh_opt_int(&options, TFH_OPT_CUPTI), TFH_CUPTI_AUTO);
	assert_string_equal(tfh_opt_str(&options, TFH_OPT_DIR), "");
	assert_string_equal(tfh_opt_str(&options, TFH_OPT_RANKS), "all");
	for (int id = 0; id < TFH_OPT_COUNT; id++) {
		assert_false(options.given[id]);
		assert_int_equal(options.error[id], 0);
		assert_int_equal(strncmp(tfh_option_specs[id].name, "TFHOOK", 6), 0);
		assert_true(tfh_option_specs[id].help[0] != '\0');
	}
}

static void test_values(void **state)
{
	char *env[] = {"PATH=/bin",
		       "TFHOOK=off",
		       "TFHOOK_DIR=/data/runs",
		       "TFHOOK_RANK=7",
		       "TFHOOK_MAX_SIZE=1G",
		       "TFHOOK_CUPTI=window",
		       "TFHOOK_LEVEL=3",
		       "TFHOOK_RANK=8",
		       "TFHOOK_JOB=",
		       "TFHOOKX_DIR=/nowhere",
		       "TFHOOK_DIRX=/nowhere",
		       NULL};

	(void)state;
	assert_int_equal(tfh_options_read(&options, env), 0);
	assert_false(tfh_opt_bool(&options, TFH_OPT_ENABLED));
	assert_string_equal(tfh_opt_str(&options, TFH_OPT_DIR), "/data/runs");
	assert_int_equal(tfh_opt_int(&options, TFH_OPT_RANK), 7);
	assert_int_equal(tfh_opt_int(&options, TFH_OPT_MAX_SIZE), 1 << 30);
	assert_int_equal(tfh_opt_int(&options, TFH_OPT_CUPTI), TFH_CUPTI_WINDOW);
	assert_int_equal(tfh_opt_int(&options, TFH_OPT_LEVEL), 3);
	assert_true(options.given[TFH_OPT_RANK]);
	assert_false(options.given[TFH_OPT_JOB]);
	assert_false(options.given[TFH_OPT_LOG]);

	assert_int_equal(tfh_options_set(&options, TFH_OPT_RANK, ""), 0);
	assert_int_equal(tfh_opt_int(&options, TFH_OPT_RANK), -1);
}

static void test_bad_values(void **state)
{
	char *env[] = {"TFHOOK=perhaps",
		       "TFHOOK_LEVEL=20",
		       "TFHOOK_MAX_SIZE=lots",
		       "TFHOOK_RING_TOTAL=1K",
		       "TFHOOK_CUPTI=wind",
		       "TFHOOK_RANK=1 ",
		       "TFHOOK_VERBOSE=99999999999999999999",
		       "TFHOOK_DIR",
		       "TFHOOK_RANKS=0-7",
		       "TFHOOK_WINDOW=xyz",
		       "TFHOOK_STACKS=foo",
		       NULL};

	(void)state;
	assert_int_equal(tfh_options_read(&options, env), 9);
	assert_true(tfh_opt_bool(&options, TFH_OPT_ENABLED));
	assert_int_equal(options.error[TFH_OPT_ENABLED], -EINVAL);
	assert_int_equal(tfh_opt_int(&options, TFH_OPT_LEVEL), 1);
	assert_int_equal(options.error[TFH_OPT_LEVEL], -ERANGE);
	assert_int_equal(options.error[TFH_OPT_MAX_SIZE], -EINVAL);
	assert_int_equal(options.error[TFH_OPT_RING_TOTAL], -ERANGE);
	assert_int_equal(options.error[TFH_OPT_CUPTI], -EINVAL);
	assert_int_equal(options.error[TFH_OPT_RANK], -EINVAL);
	assert_int_equal(options.error[TFH_OPT_VERBOSE], -ERANGE);
	assert_string_equal(tfh_opt_str(&options, TFH_OPT_RANKS), "0-7");
	assert_string_equal(tfh_opt_str(&options, TFH_OPT_WINDOW), "");
	assert_string_equal(tfh_opt_str(&options, TFH_OPT_STACKS), "auto");
}

static void test_long_text(void **state)
{
	char *longer = malloc(TFH_OPTIONS_TEXT + 32);
	char *env[] = {longer, "TFHOOK_JOB=j", NULL};

	(void)state;
	memset(longer, 'x', TFH_OPTIONS_TEXT + 31);
	longer[TFH_OPTIONS_TEXT + 31] = '\0';
	memcpy(longer, "TFHOOK_DIR=", 11);
	assert_int_equal(tfh_options_read(&options, env), 1);
	assert_int_equal(options.error[TFH_OPT_DIR], -E2BIG);
	assert_string_equal(tfh_opt_str(&options, TFH_OPT_DIR), "");
	assert_string_equal(tfh_opt_str(&options, TFH_OPT_JOB), "j");
	free(longer);
}

static void test_size(void **state)
{
	static const struct {
		const char *text;
		int64_t bytes;
		int error;
	} cases[] = {
		{"0", 0, 0},
		{"65536", 65536, 0},
		{"4K", 4096, 0},
		{"4k", 4096, 0},
		{"3MiB", 3 << 20, 0},
		{"2GB", (int64_t)2 << 30, 0},
		{"1.5M", 3 << 19, 0},
		{"1T", (int64_t)1 << 40, 0},
		{"12B", 12, 0},
		{"", 0, -EINVAL},
		{"M", 0, -EINVAL},
		{"-1", 0, -EINVAL},
		{"1X", 0, -EINVAL},
		{"1KK", 0, -EINVAL},
		{"1 K", 0, -EINVAL},
		{"9999999T", 0, -ERANGE},
		{"99999999999999999999", 0, -ERANGE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t bytes = 0;

		assert_int_equal(tfh_parse_size(cases[i].text, &bytes), cases[i].error);
		if (!cases[i].error)
			assert_int_equal(bytes, cases[i].bytes);
	}
}

static void test_unknown(void **state)
{
	(void)state;
	assert_true(tfh_option_unknown("TFHOOK_CUPTY=on"));
	assert_false(tfh_option_unknown("TFHOOK_CUPTI=on"));
	assert_false(tfh_option_unknown("TFHOOK=1"));
	assert_false(tfh_option_unknown("PATH=/bin"));
	assert_string_equal(tfh_option_suggest("TFHOOK_CUDALIB=x"), "TFHOOK_CUDA_LIB");
	assert_string_equal(tfh_option_suggest("TFHOOK_MAXSIZE=1G"), "TFHOOK_MAX_SIZE");
	assert_string_equal(tfh_option_suggest("TFHOOK_verbose"), "TFHOOK_VERBOSE");
	assert_null(tfh_option_suggest("TFHOOK_FLAMINGO=1"));
	assert_string_equal(tfh_option_suggest("TFHOOK_=1"), "TFHOOK");
}

/* A value that is passed over is named with what holds and what may stand there, in one line. */
static void test_check(void **state)
{
	static const struct {
		const char *entry, *says;
		int error;
	} cases[] = {
		{"TFHOOK=perhaps", "TFHOOK=perhaps is not understood and stays 1; it takes 0 or 1",
		 -EINVAL},
		{"TFHOOK_LEVEL=20", "stays 1; it takes a whole number from 1 to 19", -ERANGE},
		{"TFHOOK_GRAPH_NODES=-1", "it takes a whole number of at least 0", -ERANGE},
		{"TFHOOK_MAX_SIZE=lots", "it takes a size such as 4G, at least 1024K", -EINVAL},
		{"TFHOOK_CUPTI=wind", "it takes one of auto|on|off|window", -EINVAL},
		{"TFHOOK_WINDOW=xyz", "has no effect; it takes steps:100-200, time:30s+60s or",
		 -EINVAL},
		{"TFHOOK_RANKS=two", "stays all; it takes all, a list such as 0-7,64, or", -EINVAL},
		{"TFHOOK_STACKS=foo", "stays auto; it takes off, slow:1ms", -EINVAL},
		{"TFHOOK_ONLY=(", "has no effect; it takes a regular expression", -EINVAL},
		{"TFHOOK_ONLY=train", "", 0},
		{"TFHOOK_ONLY=^(.*/)?python[0-9.]+ .*train[a-z_]+\\.py( .+)?$", "", 0},
		{"TFHOOK_ONLY=a{2,30}", "", 0},
		{"TFHOOK_ONLY=a+++++++++++++++++++++", "it takes a regular expression", -EINVAL},
		{"TFHOOK_SKIP=((a{255}){255}){9}", "it takes a regular expression", -EINVAL},
		{"TFHOOK_SKIP=(a*)*\\1", "it takes a regular expression", -EINVAL},
		{"TFHOOK_STACKS=slow:5us", "", 0},
		{"TFHOOK_WINDOW=", "", 0},
		{"TFHOOK_DIR=/data", "", 0},
		{"TFHOOK_NOSUCH=1", "", 0},
		{"PATH=/bin", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char sentence[512] = "";

		assert_int_equal(tfh_option_check(cases[i].entry, sentence, sizeof(sentence)),
				 cases[i].error);
		assert_non_null(strstr(sentence, cases[i].says));
	}
}

static void test_nearest(void **state)
{
	static const char *const commands[] = {"run", "report", "repair", "export"};

	(void)state;
	assert_int_equal(tfh_edit_distance("", "abc"), 3);
	assert_int_equal(tfh_edit_distance("kitten", "sitting"), 3);
	assert_int_equal(tfh_edit_distance("reprot", "report"), 1);
	assert_int_equal(tfh_edit_distance("same", "SAME"), 0);
	assert_string_equal(tfh_nearest("reprot", commands, 4), "report");
	assert_string_equal(tfh_nearest("exprot", commands, 4), "export");
	assert_null(tfh_nearest("zebra", commands, 4));
	assert_null(tfh_nearest("", commands, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),   cmocka_unit_test(test_values),
		cmocka_unit_test(test_bad_values), cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_size),	   cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_check),	   cmocka_unit_test(test_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
