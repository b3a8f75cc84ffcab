/* What must hold: a thread's CPU time counts for the memory node of the CPU that it is on when it is read: near if a device of the
 * job is there, far if not; neither for a CPU that no node lists, a thread's first reading, or another thread with its tid. A machine
 * on which all CPUs are near, or none, says nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "record/watch/near.h"

static char sys[64];

static void node(unsigned i, const char *cpus)
{
	char command[256];

	snprintf(
		command, sizeof(command),
		"mkdir -p %s/devices/system/node/node%u && echo '%s' >%s/devices/system/node/node%u/cpulist",
		sys, i, cpus, sys, i);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(sys, sizeof(sys), "/tmp/tfh-near-XXXXXX");
	assert_non_null(mkdtemp(sys));
	node(0, "0-3,8-11");
	node(1, "4-7,12");
	node(5, ""); /* memory alone */
	return 0;
}

static int clean_up(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", sys);
	return system(command);
}

static void divides_time(void **state)
{
	(void)state;
	assert_false(tfh_near_find(sys, 0));
	assert_false(tfh_near_find(sys, 1u << 0 | 1u << 1));
	assert_false(tfh_near_find(sys, 1u << 5));
	assert_false(tfh_near_find("/nowhere", 1u << 2));
	assert_true(tfh_near_find(sys, 1u << 1));
	tfh_near_add(70, 1000, 4);
	assert_int_equal(tfh_near_ns() + tfh_far_ns(), 0);
	tfh_near_add(70, 1500, 12);
	tfh_near_add(71, 10, 0);
	tfh_near_add(71, 17, 3);
	tfh_near_add(71, 20, 11);
	tfh_near_add(71, 50, 13);
	tfh_near_add(71, 60, 1u << 31);
	tfh_near_add(71, 20, 3);
	tfh_near_add(70 + 256, 9000, 0);
	assert_int_equal(tfh_near_ns(), 500);
	assert_int_equal(tfh_far_ns(), 10);
	/* a device of the other node comes into use */
	assert_false(tfh_near_find(sys, 1u << 0 | 1u << 1));
	assert_int_equal(tfh_far_ns(), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(divides_time, set_up, clean_up)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
