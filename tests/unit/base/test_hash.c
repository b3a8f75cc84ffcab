/* Hashes: values are stable, depend on length and order, and small changes reach all bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"

static void test_mix(void **state)
{
	(void)state;
	/* First outputs of splitmix64 seeded with 0 are the mix of multiples of its increment. */
	assert_true(tfh_hash_u64(0x9e3779b97f4a7c15ull) == 0xe220a8397b1dcdafull);
	assert_true(tfh_hash_u64(2 * 0x9e3779b97f4a7c15ull) == 0x6e789e6aa1b965f4ull);
	for (int bit = 0; bit < 64; bit++) {
		int changed = __builtin_popcountll(tfh_hash_u64(12345) ^
						   tfh_hash_u64(12345 ^ (1ull << bit)));

		assert_in_range(changed, 12, 52);
	}
}

static void test_bytes(void **state)
{
	static const char zeros[64];

	(void)state;
	assert_true(tfh_hash_str("abc") == tfh_hash_bytes("abc", 3));
	assert_true(tfh_hash_bytes(NULL, 0) == tfh_hash_bytes("", 0));
	assert_true(tfh_hash_str("abc") != tfh_hash_str("abd"));
	assert_true(tfh_hash_str("12345678abcdefgh") != tfh_hash_str("abcdefgh12345678"));
	for (size_t a = 0; a < sizeof(zeros); a++)
		for (size_t b = 0; b < a; b++)
			assert_true(tfh_hash_bytes(zeros, a) != tfh_hash_bytes(zeros, b));
	assert_true(tfh_hash_add(tfh_hash_add(0, 1), 2) != tfh_hash_add(tfh_hash_add(0, 2), 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_mix),
					   cmocka_unit_test(test_bytes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
