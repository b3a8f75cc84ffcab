/*
 * What one hooked call of each family costs, in nanoseconds, beside the same call to a driver that
 *does nothing: without the library, with it switched off, and recording. Two clock readings are
 *given for comparison: a recorded call cannot cost less.
 *
 *	hook_families [LIBTFHOOK]	(build/lib/libtfhook.so beside this program's build folder)
 *
 * Each figure is the median of many short bursts with pauses, so that the rings never fill; a
 *dropped record would be cheaper than a kept one. The program runs itself once for each column.
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

enum { BURST = 256, BURSTS = 400, PAUSE_US = 1500, MOST = 16 };

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
static uint64_t sink;
static void two_stamps(void)
{
	sink += tfh_ticks();
	sink += tfh_ticks();
}

static const struct {
	const char *name;
	void (*call)(void);
} families[] = {
	{"launch", launch},	  {"launch, extended", launch_ex},
	{"copy", copy},		  {"copy, 2D", copy_2d},
	{"memset", set},	  {"stream sync", synchronize},
	{"event record", record}, {"event query", query},
	{"graph launch", graph},  {"allocation", alloc},
	{"free", release},	  {"two time stamps", two_stamps},
};
#define FAMILIES (sizeof(families) / sizeof(*families))

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double measure(void (*call)(void))
{
	static double burst[BURSTS];

	for (int i = 0; i < BURSTS; i++) {
		int64_t begin = tfh_clock_ns(CLOCK_MONOTONIC);
		for (int k = 0; k < BURST; k++)
			call();
		burst[i] = (double)(tfh_clock_ns(CLOCK_MONOTONIC) - begin) / BURST;
		if (i % 4 == 3)
			usleep(PAUSE_US);
	}
	qsort(burst, BURSTS, sizeof(*burst), by_value);
	return burst[BURSTS / 2];
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
	tfh_clock_init(NULL);
	launch();
	usleep(200000); /* the recorder sets itself up */
	for (size_t i = 0; i < FAMILIES; i++) {
		measure(families[i].call); /* rings grow to their size */
		printf("%.2f\n", measure(families[i].call));
	}
	return 0;
}

static int run(const char *self, const char *driver, const char *preload, const char *enabled,
	       const char *dir, double *out)
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
	while (n < (int)FAMILIES && fscanf(p, "%lf", &out[n]) == 1)
		n++;
	return pclose(p) == 0 && n == (int)FAMILIES ? 0 : -1;
}

int main(int argc, char **argv)
{
	char self[PATH_MAX], copy_of_self[PATH_MAX], folder[PATH_MAX], hook[2 * PATH_MAX],
		driver[2 * PATH_MAX];
	char dir[] = "/tmp/tfhook-bench-XXXXXX", remove[sizeof(dir) + 16];
	double plain[MOST], off[MOST], on[MOST];
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
	double stamps = plain[FAMILIES - 1];
	printf("ns per call            no library   switched off   recording   beyond two time "
	       "stamps\n");
	for (size_t i = 0; i + 1 < FAMILIES; i++)
		printf("%-22s %10.1f %14.1f %11.1f %15.1f\n", families[i].name, plain[i], off[i],
		       on[i], on[i] - plain[i] - stamps);
	printf("%-22s %10.1f\n", families[FAMILIES - 1].name, stamps);
	return 0;
}
