/* In a process without Python a pause has a backtrace, but all of them together take at most 0.5 % of a thread's time, after a
 * second's part at once. With Python, or without an unwinder, there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/process/recorder.h"
#include "record/stacks/pyplaces.h"
#include "record/stacks/stacks.h"

#define WALK_US 300u

static bool python;
static uint32_t walks;
static uint64_t walked, last_walk; /* ticks */

static int open_walker(const char **by)
{
	*by = "the test";
	return 0;
}

/* Walks for a while. Each stack is another one. */
static int walk(void **frame, int most)
{
	uint64_t begin = tfh_ticks(), until = begin + tfh_tick_hz() / 1000000 * WALK_US;

	assert_true(most > 0);
	while (tfh_ticks() < until)
		;
	frame[0] = (void *)(uintptr_t)(0x1000 + ++walks);
	last_walk = tfh_ticks() - begin;
	walked += last_walk;
	return 1;
}

static void forget(void)
{
}

static void look(void)
{
}

static const char *refusal(void)
{
	return NULL;
}

static bool exists(void)
{
	return python;
}

static uint32_t here(const struct tfh_self *self)
{
	(void)self;
	return 0;
}

static struct tft_clock_triple clocks(void)
{
	return (struct tft_clock_triple){.ticks = tfh_ticks(),
					 .monotonic_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC)};
}

static void find_tick_hz(void)
{
	struct tft_clock_triple first = clocks(), last;

	do
		last = clocks();
	while (last.monotonic_ns - first.monotonic_ns < 20000000);
	assert_true(tfh_tick_hz_set(&first, &last));
}

static struct tft_ring ring;

static void test_part_of_time(void **state)
{
	static const struct tfh_stack_source stacks = {open_walker, walk, forget};
	static const struct tfh_place_source places = {
		.look = look, .refusal = refusal, .exists = exists, .here = here};
	struct tfh_self self = {.ring = &ring};
	uint64_t begin, hz, end;

	(void)state;
	find_tick_hz();
	begin = tfh_ticks();
	hz = tfh_tick_hz();
	ring.tid = (uint32_t)syscall(SYS_gettid);
	tfh_stacks_attach(&stacks);
	tfh_places_attach(&places);
	assert_int_equal(tfh_stack_of_pause(&self), 0); /* not opened yet */
	assert_int_equal(tfh_options_read(&tfh_recorder.options, environ), 0);
	assert_int_equal(tfh_options_set(&tfh_recorder.options, TFH_OPT_STACKS, "slow"), 0);
	tfh_stacks_open();
	python = true;
	assert_int_equal(tfh_stack_of_pause(&self), 0);
	assert_int_equal(walks, 0);
	python = false;
	assert_int_not_equal(tfh_stack_of_pause(&self), 0);
	/* A walk during which another program runs uses up the part of a longer time. */
	while ((end = tfh_ticks()) < begin + hz || walks < 5)
		tfh_stack_of_pause(&self);
	assert_true(walked - last_walk <= (end - begin + hz) / 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_part_of_time)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
