/*
 * What one hooked call of each family costs, in nanoseconds, beside the same call to a driver that
 * does nothing: without the library, with it switched off, and recording; and how much of it is
 * beyond two readings of the clock, without which no call can be recorded.
 *
 *	hook_families [LIBTFHOOK]	(build/lib/libtfhook.so beside this program's build folder)
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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The bars are those of one recorded call; the last two make two, and names. */
static const struct {
	const char *name;
	void (*call)(void);
	int bar; /* ns beyond two time stamps */
} families[] = {
	{"launch", launch, 10},
	{"launch, extended", launch_ex, 10},
	{"copy", copy, 8},
	{"copy, 2D", copy_2d, 0},
	{"memset", set, 8},
	{"stream sync", synchronize, 10},
	{"event record", record, 10},
	{"event query", query, 10},
	{"stream wait event", wait_event, 10},
	{"graph launch", graph, 10},
	{"allocation", alloc, 10},
	{"free", release, 10},
	{"host function + its run", host, 0},
	{"stream made + destroyed", make_stream, 0},
};
#define FAMILIES (sizeof(families) / sizeof(*families))

/* Of one family in one column. */
struct figures {
	double cost, beyond, quiet; /* beyond two time stamps: median and lowest tenth */
};

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

/* One column, printed as numbers. */
static int column(const char *driver)
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
	for (size_t i = 0; i < FAMILIES; i++) {
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

int main(int argc, char **argv)
{
	char self[PATH_MAX], copy_of_self[PATH_MAX], folder[PATH_MAX], hook[2 * PATH_MAX],
		driver[2 * PATH_MAX];
	char dir[] = "/tmp/tfhook-bench-XXXXXX", remove[sizeof(dir) + 16];
	struct figures plain[MOST], off[MOST], on[MOST];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (argc == 3 && !strcmp(argv[1], "--column"))
		return column(argv[2]);
	if (length < 0 || !mkdtemp(dir))
		return 1;
	self[length] = '\0';
	strcpy(copy_of_self, self);
	strcpy(folder, dirname(copy_of_self));
	snprintf(driver, sizeof(driver), "%s/libnoopcuda.so", folder);
	snprintf(hook, sizeof(hook), "%s/../lib/libtfhook.so", folder);
	if (argc > 1)
		snprintf(hook, sizeof(hook), "%s", argv[1]);
	int failed = run(self, driver, "", "1", dir, plain) ||
		     run(self, driver, hook, "0", dir, off) ||
		     run(self, driver, hook, "1", dir, on);
	snprintf(remove, sizeof(remove), "rm -rf '%s'", dir);
	if (system(remove) || failed) {
		fprintf(stderr, "hook_families: a run failed\n");
		return 1;
	}
	printf("ns per call              no library  switched off  recording  beyond two stamps  "
	       "quiet core  bar\n");
	for (size_t i = 0; i < FAMILIES; i++) {
		printf("%-24s %10.1f %13.1f %10.1f %18.1f %11.1f", families[i].name, plain[i].cost,
		       off[i].cost, on[i].cost, on[i].beyond - plain[i].cost,
		       on[i].quiet - plain[i].cost);
		if (families[i].bar)
			printf("  %3d%s\n", families[i].bar,
			       on[i].beyond - plain[i].cost > families[i].bar ? "  over" : "");
		else
			printf("    -\n");
	}
	printf("two time stamps: %.1f ns\n", on[0].cost - on[0].beyond);
	return 0;
}
