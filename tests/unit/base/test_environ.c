/* The environment is copied as it is now, and what is no memory any more is left out instead of read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/environ.h"

static char **own; /* cmocka reads it between the tests */

static void looks_up(void **state)
{
	static char *entries[] = {"A=1", "", "=x", "NONE", "AB=2", "A=3", "EMPTY=", NULL};
	struct tfh_env env;

	(void)state;
	environ = entries;
	assert_true(tfh_env_take(&env));
	assert_string_equal(tfh_env_in(&env, "A"), "1");
	assert_string_equal(tfh_env_in(&env, "AB"), "2");
	assert_string_equal(tfh_env_in(&env, "EMPTY"), "");
	assert_null(tfh_env_in(&env, "NONE"));
	assert_null(tfh_env_in(&env, "B"));
	tfh_env_drop(&env);
	environ = NULL;
	assert_true(tfh_env_take(&env));
	assert_null(tfh_env_in(&env, "A"));
	tfh_env_drop(&env);
	environ = own;
}

/* A string that crosses pages, one that ends at unmapped memory, one that is unmapped, and an array that is. */
static void leaves_out(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map =
		mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *entries[] = {map + page - 10, map + 3 * page - 4, map + 3 * page, "Z=26", NULL};
	struct tfh_env env;

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	strcpy(map + page - 10, "LONG=12345678901234567890");
	memcpy(map + 3 * page - 4, "CUT=", 4);
	munmap(map + 3 * page, page);
	environ = entries;
	assert_true(tfh_env_take(&env));
	assert_string_equal(tfh_env_in(&env, "LONG"), "12345678901234567890");
	assert_null(tfh_env_in(&env, "CUT"));
	assert_string_equal(tfh_env_in(&env, "Z"), "26");
	tfh_env_drop(&env);
	environ = (char **)(void *)(map + 3 * page);
	assert_true(tfh_env_take(&env));
	assert_null(tfh_env_in(&env, "Z"));
	tfh_env_drop(&env);
	environ = own;
}

/* Before anything was taken, the program's start counts; afterwards what was taken last. */
static void defaults(void **state)
{
	static char *first[] = {"A=first", NULL}, *then[] = {"A=then", NULL},
		    *later[] = {"A=later", NULL};
	size_t at = 0;

	(void)state;
	environ = then;
	assert_string_equal(tfh_env("A"), "then");
	tfh_env_started_with(first);
	assert_string_equal(tfh_env("A"), "first");
	tfh_env_renew();
	environ = later;
	assert_string_equal(tfh_env("A"), "then");
	assert_string_equal(tfh_env_next(&at), "A=then");
	assert_null(tfh_env_next(&at));
	tfh_env_renew();
	assert_string_equal(tfh_env("A"), "later");
	environ = own;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_up),
		cmocka_unit_test(leaves_out),
		cmocka_unit_test(defaults),
	};

	own = environ;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
