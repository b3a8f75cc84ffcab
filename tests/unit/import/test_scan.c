/* The text of the JSON scanner is always NUL-terminated, even if the file ends inside a string. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "import/scan.h"

static void a_text_that_never_ends(void **state)
{
	static const char *const inputs[] = {"\"abc", "\"abc\\", "\"abc\\u12", "{\"key"};
	struct tfh_scan *s = malloc(sizeof(*s));
	struct tfh_bytes *bytes;
	struct tfh_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(inputs) / sizeof(*inputs); i++) {
		memset(s, 0xff, sizeof(*s)); /* as memory may be that was used before */
		assert_int_equal(tfh_bytes_of(inputs[i], strlen(inputs[i]), &bytes, &err), 0);
		tfh_scan_init(s, bytes);
		if (*inputs[i] == '{') {
			assert_true(tfh_scan_enter(s, '{'));
			assert_null(tfh_scan_key(s));
		} else {
			tfh_scan_text(s);
		}
		assert_non_null(memchr(s->text, '\0', sizeof(s->text)));
		assert_true(tfh_scan_finish(s, "test", &err) < 0);
		tfh_bytes_close(bytes);
	}
	free(s);
}

/* Escapes are those of JSON; PyTorch wrote paths of Windows without any. */
static void what_is_no_escape_stays(void **state)
{
	static const struct {
		const char *input, *text;
	} texts[] = {
		{"\"a\\\\b\\/c\\\"d\\u0041\\n\"", "a\\b/c\"dA\n"},
		{"\"torch\\optim\\adam.py\"", "torch\\optim\\adam.py"},
		{"\"torch\\utils\\_x\"", "torch\\utils\\_x"},
		{"\"C:\\u12x\"", "C:\\u12x"},
	};
	struct tfh_scan *s = malloc(sizeof(*s));
	struct tfh_bytes *bytes;
	struct tfh_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_int_equal(tfh_bytes_of(texts[i].input, strlen(texts[i].input), &bytes, &err),
				 0);
		tfh_scan_init(s, bytes);
		assert_string_equal(tfh_scan_text(s), texts[i].text);
		assert_int_equal(tfh_scan_finish(s, "test", &err), 0);
		tfh_bytes_close(bytes);
	}
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_that_never_ends),
		cmocka_unit_test(what_is_no_escape_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
