/* A package is known as installed wherever it lies by the list of its files beside it: in a folder of
 * pip install --target, also the program's own one; the program's files there, those of a source tree
 * and of an egg-info that a development install left there are its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/installed.h"
#include "model/symbols/pylines.h"

static char root[] = "/tmp/tfhook-installed-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		mkdir(path, 0700);
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_installed(void **state)
{
	static const struct {
		const char *file, *shown;
		bool library;
	} cases[] = {
		{"site/narwhals/_utils.py", "narwhals/_utils.py", true},
		{"site/narwhals/deep/er/x.py", "narwhals/deep/er/x.py", true},
		{"site/threadpoolctl.py", "threadpoolctl.py", true},
		{"site/google/protobuf/message.py", "google/protobuf/message.py", true},
		{"site/narwhals.py", "narwhals.py", false},
		{"site/handler.py", "handler.py", false}, /* the program beside them */
		{"site/helpers/text.py", "text.py", false},
		{"source/mine/model.py", "model.py", false}, /* pip install -e */
		{"train.py", "train.py", false},
		{"v/lib/python3.12/site-packages/numpy/x.py", "numpy/x.py", true},
	};
	static struct tfh_installed in;

	(void)state;
	assert_non_null(mkdtemp(root));
	put("site/narwhals-2.29.0.dist-info/RECORD",
	    "../bin/tool,,\nnarwhals-2.29.0.dist-info/RECORD,,\nnarwhals/__init__.py,sha256=a,1\n");
	put("site/threadpoolctl-3.8.0.dist-info/RECORD", "threadpoolctl.py,sha256=a,1\n");
	put("site/protobuf-5.dist-info/RECORD", "google/protobuf/message.py,sha256=a,1\n");
	put("source/mine.egg-info/SOURCES.txt", "mine/model.py\n");
	for (int again = 0; again < 2; again++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			char path[512], to[512 + sizeof(TFH_INSTALLED_MARK)];
			snprintf(path, sizeof(path), "%s/%s", root, cases[i].file);
			size_t n = tfh_installed_path(&in, path, to);
			assert_int_equal(n, strlen(to));
			assert_int_equal(tfh_file_of_library(to), cases[i].library);
			assert_string_equal(tfh_short_file(to), cases[i].shown);
		}
	assert_int_equal(tfh_installed_part(&in, "<string>"), 0);
	assert_int_equal(tfh_installed_part(&in, "site/narwhals/_utils.py"), 0);
	assert_int_equal(tfh_installed_part(&in, ""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_installed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
