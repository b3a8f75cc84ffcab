/*
 * Once a second: the state of the machine and the container, from /proc and /sys, and the kernel's
 * counts for each thread. Values that cannot be read are left out. On a large machine, /proc/stat
 * takes the kernel a millisecond, and so do many threads. Readings come further apart where they
 * cost more.
 */
#include "record/watch/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/meters.h"
#include "format/sample.h"
#include "record/process/recorder.h"
#include "record/watch/near.h"
#include "record/watch/nvml_thread.h"

#define TEXT_BYTES (32u << 10)
#define GROUP_BYTES 512u
#define COST_SHARE 2000u      /* of one CPU: readings take at most 1 / 2000 */
#define FIRST_NS 5000000u     /* and this once: the first readings find nothing in the caches */
#define LEAST_NS 900000000ull /* once a second; the flusher's rounds are not exactly periodic */
#define SECTOR_BYTES 512u
#define UNLIMITED_BYTES (1ull << 60) /* cgroup v1 means "no limit" by any number above this */

struct readings {
	struct tft_sample_thread *out;
	uint32_t n;
};

static char *text;		   /* [TEXT_BYTES] */
static char group[2][GROUP_BYTES]; /* folders of the container's CPU and memory accounts */
static bool group_v1;
static uint64_t begin_ns, spent_ns, next_ns; /* first reading, CPU time of all, next reading */

static void put(struct readings *r, enum tfh_meter meter, uint64_t first, uint64_t second)
{
	if (first != UINT64_MAX || second != UINT64_MAX)
		r->out[r->n++] = (struct tft_sample_thread){
			TFT_SAMPLE_NO_THREAD, tfh_meters[meter].number, first, second};
}

static uint64_t scaled(uint64_t value, uint64_t by)
{
	return value == UINT64_MAX ? value : value * by;
}

static bool read_file(const char *folder, const char *name)
{
	char path[GROUP_BYTES + 64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	tfh_read_small(path, text, TEXT_BYTES);
	return text[0] != '\0';
}

/* "cpu user nice system idle iowait irq softirq steal ...", in ticks. Guest time is included in
 * user. */
static void read_processors(struct readings *r)
{
	uint64_t v[8] = {0}, tick = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
	char *at = text + 4;

	if (!read_file("/proc", "stat") || strncmp(text, "cpu ", 4))
		return;
	for (int i = 0; i < 8; i++)
		v[i] = strtoull(at, &at, 10) * tick;
	put(r, TFH_METER_CPU, v[0] + v[1] + v[2] + v[5] + v[6], v[7]);
	put(r, TFH_METER_CPU_WAIT, v[4], v[2]);
}

/* Lines "some avg10=... total=US" and "full ...". Old kernels have no `full` line for CPUs. */
static void read_pressure(struct readings *r, enum tfh_meter meter, const char *folder,
			  const char *name)
{
	uint64_t us[2] = {UINT64_MAX, UINT64_MAX};
	const char *at;

	if (!read_file(folder, name))
		return;
	for (int i = 0; i < 2; i++) {
		at = strstr(text, i ? "full " : "some ");
		at = at ? strstr(at, "total=") : NULL;
		us[i] = at ? scaled(strtoull(at + 6, NULL, 10), 1000) : UINT64_MAX;
	}
	put(r, meter, us[0], us[1]);
}

static void read_memory(struct readings *r)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (read_file("/proc", "meminfo"))
		put(r, TFH_METER_MEMORY, scaled(tfh_number_of_line(text, "MemAvailable:"), 1024),
		    scaled(tfh_number_of_line(text, "MemTotal:"), 1024));
	if (read_file("/proc", "vmstat"))
		put(r, TFH_METER_SWAP, scaled(tfh_number_of_line(text, "pswpin "), page),
		    scaled(tfh_number_of_line(text, "pswpout "), page));
}

/*
 * "major minor name reads merged sectors ms writes merged sectors ms now ms_busy ms_waiting",
 * summed over disks. Partitions follow their disk and begin with its name. Devices made of other
 * disks (dm, md, loop) would count twice.
 */
