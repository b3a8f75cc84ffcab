/*
 * What one hooked call of each family costs, in nanoseconds, beside the same call to a driver that
 * does nothing: without the library, with it switched off, and recording; and how much of it is
 * beyond two readings of the clock, without which no call can be recorded.
 *
 *	hook_families [kernel] [LIBTFHOOK]	(build/lib/libtfhook.so beside this program's build folder)
 *
 * kernel: with the kernel's clock, as on a machine whose counter cannot be trusted. In a mount namespace of its own, where the kernel
 * seems to use another clock source; left out where such a namespace is not allowed.
 *
 * Each figure is the median of many short bursts with pauses, so that the rings never fill; a
 * dropped record would be cheaper than a kept one. A burst of clock readings follows each burst of
 * calls: a neighbour on the same core makes both half again as slow, so their difference is taken
 * burst by burst, and its lowest tenth shows what is left on a quiet core. The program runs itself
 * once for each column.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { BURST = 256, BURSTS = 400, PAUSE_US = 1500, MOST = 20 };

typedef unsigned long long ptr;

static struct {
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **);
	int (*launch_ex)(const void *, void *, void **, void **);
	int (*copy)(ptr, const void *, size_t, void *);
	int (*copy_2d)(const void *, void *);
	int (*set)(ptr, unsigned char, size_t, void *);
	int (*sync)(void *);
	int (*record)(void *, void *);
	int (*query)(void *);
	int (*graph)(void *, void *);
	int (*alloc)(ptr *, size_t, void *);
	int (*release)(ptr, void *);
	int (*wait)(void *, void *, unsigned);
	int (*create)(void **, unsigned);
	int (*destroy)(void *);
	int (*host)(void *, void (*)(void *), void *);
} cu;

static void *const stream = (void *)0x5000;
static char rows[128], config[128];

static void launch(void)
{
	cu.launch((void *)0x7000, 1, 2, 3, 4, 5, 6, 7, stream, NULL, NULL);
}
static void launch_ex(void)
{
	cu.launch_ex(config, (void *)0x7000, NULL, NULL);
}
static void copy(void)
{
	cu.copy(0x1000, rows, 64, stream);
}
static void copy_2d(void)
{
	cu.copy_2d(rows, stream);
}
static void set(void)
{
	cu.set(0x1000, 1, 64, stream);
}
static void synchronize(void)
{
	cu.sync(stream);
}
static void record(void)
{
	cu.record((void *)0x8000, stream);
}
static void query(void)
{
	cu.query((void *)0x8000);
}
static void graph(void)
{
	cu.graph((void *)0x9000, stream);
}
static void alloc(void)
{
	ptr out;
	cu.alloc(&out, 64, stream);
}
static void release(void)
{
	cu.release(0x1000, stream);
}
static void wait_event(void)
{
	cu.wait(stream, (void *)0x8000, 0);
}
static void make_stream(void)
{
	void *out;
	cu.create(&out, 0);
	cu.destroy(out);
}
static void on_host(void *user)
{
	(void)user;
}
static void host(void)
{
	cu.host(stream, on_host, NULL);
}
static uint64_t sink;
static void two_stamps(void)
{
	sink += tfh_ticks();
	sink += tfh_ticks();
}

/* Those without a bar make two records or calls, or names. */
static const struct {
	const char *name;
	void (*call)(void);
	bool barred;
} families[] = {
	{"launch", launch, true},
	{"launch, extended", launch_ex, true},
	{"copy", copy, true},
	{"copy, 2D", copy_2d, false},
	{"memset", set, true},
	{"stream sync", synchronize, true},
	{"event record", record, true},
	{"event query", query, true},
	{"stream wait event", wait_event, true},
	{"graph launch", graph, true},
	{"allocation", alloc, true},
	{"free", release, true},
	{"host function + its run", host, false},
	{"stream made + destroyed", make_stream, false},
};
#define FAMILIES (sizeof(families) / sizeof(*families))

/* Of one family in one column. */
struct figures {
	double cost, beyond, quiet; /* beyond two time stamps: median and lowest tenth */
};

