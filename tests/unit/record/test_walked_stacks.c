/* A stack is known again only by the same frame, the same place and the same return addresses; an entry gives way to newer
 * ones of its place, and to no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/process/recorder.h"
#include "record/stacks/walked_stacks.h"

#define PLACE 7

static struct tfh_walked_stack known[TFH_WALKED_STACKS];

/* An imagined stack: words in which the return addresses 1000, 1001, ... are at the given offsets. */
struct made {
	uintptr_t word[600];
};

static void *frame[3];

static const uint32_t at[3] = {1, 40, 599};

static void make(struct made *m, uintptr_t first)
{
	memset(m, 0, sizeof(*m));
	for (uint32_t i = 0; i < 3; i++) {
		m->word[at[i]] = first + i;
		frame[i] = (void *)(first + i);
	}
}

static uint32_t find(const struct made *m, uint32_t place)
{
	return tfh_walked_stack(known, (uintptr_t)m->word, place);
}

static void know(const struct made *m, uint32_t place, uint32_t number)
{
	tfh_keep_walk(known, (uintptr_t)m->word, place, frame, 3, number);
}

static int fresh(void **state)
{
	(void)state;
	tfh_recorder.pid = getpid();
	memset(known, 0, sizeof(known));
	return 0;
}

static void same(void **state)
{
	struct made m, other;

	(void)state;
	make(&m, 1000);
	make(&other, 1000);
	assert_int_equal(find(&m, PLACE), 0);
	know(&m, PLACE, 5);
	assert_int_equal(find(&m, PLACE), 5);
	assert_int_equal(find(&m, PLACE + 1), 0);
	assert_int_equal(find(&other, PLACE), 0);
}

static void changed(void **state)
{
	struct made m;

	(void)state;
	make(&m, 1000);
	know(&m, PLACE, 5);
	for (uint32_t i = 0; i < 3; i++) {
		m.word[at[i]]++;
		assert_int_equal(find(&m, PLACE), 0);
		m.word[at[i]]--;
	}
	m.word[at[1] + 1] = 9; /* a local variable */
	assert_int_equal(find(&m, PLACE), 5);
}

static void not_on_the_stack(void **state)
{
	struct made m;

	(void)state;
	make(&m, 1000);
	frame[1] = (void *)(uintptr_t)77777777777;
	know(&m, PLACE, 5);
	assert_int_equal(find(&m, PLACE), 0);
}

static void several_ways_to_one_place(void **state)
{
	struct made m;
	uint32_t found = 0;

	(void)state;
	for (uint32_t i = 1; i <= 9; i++) {
		make(&m, 1000 * i);
		know(&m, PLACE, i);
		assert_int_equal(find(&m, PLACE), i);
	}
	for (uint32_t i = 1; i <= 9; i++) {
		make(&m, 1000 * i);
		if (find(&m, PLACE)) {
			assert_int_equal(find(&m, PLACE), i);
			found++;
		}
	}
	assert_int_equal(found, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(same, fresh),
		cmocka_unit_test_setup(changed, fresh),
		cmocka_unit_test_setup(not_on_the_stack, fresh),
		cmocka_unit_test_setup(several_ways_to_one_place, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