static void read_disks(struct readings *r)
{
	static const char *const made[] = {"loop", "ram", "zram", "dm-", "md", "sr", "fd"};
	uint64_t bytes_read = 0, written = 0, busy = 0, waiting = 0;
	char disk[32] = "", name[32], *line, *rest;
	bool any = false;

	if (!read_file("/proc", "diskstats"))
		return;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned long long v[11];
		bool skip = false;
		if (sscanf(line,
			   "%*u %*u %31s %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu",
			   name, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8],
			   &v[9], &v[10]) != 12)
			continue;
		for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
			skip |= !strncmp(name, made[i], strlen(made[i]));
		if (skip || (disk[0] && !strncmp(name, disk, strlen(disk))))
			continue;
		snprintf(disk, sizeof(disk), "%s", name);
		bytes_read += v[2] * SECTOR_BYTES;
		written += v[6] * SECTOR_BYTES;
		busy += v[9] * 1000000;
		waiting += v[10] * 1000000;
		any = true;
	}
	if (any) {
		put(r, TFH_METER_DISK, bytes_read, written);
		put(r, TFH_METER_DISK_BUSY, busy, waiting);
	}
}

/* "name: bytes packets errs drop fifo frame compressed multicast bytes ..." of this namespace. */
static void read_network(struct readings *r)
{
	uint64_t received = 0, sent = 0;
	char *line, *rest;
	bool any = false;

	if (!read_file("/proc/self/net", "dev"))
		return;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned long long in, out;
		char *at = strchr(line, ':');
		line += strspn(line, " ");
		if (!at || !strncmp(line, "lo:", 3) ||
		    sscanf(at + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &in, &out) != 2)
			continue;
		received += in;
		sent += out;
		any = true;
	}
	if (any)
		put(r, TFH_METER_NETWORK, received, sent);
}

/* The folder of the account `controller` ("" for version 2), from a line "N:controllers:/path" of
 * /proc/self/cgroup. In its own namespace, a container sees itself as the root. */
static bool find_group(char *folder, const char *root, const char *controller)
{
	char *line, *rest;

	if (!read_file("/proc/self", "cgroup"))
		return false;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *names = strchr(line, ':'), *place = names ? strchr(names + 1, ':') : NULL;
		if (!place)
			continue;
		*place++ = '\0';
		if (*controller ? !strstr(names + 1, controller) : names[1] != '\0')
			continue;
		snprintf(folder, GROUP_BYTES, "%s%s", root, strcmp(place, "/") ? place : "");
		if (access(folder, X_OK)) /* the path belongs to the host */
			snprintf(folder, GROUP_BYTES, "%s", root);
		return true;
	}
	return false;
}

static void find_groups(void)
{
	group_v1 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) != 0;
	if (!group_v1) {
		if (find_group(group[0], "/sys/fs/cgroup", ""))
			memcpy(group[1], group[0], GROUP_BYTES);
	} else {
		find_group(group[0], "/sys/fs/cgroup/cpu", "cpu");
		find_group(group[1], "/sys/fs/cgroup/memory", "memory");
	}
}

/* The number of CPUs that the container's limit allows, in units of 1e-9; all ones: no limit. */
static uint64_t processor_limit(void)
{
	long long quota = -1, period = 0;

	if (!group_v1) {
		if (!read_file(group[0], "cpu.max") ||
		    sscanf(text, "%lld %lld", &quota, &period) != 2)
			return UINT64_MAX;
	} else {
		if (read_file(group[0], "cpu.cfs_quota_us"))
			quota = strtoll(text, NULL, 10);
		if (read_file(group[0], "cpu.cfs_period_us"))
			period = strtoll(text, NULL, 10);
	}
	if (quota <= 0 || period <= 0)
		return UINT64_MAX;
	return (uint64_t)((double)quota * 1e9 / (double)period);
}

static uint64_t limit_in(const char *name)
{
	uint64_t bytes = read_file(group[1], name) && text[0] >= '0' && text[0] <= '9'
				 ? strtoull(text, NULL, 10)
				 : UINT64_MAX;

	return bytes < UNLIMITED_BYTES ? bytes : UINT64_MAX;
}

