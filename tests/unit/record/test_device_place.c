/*
 * What must hold: a device's memory node, the nearest PCIe switch above it, and the adapter below the same switch are those of the tree in /sys;
 * a device at a root port has no switch, and no adapter of another port is taken for its own; what is missing is not known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/watch/device_place.h"

static char sys[64];

static void shell(const char *format, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

/* A device of the bus with its memory node. */
static void device(const char *path, const char *bus, const char *node)
{
	shell("cd %s && mkdir -p devices/%s bus/pci/devices && echo %s >devices/%s/numa_node && ln -s ../../../devices/%s bus/pci/devices/%s",
	      sys, path, node, path, path, bus);
}

static void adapter(const char *name, const char *path)
{
	shell("cd %s && mkdir -p devices/%s class/infiniband/%s && ln -s ../../../devices/%s class/infiniband/%s/device",
	      sys, path, name, path, name);
}

#define SWITCH "pci0000:36/0000:36:01.0/0000:37:00.0/"

static int set_up(void **state)
{
	(void)state;
	snprintf(sys, sizeof(sys), "/tmp/tfh-place-XXXXXX");
	assert_non_null(mkdtemp(sys));
	device(SWITCH "0000:38:00.0/0000:3b:00.0", "0000:3b:00.0", "1");
	device(SWITCH "0000:38:01.0/0000:3c:00.0", "0000:3c:00.0", "1");
	device("pci0000:16/0000:16:01.0/0000:17:00.0", "0000:17:00.0", "-1");
	return 0;
}

static int clean_up(void **state)
{
	(void)state;
	shell("rm -r %s", sys);
	return 0;
}

static void expect(const char *bus, int node, const char *pcie, const char *nic)
{
	struct tfh_device_place at;

	tfh_device_place(sys, bus, &at);
	assert_int_equal(at.node, node);
	assert_string_equal(at.pcie, pcie);
	assert_string_equal(at.nic, nic);
}

static void tells_places(void **state)
{
	(void)state;
	expect("0000:3b:00.0", 1, "0000:37:00.0", "");
	adapter("mlx5_9", "pci0000:16/0000:16:03.0/0000:18:00.0");
	expect("0000:3B:00.0", 1, "0000:37:00.0", "");
	adapter("mlx5_1", SWITCH "0000:38:02.0/0000:3d:00.0");
	adapter("mlx5_0", SWITCH "0000:38:03.0/0000:3e:00.0");
	expect("0000:3b:00.0", 1, "0000:37:00.0", "mlx5_0");
	expect("0000:3c:00.0", 1, "0000:37:00.0", "mlx5_0");
	expect("0000:17:00.0", -1, "", "");
	expect("0000:99:00.0", -1, "", "");
	expect("", -1, "", "");
	expect("../../../../../../etc/passwd", -1, "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tells_places, set_up, clean_up)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
