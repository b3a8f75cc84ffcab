/* Arena: objects are aligned, zeroed and do not overlap; the limit holds; sizes that overflow are
 * rejected; memory is reused after a clear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"

static void assert_zero(const unsigned char *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		assert_int_equal(p[i], 0);
}

static void test_objects(void **state)
{
	struct tfh_arena arena;
	unsigned char *last = NULL;

	(void)state;
	tfh_arena_init(&arena, 0);
	for (size_t round = 0; round < 2; round++) {
		for (size_t i = 0; i < 3000; i++) {
			size_t size = i * 7 % 500;
			unsigned char *p = tfh_arena_alloc(&arena, size);

			assert_non_null(p);
			assert_int_equal((uintptr_t)p % 16, 0);
			assert_ptr_not_equal(p, last);
			assert_zero(p, size);
			memset(p, 0xaa, size);
			last = p;
		}
		assert_true(arena.total < 3 * 3000 * 260);
		tfh_arena_free(&arena);
	}
	assert_non_null(tfh_arena_alloc(&arena, (size_t)5 << 20));
	assert_string_equal(tfh_arena_strdup(&arena, "step"), "step");
	assert_string_equal(tfh_arena_strndup(&arena, "stepping", 4), "step");
	tfh_arena_free(&arena);
	assert_int_equal(arena.total, 0);
	assert_non_null(tfh_arena_alloc(&arena, 1));
	tfh_arena_free(&arena);
}

static void test_cap(void **state)
{
	struct tfh_arena arena;
	size_t taken = 0;

	(void)state;
	tfh_arena_init(&arena, 10000);
	assert_null(tfh_arena_alloc(&arena, 10001));
	while (tfh_arena_alloc(&arena, 16))
		taken += 16;
	assert_in_range(taken, 9900, 10000);
	assert_true(arena.total <= 10000);
	tfh_arena_free(&arena);
}

static void test_overflow(void **state)
{
	struct tfh_arena arena;

	(void)state;
	tfh_arena_init(&arena, 0);
	assert_null(tfh_arena_alloc(&arena, SIZE_MAX));
	assert_null(tfh_arena_alloc(&arena, SIZE_MAX - 40));
	assert_null(tfh_arena_array(&arena, SIZE_MAX / 2, 3));
	assert_null(tfh_arena_strndup(&arena, "", SIZE_MAX));
	assert_non_null(tfh_arena_array(&arena, 3, 5));
	tfh_arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_cap),
		cmocka_unit_test(test_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
