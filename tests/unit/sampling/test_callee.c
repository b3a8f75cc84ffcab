/* What must hold: of a call the table of lines tells the instruction that loads the function, also one that is too long for an entry, and
 * of anything else nothing; damaged and cut tables do no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sampling/lines.h"

/* No line; columns 4 to 9 (the name), twice, of 8 and 2 units; 10 to 13 (an argument); 4 to 26 (the call). */
static const uint8_t table[] = {0xf8, 0x87, 0x45, 0x81, 0x45, 0x88, 0x23, 0xd3, 4, 26};
enum { NAME = 2, ARGUMENT = 22, CALL = 24, END = 32 };

static void call_tells_its_name(void **state)
{
	(void)state;
	assert_int_equal(tfh_py_callee_at(table, sizeof(table), CALL), NAME);
	assert_int_equal(tfh_py_callee_at(table, sizeof(table), END - 2), NAME);
}

static void others_tell_nothing(void **state)
{
	(void)state;
	assert_int_equal(tfh_py_callee_at(table, sizeof(table), 0), -1);
	assert_int_equal(tfh_py_callee_at(table, sizeof(table), NAME), -1);
	assert_int_equal(tfh_py_callee_at(table, sizeof(table), ARGUMENT), -1);
	assert_int_equal(tfh_py_callee_at(table, sizeof(table), END), -1);
	assert_int_equal(tfh_py_callee_at(table, sizeof(table), INT32_MAX), -1);
	assert_int_equal(tfh_py_callee_at(NULL, 0, 0), -1);
}

/* In memory of their own length, so that a reading behind their end is seen. */
static void damaged(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 20000; round++) {
		size_t bytes = (size_t)(rand() % 40);
		uint8_t *any = malloc(bytes + 1);
		int32_t at = rand() % 200;

		for (size_t i = 0; i < bytes; i++)
			any[1 + i] = (uint8_t)(rand() % 2 ? rand() : table[i % sizeof(table)]);
		assert_true(tfh_py_callee_at(any + 1, bytes, at) <= at);
		free(any);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(call_tells_its_name),
		cmocka_unit_test(others_tell_nothing),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
