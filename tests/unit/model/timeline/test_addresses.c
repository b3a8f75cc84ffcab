/* The direction of a copy follows from where its addresses were allocated, even if two threads free
 * and allocate at the same time: calls come in order of their ends, and a free that ends late does
 * not remove what another thread was meanwhile given at that address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/opened.h"

enum { DEVICE = 0x100000, HOST = 0x7f0000000000, ROOM = 0x10000 };

static void called(struct tfh_memory *m, enum tfh_fn fn, uint64_t begin, uint64_t end,
		   uint64_t address, uint64_t bytes)
{
	struct tfh_rec rec = {.t_begin = begin, .t_end = end, .fn = fn, .w = {bytes, address}};

	assert_int_equal(tfh_memory_event(m, &tfh_fn_table[fn], &rec), 0);
}

static uint8_t direction_of(const struct tfh_memory *m, uint64_t to, uint64_t from, bool *pageable)
{
	struct tfh_rec rec = {.w = {64, to, from}};
	uint8_t dir;

	tfh_memory_copy(m, &tfh_fn_table[TFH_FN_cuMemcpyAsync], &rec, NULL, &dir, pageable);
	return dir;
}

static void freed_and_given_again(void **state)
{
	struct tfh_memory m = {0};
	bool pageable;

	(void)state;
	called(&m, TFH_FN_cuMemAlloc_v2, 10, 20, DEVICE, ROOM);
	called(&m, TFH_FN_cuMemAllocHost_v2, 20, 30, HOST, ROOM);
	assert_int_equal(direction_of(&m, HOST, DEVICE + 100, &pageable), TFH_DIR_D2H);
	assert_false(pageable);
	/* The other thread allocates while these frees are on their way back. */
	called(&m, TFH_FN_cuMemAlloc_v2, 42, 44, DEVICE, ROOM);
	called(&m, TFH_FN_cuMemFree_v2, 40, 50, DEVICE, 0);
	called(&m, TFH_FN_cuMemAllocHost_v2, 62, 64, HOST, ROOM);
	called(&m, TFH_FN_cuMemFreeHost, 60, 70, HOST, 0);
	assert_int_equal(direction_of(&m, HOST, DEVICE + 100, &pageable), TFH_DIR_D2H);
	assert_false(pageable);
	/* Whoever has them now frees them. */
	called(&m, TFH_FN_cuMemFree_v2, 80, 90, DEVICE, 0);
	assert_int_equal(direction_of(&m, HOST, DEVICE, &pageable), TFH_DIR_H2H);
	tfh_memory_free(&m);
}

static void unmapped_at_once(void **state)
{
	struct tfh_memory m = {0};
	bool pageable;

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		called(&m, TFH_FN_cuMemMap, i, i + 1, DEVICE + i * ROOM, ROOM);
	called(&m, TFH_FN_cuMemMap, 22, 23, DEVICE + ROOM, ROOM);
	called(&m, TFH_FN_cuMemUnmap, 20, 30, DEVICE, UINT64_C(3) * ROOM);
	assert_int_equal(direction_of(&m, HOST, DEVICE, &pageable), TFH_DIR_H2H);
	assert_int_equal(direction_of(&m, HOST, DEVICE + ROOM, &pageable), TFH_DIR_D2H);
	assert_int_equal(direction_of(&m, HOST, DEVICE + 2 * ROOM, &pageable), TFH_DIR_H2H);
	assert_int_equal(direction_of(&m, HOST, DEVICE + 3 * ROOM, &pageable), TFH_DIR_D2H);
	tfh_memory_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(freed_and_given_again),
		cmocka_unit_test(unmapped_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
