#include "record/watch/device_place.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"

#define DEEPEST 32u

/* The buses between the processor and a device: "pci0000:36", the root port, then two ports for
 * each switch, the device. */
struct bus_path {
	char text[PATH_MAX];
	const char *part[DEEPEST];
	unsigned n;
};

static void read_path(const char *file, struct bus_path *out)
{
	char *rest = NULL;

	out->n = 0;
	if (!realpath(file, out->text))
		return;
	for (char *p = strtok_r(out->text, "/", &rest); p && out->n < DEEPEST;
	     p = strtok_r(NULL, "/", &rest))
		if (out->n || !strncmp(p, "pci", 3))
			out->part[out->n++] = p;
}

static unsigned in_common(const struct bus_path *a, const struct bus_path *b)
{
	unsigned n = 0;

	while (n < a->n && n < b->n && !strcmp(a->part[n], b->part[n]))
		n++;
	return n;
}

/* The adapter that shares the longest part of the device's path, which must include a switch. Of
 * several, the first by name. */
static void find_nic(const char *sys, const struct bus_path *device, char out[32])
{
	static struct bus_path nic; /* one thread reads places */
	char path[PATH_MAX];
	unsigned most = 2; /* a root port has no other devices below it, unless there is a switch */
	struct dirent *e;

	snprintf(path, sizeof(path), "%s/class/infiniband", sys);
	DIR *dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		if (*e->d_name == '.' || strlen(e->d_name) >= 32)
			continue;
		snprintf(path, sizeof(path), "%s/class/infiniband/%s/device", sys, e->d_name);
		read_path(path, &nic);
		unsigned n = in_common(device, &nic);
		if (n > most || (n == most && *out && strcmp(e->d_name, out) < 0)) {
			most = n;
			snprintf(out, 32, "%.31s", e->d_name);
		}
	}
	if (dir)
		closedir(dir);
}

static int node_of(const char *sys, const char *bus)
{
	char path[PATH_MAX], text[32], *end;

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%.20s/numa_node", sys, bus);
	if (tfh_read_small_at(-1, path, text, sizeof(text)))
		return -1;
	long node = strtol(text, &end, 10);
	return end == text || node < 0 || node > 65535 ? -1 : (int)node;
}

void tfh_device_place(const char *sys, const char *bus, struct tfh_device_place *out)
{
	static struct bus_path device;
	char path[PATH_MAX], low[20];
	size_t n = 0;

	*out = (struct tfh_device_place){.node = -1};
	/* The driver may use upper case. */
	for (; bus[n] && n + 1 < sizeof(low); n++)
		low[n] = (char)tolower((unsigned char)bus[n]);
	low[n] = '\0';
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", sys, low);
	read_path(path, &device);
	if (device.n < 2)
		return;
	out->node = node_of(sys, low);
	if (device.n >= 5) /* the root, its port, the switch's two ports, the device */
		snprintf(out->pcie, sizeof(out->pcie), "%.15s", device.part[device.n - 3]);
	find_nic(sys, &device, out->nic);
}
