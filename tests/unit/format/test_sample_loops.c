/* Loops of a sample in an EXT record: what fits comes back; damaged bytes end the list, whatever they
 * hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "format/sample_loops.h"

static void round_trip(void **state)
{
	const struct tft_loop loop[] = {{1, true, 3, 0, 0},
					{7, false, 1000000, 24, 4},
					{65536, true, 1ull << 48, 1, 0},
					{9, true, 0, 1ull << 48, 9}};
	struct tft_loop out[TFT_LOOPS];
	uint8_t byte[TFT_EXT_BYTES];

	(void)state;
	uint32_t bytes = tft_loops_pack(loop, 4, byte);
	assert_int_equal(tft_loops_unpack(byte, bytes, out), 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(out[i].depth, loop[i].depth);
		assert_int_equal(out[i].sure, loop[i].sure);
		assert_int_equal(out[i].done, loop[i].done);
		assert_int_equal(out[i].left, loop[i].left);
		assert_int_equal(out[i].count, loop[i].count);
	}
	assert_int_equal(tft_loops_pack(loop, 0, byte), 0);
	assert_int_equal(tft_loops_unpack(byte, 0, out), 0);
}

static void those_with_room(void **state)
{
	struct tft_loop loop[TFT_LOOPS], out[TFT_LOOPS];
	uint8_t byte[TFT_EXT_BYTES];

	(void)state;
	for (uint32_t i = 0; i < TFT_LOOPS; i++)
		loop[i] = (struct tft_loop){i + 1, true, 1ull << 20, 1ull << 40, 0};
	uint32_t bytes = tft_loops_pack(loop, TFT_LOOPS, byte);
	assert_in_range(bytes, 1, TFT_EXT_BYTES);
	uint32_t n = tft_loops_unpack(byte, bytes, out);
	assert_in_range(n, 3, TFT_LOOPS - 1);
	assert_int_equal(out[n - 1].depth, n);
}

static void damaged(void **state)
{
	struct tft_loop out[TFT_LOOPS];
	uint8_t byte[TFT_EXT_BYTES];

	(void)state;
	memset(byte, 0xff, sizeof(byte));
	assert_int_equal(tft_loops_unpack(byte, sizeof(byte), out), 0);
	memset(byte, 0, sizeof(byte));
	assert_int_equal(tft_loops_unpack(byte, sizeof(byte), out), 0);
	memset(byte, 2, sizeof(byte));
	assert_int_equal(tft_loops_unpack(byte, sizeof(byte), out), TFT_LOOPS);
	assert_int_equal(tft_loops_unpack(byte, 5, out), 1); /* cut off */
	for (uint32_t seed = 1; seed < 20000; seed++) {
		uint64_t x = seed;
		for (size_t i = 0; i < sizeof(byte); i++)
			byte[i] = (uint8_t)((x = x * 6364136223846793005ull +
						 1442695040888963407ull) >>
					    33);
		uint32_t n = tft_loops_unpack(byte, seed % (TFT_EXT_BYTES + 1), out);
		for (uint32_t i = 0; i < n; i++)
			assert_true(out[i].depth && out[i].done <= 1ull << 48 &&
				    out[i].left <= 1ull << 48);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(those_with_room),
		cmocka_unit_test(damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