static void read_container(struct readings *r)
{
	uint64_t bytes;

	put(r, TFH_METER_CPU_COUNT, (uint64_t)get_nprocs(),
	    group[0][0] ? processor_limit() : UINT64_MAX);
	if (group[0][0] && read_file(group[0], "cpu.stat"))
		put(r, TFH_METER_THROTTLED,
		    group_v1 ? tfh_number_of_line(text, "throttled_time ")
			     : scaled(tfh_number_of_line(text, "throttled_usec "), 1000),
		    tfh_number_of_line(text, "nr_throttled "));
	if (!group[1][0])
		return;
	bytes = limit_in(group_v1 ? "memory.usage_in_bytes" : "memory.current");
	if (bytes != UINT64_MAX)
		put(r, TFH_METER_OWN_BYTES, bytes,
		    limit_in(group_v1 ? "memory.limit_in_bytes" : "memory.max"));
	if (group_v1)
		return;
	read_pressure(r, TFH_METER_OWN_CPU, group[0], "cpu.pressure");
	read_pressure(r, TFH_METER_OWN_MEMORY, group[0], "memory.pressure");
	read_pressure(r, TFH_METER_OWN_IO, group[0], "io.pressure");
}

static void put_thread(struct readings *r, const struct tft_sample_thread *of, uint32_t what,
		       uint64_t first, uint64_t second)
{
	r->out[r->n++] = (struct tft_sample_thread){
		TFT_SAMPLE_NO_THREAD, of->thread << TFT_SAMPLE_INDEX_SHIFT | what, first, second};
}

/* The 36 fields after the name, which may contain anything: "S ppid group session tty tpgid flags
 * minor cminor major ...", last the CPU. */
static void read_thread(struct readings *r, const struct tft_sample_thread *of, bool nodes)
{
	char folder[64], *at, *rest;
	unsigned long long minor, major;
	int skip = 36;

	if (of->thread >> TFT_SAMPLE_INDEX_SHIFT)
		return;
	snprintf(folder, sizeof(folder), "/proc/self/task/%u", of->tid);
	at = read_file(folder, "stat") ? strrchr(text, ')') : NULL;
	if (at && sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu", &minor, &major) == 2)
		put_thread(r, of, TFT_SAMPLE_THREAD_FAULTS, minor, major);
	if (at && nodes && of->run_ns != UINT64_MAX) {
		for (rest = at + 1; skip && rest; skip--)
			rest = strchr(rest + 1, ' ');
		if (rest)
			tfh_near_add(of->tid, of->run_ns, (unsigned)strtoul(rest, NULL, 10));
	}
	if (read_file(folder, "status"))
		put_thread(r, of, TFT_SAMPLE_THREAD_SWITCHES,
			   tfh_number_of_line(text, "voluntary_ctxt_switches:"),
			   tfh_number_of_line(text, "nonvoluntary_ctxt_switches:"));
}

/* When the next reading is due, after one at `now` that took `cpu`. */
static void plan(uint64_t now, uint64_t cpu)
{
	begin_ns = begin_ns ? begin_ns : now;
	spent_ns += cpu;
	next_ns = spent_ns > FIRST_NS ? begin_ns + (spent_ns - FIRST_NS) * COST_SHARE : 0;
	next_ns = next_ns > now + LEAST_NS ? next_ns : now + LEAST_NS;
}

uint32_t tfh_machine_read(const struct tft_sample_thread *threads, uint32_t n,
			  struct tft_sample_thread *out)
{
	struct readings r = {.out = out};
	uint64_t now = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	uint64_t cpu = (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct rusage usage;
	bool nodes;

	if (now < next_ns)
		return 0;
	if (!text) {
		if (!tfh_memory(&text, TEXT_BYTES, "the state of the machine"))
			return 0;
		find_groups();
	}
	if (!getrusage(RUSAGE_SELF, &usage))
		put(&r, TFH_METER_SWITCHES, (uint64_t)usage.ru_nvcsw, (uint64_t)usage.ru_nivcsw);
	read_processors(&r);
	read_pressure(&r, TFH_METER_CPU_PRESSURE, "/proc/pressure", "cpu");
	read_pressure(&r, TFH_METER_MEMORY_PRESSURE, "/proc/pressure", "memory");
	read_pressure(&r, TFH_METER_IO_PRESSURE, "/proc/pressure", "io");
	read_memory(&r);
	read_disks(&r);
	read_network(&r);
	read_container(&r);
	nodes = tfh_near_find("/sys", tfh_devices_nodes());
	for (uint32_t i = 0; i < n; i++)
		read_thread(&r, &threads[i], nodes);
	if (nodes)
		put(&r, TFH_METER_NEAR, tfh_near_ns(), tfh_far_ns());
	plan(now, (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu);
	return r.n;
}
