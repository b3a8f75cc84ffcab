#include "record/watch/near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "record/process/recorder.h"

#define CPUS 4096u
#define NODES 64u
#define THREADS 256u
#define LIST_BYTES 512u

enum { ELSEWHERE, NEAR, FAR };

static struct near {
	uint8_t of_cpu[CPUS]; /* NEAR, FAR, or ELSEWHERE: on a node that is not listed */
	struct {
		uint32_t tid;
		uint64_t run_ns;
	} last[THREADS]; /* by tid; threads that share an entry are not counted */
	uint64_t nodes, ns[FAR + 1];
	bool several;
} * near;

/* "0-3,8": the numbers of a list as the kernel writes it. */
static void mark(const char *list, uint8_t side)
{
	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long from = strtoul(list, &end, 10), to = from;
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to && from < CPUS; from++)
			near->of_cpu[from] = side;
		list = end + (*end == ',');
	}
}

static void read_nodes(const char *sys, uint64_t nodes)
{
	char path[128], list[LIST_BYTES];
	bool any[FAR + 1] = {false};

	memset(near->of_cpu, ELSEWHERE, sizeof(near->of_cpu));
	for (unsigned i = 0; i < NODES; i++) {
		uint8_t side = nodes >> i & 1 ? NEAR : FAR;
		snprintf(path, sizeof(path), "%s/devices/system/node/node%u/cpulist", sys, i);
		tfh_read_small(path, list, sizeof(list));
		any[side] |= *list >= '0' && *list <= '9'; /* a node may be memory alone */
		mark(list, side);
	}
	near->several = any[NEAR] && any[FAR];
}

bool tfh_near_find(const char *sys, uint64_t nodes)
{
	if (!nodes || (!near && !tfh_memory(&near, sizeof(*near), "memory nodes")))
		return false;
	if (near->nodes != nodes)
		read_nodes(sys, nodes);
	near->nodes = nodes;
	return near->several;
}

void tfh_near_add(uint32_t tid, uint64_t run_ns, unsigned cpu)
{
	size_t i = tid % THREADS;

	if (near->last[i].tid == tid && run_ns >= near->last[i].run_ns && cpu < CPUS)
		near->ns[near->of_cpu[cpu]] += run_ns - near->last[i].run_ns;
	near->last[i].tid = tid;
	near->last[i].run_ns = run_ns;
}

uint64_t tfh_near_ns(void)
{
	return near->ns[NEAR];
}

uint64_t tfh_far_ns(void)
{
	return near->ns[FAR];
}
