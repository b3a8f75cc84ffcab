/* The clock: the time stamp counter is used only if both CPU and kernel trust it; ticks do not
 * decrease; readings agree with the kernel's clocks; the length of a tick and its residual are
 * computed from readings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <cmocka.h>

#include "base/clock.h"

static void test_judge(void **state)
{
	(void)state;
	assert_int_equal(tfh_clock_judge(true, "tsc"), TFH_TRUST_FULL);
	assert_int_equal(tfh_clock_judge(true, "kvm-clock"), TFH_TRUST_PROVISIONAL);
	assert_int_equal(tfh_clock_judge(true, "hyperv_clocksource_tsc_page"),
			 TFH_TRUST_PROVISIONAL);
	assert_int_equal(tfh_clock_judge(false, "tsc"), TFH_TRUST_NONE);
	assert_int_equal(tfh_clock_judge(true, "hpet"), TFH_TRUST_NONE);
	assert_int_equal(tfh_clock_judge(true, ""), TFH_TRUST_NONE);
}

static void test_init(void **state)
{
	struct tfh_clock_info first, second;

	(void)state;
	tfh_clock_init(&first);
	tfh_clock_init(&second);
	assert_memory_equal(&first, &second, sizeof(first));
	assert_int_equal(tfh_clock_counter, first.source != TFH_CLOCK_MONOTONIC);
	assert_int_equal(first.source != TFH_CLOCK_MONOTONIC, first.trust != TFH_TRUST_NONE);
}

/* Only a process without the kernel's functions, as under valgrind, reads the clock through libc. */
static void test_kernel_clock(void **state)
{
	(void)state;
	tfh_clock_init(NULL);
	assert_int_equal(tfh_clock_read != clock_gettime, getauxval(AT_SYSINFO_EHDR) != 0);
	for (int i = 0; i < 1000; i++) {
		struct timespec before, after, ts;
		int64_t now;

		clock_gettime(CLOCK_MONOTONIC, &before);
		tfh_clock_read(CLOCK_MONOTONIC, &ts);
		now = ts.tv_sec * 1000000000 + ts.tv_nsec;
		clock_gettime(CLOCK_MONOTONIC, &after);
		assert_in_range(now, before.tv_sec * 1000000000 + before.tv_nsec,
				after.tv_sec * 1000000000 + after.tv_nsec);
	}
}

static void test_ticks(void **state)
{
	uint64_t last;

	(void)state;
	tfh_clock_init(NULL);
	last = tfh_ticks();
	for (int i = 0; i < 100000; i++) {
		uint64_t now = tfh_ticks();

		assert_true(now >= last);
		last = now;
	}
}

static void test_pairs(void **state)
{
	struct tfh_clock_pair a, b;
	int64_t before = tfh_clock_ns(CLOCK_MONOTONIC), after;
	struct timespec wait = {.tv_nsec = 20000000};
	double length;

	(void)state;
	tfh_clock_init(NULL);
	tfh_clock_read_pair(&a);
	nanosleep(&wait, NULL);
	tfh_clock_read_pair(&b);
	after = tfh_clock_ns(CLOCK_MONOTONIC);
	assert_true(before <= a.mono_ns && a.mono_ns < b.mono_ns && b.mono_ns <= after);
	assert_true(b.ticks > a.ticks);
	assert_true(b.mono_ns - a.mono_ns >= 20000000);
	length = tfh_clock_ns_per_tick(&a, &b);
	assert_true(length > 0.01 && length < 101); /* 10 MHz to 100 GHz */
}

static void test_arithmetic(void **state)
{
	struct tfh_clock_pair a = {.ticks = 1000, .mono_ns = 500};
	struct tfh_clock_pair b = {.ticks = 1000 + 2000000000, .mono_ns = 500 + 1000000000};

	(void)state;
	assert_true(tfh_clock_ns_per_tick(&a, &b) == 0.5);
	assert_true(tfh_clock_ns_per_tick(&a, &a) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge),	     cmocka_unit_test(test_init),
		cmocka_unit_test(test_kernel_clock), cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_pairs),	     cmocka_unit_test(test_arithmetic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
