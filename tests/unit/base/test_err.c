/* Error texts: the code is returned, a text that is too long is cut and terminated, NULL is
 * allowed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"

static void test_set(void **state)
{
	struct tfh_err err;
	char longer[2 * TFH_ERR_TEXT];

	(void)state;
	tfh_err_clear(&err);
	assert_int_equal(err.code, 0);
	assert_int_equal(tfh_err_set(&err, -ENOENT, "no %s at %d", "file", 7), -ENOENT);
	assert_int_equal(err.code, -ENOENT);
	assert_string_equal(err.text, "no file at 7");

	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	tfh_err_set(&err, -EINVAL, "%s", longer);
	assert_int_equal(strlen(err.text), TFH_ERR_TEXT - 1);

	assert_int_equal(tfh_err_set(NULL, -EIO, "lost"), -EIO);
	tfh_err_clear(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
