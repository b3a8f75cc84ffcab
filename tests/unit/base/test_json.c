/* JSON writer: the JSON is valid for any text, numbers survive a round trip, NAN becomes null, and
 * calls in a wrong order leave an error. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"

static char *text;
static size_t text_size;

static struct tfh_json start(int indent)
{
	struct tfh_json json;

	free(text);
	text = NULL;
	tfh_json_init(&json, open_memstream(&text, &text_size), indent);
	return json;
}

static int finish(struct tfh_json *json)
{
	int error = tfh_json_finish(json);

	fclose(json->out);
	return error;
}

static void assert_string(const char *in, size_t length, const char *out)
{
	struct tfh_json json = start(0);

	tfh_json_strn(&json, in, length);
	assert_int_equal(finish(&json), 0);
	assert_string_equal(text, out);
}

static void test_document(void **state)
{
	struct tfh_json json = start(0);

	(void)state;
	tfh_json_object(&json);
	tfh_json_kstr(&json, "class", "input-bound");
	tfh_json_key(&json, "also");
	tfh_json_array(&json);
	tfh_json_end(&json);
	tfh_json_key(&json, "steps");
	tfh_json_array(&json);
	tfh_json_u64(&json, 1);
	tfh_json_object(&json);
	tfh_json_kf64(&json, "s", 0.25);
	tfh_json_kbool(&json, "ok", true);
	tfh_json_end(&json);
	tfh_json_str(&json, NULL);
	tfh_json_end(&json);
	tfh_json_knull(&json, "none");
	tfh_json_ku64_if(&json, "known", true, 7);
	tfh_json_ki64_if(&json, "unknown", false, 7);
	assert_false(tfh_json_kobject_if(&json, "nothing", false));
	assert_true(tfh_json_kobject_if(&json, "something", true));
	tfh_json_end(&json);
	tfh_json_end(&json);
	assert_int_equal(finish(&json), 0);
	assert_string_equal(text, "{\"class\":\"input-bound\",\"also\":[],\"steps\":[1,{\"s\":0.25,"
				  "\"ok\":true},null],"
				  "\"none\":null,\"known\":7,\"unknown\":null,\"nothing\":null,"
				  "\"something\":{}}\n");
}

static void test_indent(void **state)
{
	struct tfh_json json = start(2);

	(void)state;
	tfh_json_object(&json);
	tfh_json_key(&json, "a");
	tfh_json_array(&json);
	tfh_json_i64(&json, -1);
	tfh_json_i64(&json, 2);
	tfh_json_end(&json);
	tfh_json_key(&json, "b");
	tfh_json_object(&json);
	tfh_json_end(&json);
	tfh_json_end(&json);
	assert_int_equal(finish(&json), 0);
	assert_string_equal(text, "{\n  \"a\": [\n    -1,\n    2\n  ],\n  \"b\": {}\n}\n");
}

static void test_strings(void **state)
{
	(void)state;
	assert_string("a\"b\\c/\b\f\n\r\t", 11, "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\"\n");
	assert_string("\x01\x1f\x7f\0z", 5, "\"\\u0001\\u001f\\u007f\\u0000z\"\n");
	assert_string("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", 15,
		      "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"\n");
	/* a lone continuation, an overlong slash, a surrogate, a cut sequence, a byte that never
	 * occurs */
	/* What drives a terminal or turns its text is escaped, and so still there for readers. */
	assert_string("\xc2\x9b\xe2\x80\xae\xf3\xa0\x80\x81", 9,
		      "\"\\u009b\\u202e\\udb40\\udc01\"\n");
	assert_string("a\x80z", 3, "\"a\\ufffdz\"\n");
	assert_string("\xc0\xaf", 2, "\"\\ufffd\\ufffd\"\n");
	assert_string("\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"\n");
	assert_string("ok\xe2\x82", 4, "\"ok\\ufffd\\ufffd\"\n");
	assert_string("\xff\xf4\x90\x80\x80", 5, "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"\n");
	assert_string("", 0, "\"\"\n");
}

static void assert_double(double value, const char *out)
{
	char digits[32];
	size_t length = tfh_json_format_double(digits, value);

	assert_int_equal(length, strlen(digits));
	assert_string_equal(digits, out);
}

static void test_numbers(void **state)
{
	struct tfh_json json = start(0);
	uint64_t random = 1;

	(void)state;
	tfh_json_array(&json);
	tfh_json_u64(&json, UINT64_MAX);
	tfh_json_i64(&json, INT64_MIN);
	tfh_json_f64(&json, NAN);
	tfh_json_f64(&json, -INFINITY);
	tfh_json_end(&json);
	assert_int_equal(finish(&json), 0);
	assert_string_equal(text, "[18446744073709551615,-9223372036854775808,null,null]\n");

	assert_double(0, "0");
	assert_double(0.1, "0.1");
	assert_double(0.1 + 0.2, "0.30000000000000004");
	assert_double(1e300, "1e+300");
	assert_double(-2.5e-9, "-2.5e-09");
	for (int i = 0; i < 20000; i++) {
		char digits[32];
		double value;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(&value, &random, sizeof(value));
		if (!isfinite(value))
			continue;
		tfh_json_format_double(digits, value);
		assert_true(strtod(digits, NULL) == value);
	}
}

static void test_mistakes(void **state)
{
	struct tfh_json json = start(0);

	(void)state;
	tfh_json_object(&json);
	tfh_json_u64(&json, 1); /* without a key */
	tfh_json_end(&json);
	assert_int_equal(finish(&json), -EINVAL);

	json = start(0);
	tfh_json_array(&json);
	assert_int_equal(finish(&json), -EINVAL); /* still open */

	json = start(0);
	tfh_json_end(&json);
	assert_int_equal(finish(&json), -EINVAL);

	json = start(0);
	tfh_json_u64(&json, 1);
	tfh_json_u64(&json, 2); /* a second document */
	assert_int_equal(finish(&json), -EINVAL);

	json = start(0);
	for (int i = 0; i <= TFH_JSON_DEPTH; i++)
		tfh_json_array(&json);
	assert_int_equal(finish(&json), -EINVAL);
	free(text);
	text = NULL;
}

static void test_full_disk(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct tfh_json json;

	(void)state;
	if (!full)
		skip();
	tfh_json_init(&json, full, 0);
	tfh_json_u64(&json, 1);
	assert_int_equal(tfh_json_finish(&json), -EIO);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_document), cmocka_unit_test(test_indent),
		cmocka_unit_test(test_strings),	 cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_mistakes), cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
