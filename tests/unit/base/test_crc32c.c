/* CRC-32C: the vectors of RFC 3720 B.4 and the check value of the catalogue; the instruction and
 * the table agree at every length and alignment; a running CRC equals that of the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/crc32c.h"

static void test_vectors(void **state)
{
	unsigned char bytes[32];

	(void)state;
	assert_int_equal(tfh_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(tfh_crc32c(0, "", 0), 0);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(tfh_crc32c(0, bytes, sizeof(bytes)), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(tfh_crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char)i;
	assert_int_equal(tfh_crc32c(0, bytes, sizeof(bytes)), 0x46dd794e);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char)(31 - i);
	assert_int_equal(tfh_crc32c(0, bytes, sizeof(bytes)), 0x113fdb5c);
}

static void test_agree(void **state)
{
	unsigned char bytes[300];
	uint32_t random = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		random = random * 1664525 + 1013904223;
		bytes[i] = (unsigned char)(random >> 24);
	}
	for (size_t offset = 0; offset < 9; offset++) {
		for (size_t size = 0; size + offset <= sizeof(bytes); size++) {
			uint32_t whole = tfh_crc32c(0, bytes + offset, size);
			uint32_t part = tfh_crc32c(0, bytes + offset, size / 3);

			assert_int_equal(whole, tfh_crc32c_table(0, bytes + offset, size));
			assert_int_equal(whole, tfh_crc32c(part, bytes + offset + size / 3,
							   size - size / 3));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors),
					   cmocka_unit_test(test_agree)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
