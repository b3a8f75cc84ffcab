/*
 * Calls a driver that does nothing, at a given rate, and prints how long its calls took: a line of JSON with percentiles in
 * nanoseconds, and the processor time of this thread and of the process's other threads (a recorder's).
 *
 *	client RATE SECONDS [CORE]	RATE calls a second (0: as fast as it can); all on CORE, which leaves the others to recorders
 *
 * Between calls it spins on the clock, so that the processor neither sleeps nor changes its speed. Each sample includes one
 * reading of the clock.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <x86intrin.h>

#define MOST (20u << 20)

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		   unsigned bz, unsigned shared, void *stream, void **params, void **extra);

static uint32_t *took;

static double seconds_of(int clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cpu_of(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double ticks_a_second(void)
{
	struct timespec rest = {0, 50000000};
	double begin = seconds_of(CLOCK_MONOTONIC);
	uint64_t from = __rdtsc();

	nanosleep(&rest, NULL);
	return (double)(__rdtsc() - from) / (seconds_of(CLOCK_MONOTONIC) - begin);
}

static void call(uint64_t i)
{
	cuLaunchKernel((void *)(0x7f0000001000 + i % 40 * 4096), 64, 1, 1, 256, 1, 1, 0,
		       (void *)0x5000, NULL, NULL);
}

/* Calls for so long; returns their number. */
static uint32_t run(double hz, double rate, double seconds)
{
	uint64_t apart = rate > 0 ? (uint64_t)(hz / rate) : 0, begin = __rdtsc(), due = begin;
	uint64_t end = begin + (uint64_t)(seconds * hz);
	uint32_t n = 0;

	while (n < MOST) {
		uint64_t from, to;

		while ((from = __rdtsc()) < due)
			;
		if (from >= end)
			break;
		call(n);
		to = __rdtsc();
		took[n++] = to - from < UINT32_MAX ? (uint32_t)(to - from) : UINT32_MAX;
		due = due + apart > to ? due + apart : to; /* a delay is not made up for */
	}
	return n;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static const double quantile[] = {0.5, 0.9, 0.99, 0.999, 0.9999, 1};
	static const char *const name[] = {"p50", "p90", "p99", "p99.9", "p99.99", "max"};
	double hz, thread, all;
	uint32_t n;

	if (argc < 3)
		return 2;
	if (argc > 3) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(atoi(argv[3]), &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	took = calloc(MOST, sizeof(*took));
	hz = ticks_a_second();
	run(hz, 10000, 0.3); /* recorders set up, pages are there */
	thread = cpu_of(RUSAGE_THREAD);
	all = cpu_of(RUSAGE_SELF);
	n = run(hz, atof(argv[1]), atof(argv[2]));
	thread = cpu_of(RUSAGE_THREAD) - thread;
	all = cpu_of(RUSAGE_SELF) - all;
	qsort(took, n, sizeof(*took), by_value);
	printf("{\"calls\": %u, \"thread_s\": %.6f, \"others_s\": %.6f", n, thread,
	       all > thread ? all - thread : 0);
	for (int i = 0; n && i < 6; i++)
		printf(", \"%s\": %.1f", name[i],
		       (double)took[(uint32_t)(quantile[i] * (n - 1))] / hz * 1e9);
	printf("}\n");
	return 0;
}