/* What a call may cost beyond two time stamps, in ns. */
static double bar(double stamps)
{
	return stamps < 20 ? 8 : 0.2 * stamps;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double burst_of(void (*call)(void))
{
	int64_t begin = tfh_clock_ns(CLOCK_MONOTONIC);

	for (int k = 0; k < BURST; k++)
		call();
	return (double)(tfh_clock_ns(CLOCK_MONOTONIC) - begin) / BURST;
}

static struct figures measure(void (*call)(void))
{
	static double cost[BURSTS], beyond[BURSTS];

	for (int i = 0; i < BURSTS; i++) {
		cost[i] = burst_of(call);
		beyond[i] = cost[i] - burst_of(two_stamps);
		if (i % 4 == 3)
			usleep(PAUSE_US);
	}
	qsort(cost, BURSTS, sizeof(*cost), by_value);
	qsort(beyond, BURSTS, sizeof(*beyond), by_value);
	return (struct figures){cost[BURSTS / 2], beyond[BURSTS / 2], beyond[BURSTS / 10]};
}

/* One column, printed as numbers: the first `n` families. */
static int column(const char *driver, size_t n)
{
	void *h = dlopen(driver, RTLD_NOW);
	int (*init)(unsigned) = h ? (int (*)(unsigned))dlsym(h, "cuInit") : NULL;

	if (!init || init(0)) {
		fprintf(stderr, "%s: %s\n", driver, dlerror());
		return 1;
	}
	*(void **)&cu.launch = dlsym(h, "cuLaunchKernel");
	*(void **)&cu.launch_ex = dlsym(h, "cuLaunchKernelEx");
	*(void **)&cu.copy = dlsym(h, "cuMemcpyHtoDAsync_v2");
	*(void **)&cu.copy_2d = dlsym(h, "cuMemcpy2DAsync_v2");
	*(void **)&cu.set = dlsym(h, "cuMemsetD8Async");
	*(void **)&cu.sync = dlsym(h, "cuStreamSynchronize");
	*(void **)&cu.record = dlsym(h, "cuEventRecord");
	*(void **)&cu.query = dlsym(h, "cuEventQuery");
	*(void **)&cu.graph = dlsym(h, "cuGraphLaunch");
	*(void **)&cu.alloc = dlsym(h, "cuMemAllocAsync");
	*(void **)&cu.release = dlsym(h, "cuMemFreeAsync");
	*(void **)&cu.wait = dlsym(h, "cuStreamWaitEvent");
	*(void **)&cu.create = dlsym(h, "cuStreamCreate");
	*(void **)&cu.destroy = dlsym(h, "cuStreamDestroy_v2");
	*(void **)&cu.host = dlsym(h, "cuLaunchHostFunc");
	tfh_clock_init(NULL);
	launch();
	usleep(200000); /* the recorder sets itself up */
	for (size_t i = 0; i < n && i < FAMILIES; i++) {
		measure(families[i].call); /* rings grow to their size */
		struct figures f = measure(families[i].call);
		printf("%.2f %.2f %.2f\n", f.cost, f.beyond, f.quiet);
	}
	return 0;
}

static int run(const char *self, const char *driver, const char *preload, const char *enabled,
	       const char *dir, struct figures *out)
{
	char command[4 * PATH_MAX];
	int n = 0;

	snprintf(
		command, sizeof(command),
		"TFHOOK=%s TFHOOK_DIR='%s' TFHOOK_CUDA_LIB='%s' LD_PRELOAD='%s' '%s' --column '%s'",
		enabled, dir, driver, preload, self, driver);
	FILE *p = popen(command, "r");
	if (!p)
		return -1;
	while (n < (int)FAMILIES &&
	       fscanf(p, "%lf %lf %lf", &out[n].cost, &out[n].beyond, &out[n].quiet) == 3)
		n++;
	return pclose(p) == 0 && n == (int)FAMILIES ? 0 : -1;
}

/* Lets this process and its children see a clock source that leaves only the kernel's clock. */
static bool hide_counter(const char *dir)
{
	static const char seen[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/clocksource", dir);
	FILE *f = fopen(path, "w");
	if (!f)
		return false;
	fputs("hpet\n", f);
	fclose(f);
	return (!unshare(CLONE_NEWNS) || !unshare(CLONE_NEWUSER | CLONE_NEWNS)) &&
	       !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount(path, seen, NULL, MS_BIND, NULL);
}

int main(int argc, char **argv)
{
	char self[PATH_MAX], copy_of_self[PATH_MAX], folder[PATH_MAX], hook[2 * PATH_MAX],
		driver[2 * PATH_MAX];
	char dir[] = "/tmp/tfhook-bench-XXXXXX", remove[sizeof(dir) + 16];
	struct figures plain[MOST], off[MOST], on[MOST];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	bool kernel = argc > 1 && !strcmp(argv[1], "kernel");

	if (argc >= 3 && !strcmp(argv[1], "--column"))
		return column(argv[2], argc > 3 ? strtoul(argv[3], NULL, 10) : FAMILIES);
	if (length < 0 || !mkdtemp(dir))
		return 1;
	snprintf(remove, sizeof(remove), "rm -rf '%s'", dir);
	if (kernel && !hide_counter(dir)) {
		printf("left out: no mount namespace of its own is allowed here\n");
		return system(remove) != 0;
	}
	self[length] = '\0';
	strcpy(copy_of_self, self);
	strcpy(folder, dirname(copy_of_self));
	snprintf(driver, sizeof(driver), "%s/libnoopcuda.so", folder);
	snprintf(hook, sizeof(hook), "%s/../lib/libtfhook.so", folder);
	if (argc > 1 + kernel)
		snprintf(hook, sizeof(hook), "%s", argv[1 + kernel]);
	int failed = run(self, driver, "", "1", dir, plain) ||
		     run(self, driver, hook, "0", dir, off) ||
		     run(self, driver, hook, "1", dir, on);
	if (system(remove) || failed) {
		fprintf(stderr, "hook_families: a run failed\n");
		return 1;
	}
	double stamps = on[0].cost - on[0].beyond;
	printf("ns per call              no library  switched off  recording  beyond two stamps  "
	       "quiet core   bar\n");
	for (size_t i = 0; i < FAMILIES; i++) {
		double beyond = on[i].beyond - plain[i].cost;

		printf("%-24s %10.1f %13.1f %10.1f %18.1f %11.1f", families[i].name, plain[i].cost,
		       off[i].cost, on[i].cost, beyond, on[i].quiet - plain[i].cost);
		if (families[i].barred)
			printf("  %4.1f%s\n", bar(stamps), beyond > bar(stamps) ? "  over" : "");
		else
			printf("     -\n");
	}
	printf("two time stamps: %.1f ns\n", stamps);
	return 0;
}
