/* What must hold: copies are what the memory held, however many are asked for at once; a piece that is not there leaves only
 * itself out; reading all of them again gives what the memory holds then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampling/frames.h"

#define PAGE 4096u
#define PIECES 300u
#define BYTES 16u

static struct tfh_py_copies first, second;

static void fill(uint8_t *memory, uint8_t what)
{
	for (uint32_t i = 0; i < PIECES; i++)
		memset(memory + i * PAGE, (int)(i + what) & 0xff, PAGE);
}

static void hold(struct tfh_py_copies *c, const uint8_t *memory, uint8_t what, uint32_t gone)
{
	for (uint32_t i = 0; i < PIECES; i++) {
		uint64_t from = (uint64_t)(uintptr_t)memory + i * PAGE;
		const uint8_t *p = tfh_py_copied(c, from, BYTES);

		if (i == gone) {
			assert_null(p);
			continue;
		}
		assert_non_null(p);
		for (uint32_t k = 0; k < BYTES; k++)
			assert_int_equal(p[k], (uint8_t)(i + what));
	}
}

static void many_at_once(void **state)
{
	uint8_t *memory = mmap(NULL, PIECES * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tfh_py_piece piece[PIECES];
	uint32_t n;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	fill(memory, 1);
	for (uint32_t i = 0; i < PIECES; i++)
		piece[i] = (struct tfh_py_piece){(uint64_t)(uintptr_t)memory + i * PAGE, BYTES};
	tfh_py_copies_begin(&first, getpid());
	tfh_py_fetch(&first, piece, PIECES);
	n = first.n;
	assert_int_equal(n, PIECES);
	hold(&first, memory, 1, PIECES);
	assert_int_equal(first.n, n); /* nothing had to be fetched one by one */

	fill(memory, 2);
	hold(&first, memory, 1, PIECES);
	assert_int_equal(munmap(memory + 100 * PAGE, PAGE), 0);
	tfh_py_copies_again(&second, &first);
	hold(&second, memory, 2, 100);
	assert_int_equal(second.n, n + 1); /* the one that is gone was asked for again */
	munmap(memory, PIECES * PAGE);
}

static void words(void **state)
{
	uint64_t *memory = mmap(NULL, PIECES * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t from[PIECES], to[PIECES];

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	for (uint32_t gone = 0; gone <= PIECES; gone += gone % 64 == 63 ? 1 : 21) {
		for (uint32_t i = 0; i < PIECES; i++) {
			uint64_t *at = memory + (size_t)i * PAGE / sizeof(*at);
			*at = i + 1;
			from[i] = i % 100 == gone % 100 ? 8 : (uint64_t)(uintptr_t)at;
			to[i] = 77;
		}
		tfh_py_words(getpid(), from, to, gone);
		for (uint32_t i = 0; i < PIECES; i++)
			assert_int_equal(to[i], i >= gone ? 77 : i % 100 == gone % 100 ? 0 : i + 1);
	}
	munmap(memory, PIECES * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(many_at_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
