/*
 * Copies and waits from functions with names: what tests/hook/stacks.py looks for.
 *
 * usage: stacks [STEPS [thread|code|time|pauses [main]]]; thread: on one with hardly any stack; code: on a thread, with code of the
 * program's between the copies; time: what a copy that the driver refuses
 * takes on a thread 25 frames deep, with a backtrace under TFHOOK_STACKS=copy; pauses: the same for copies after pauses of 0.5 ms, in
 * which the caches are used, on a thread or on the main one
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tfhook/tfhook.h"

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define BYTES (8u << 20)

typedef unsigned long long address;

static int (*cu_init)(unsigned);
static int (*cu_retain)(void **, int);
static int (*cu_current)(void *);
static int (*cu_alloc)(address *, size_t);
static int (*cu_upload)(address, const void *, size_t);
static int (*cu_fetch)(void *, address, size_t);

static void find(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);

	if (!cuda)
		exit(3);
	*(void **)&cu_init = dlsym(cuda, "cuInit");
	*(void **)&cu_retain = dlsym(cuda, "cuDevicePrimaryCtxRetain");
	*(void **)&cu_current = dlsym(cuda, "cuCtxSetCurrent");
	*(void **)&cu_alloc = dlsym(cuda, "cuMemAlloc_v2");
	*(void **)&cu_upload = dlsym(cuda, "cuMemcpyHtoD_v2");
	*(void **)&cu_fetch = dlsym(cuda, "cuMemcpyDtoH_v2");
}

static size_t bytes = BYTES;

NOINLINE void upload_batch(address device, const char *host);
NOINLINE void fetch_result(char *host, address device);
NOINLINE void train_step(address device, char *host);

/* What follows the call keeps it from being a jump. */
NOINLINE void upload_batch(address device, const char *host)
{
	if (cu_upload(device, host, bytes))
		exit(2);
}

NOINLINE void fetch_result(char *host, address device)
{
	if (cu_fetch(host, device, 64))
		exit(2);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int code; /* the program's, in a step */

NOINLINE void train_step(address device, char *host)
{
	double begin;

	tfhook_step_begin("step");
	upload_batch(device, host);
	begin = now_ns();
	while (code && now_ns() < begin + 3e7)
		;
	fetch_result(host, device);
	tfhook_step_end();
}

static long steps = 12;

static void *train(void *arg)
{
	char *host = calloc(1, BYTES);
	address device;
	void *ctx;

	if (cu_init(0) || cu_retain(&ctx, 0) || cu_current(ctx) || cu_alloc(&device, BYTES))
		exit(1);
	for (long i = 0; i < steps; i++)
		train_step(device, host);
	free(host);
	return arg;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void time_copies(void)
{
	double ns[61];
	struct timespec begin, end;
	char host[64];

	for (int block = 0; block < 61; block++) {
		clock_gettime(CLOCK_MONOTONIC, &begin);
		for (long i = 0; i < steps; i++)
			cu_fetch(host, 1, sizeof(host));
		clock_gettime(CLOCK_MONOTONIC, &end);
		ns[block] = ((double)(end.tv_sec - begin.tv_sec) * 1e9 +
			     (double)(end.tv_nsec - begin.tv_nsec)) /
			    (double)steps;
	}
	qsort(ns, 61, sizeof(*ns), by_size);
	printf("%.0f ns (%.0f to %.0f)\n", ns[30], ns[15], ns[45]);
}

static void time_pauses(void)
{
	static char used[4 << 20];
	double *ns = calloc((size_t)steps, sizeof(*ns)), sum = 0;
	char host[64];

	for (long i = 0; i < steps; i++) {
		double begin = now_ns();
		for (size_t k = 0; now_ns() - begin < 5e5; k += 64)
			used[k % sizeof(used)]++;
		begin = now_ns();
		cu_fetch(host, 1, sizeof(host));
		ns[i] = now_ns() - begin;
		sum += ns[i];
	}
	qsort(ns, (size_t)steps, sizeof(*ns), by_size);
	printf("%.0f ns (%.0f to %.0f), mean %.0f\n", ns[steps / 2], ns[steps / 10],
	       ns[steps * 9 / 10], sum / (double)steps);
	free(ns);
}

NOINLINE int deeper(int frames, void (*last)(void));

NOINLINE int deeper(int frames, void (*last)(void))
{
	int below = 0;

	if (frames)
		below = deeper(frames - 1, last);
	else
		last();
	__asm__ volatile("" : "+r"(below)); /* no loop instead */
	return below + 1;
}

static void *deep(void *arg)
{
	char byte;

	cu_init(0);
	cu_fetch(&byte, 1, 1);
	usleep(300000); /* recording begins with that call */
	return deeper(22, arg ? time_pauses : time_copies) ? arg : NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t thread;

	find();
	if (argc > 1)
		steps = atol(argv[1]);
	if (argc > 2 && !strcmp(argv[2], "thread")) {
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 24 << 10);
		if (pthread_create(&thread, &attr, train, NULL) || pthread_join(thread, NULL))
			return 1;
	} else if (argc > 2 && !strcmp(argv[2], "code")) {
		code = 1;
		bytes = 64 << 10;
		if (pthread_create(&thread, NULL, train, NULL) || pthread_join(thread, NULL))
			return 1;
	} else if (argc > 3) {
		deep(&steps);
	} else if (argc > 2) {
		void *pauses = strcmp(argv[2], "pauses") ? NULL : &steps;
		if (pthread_create(&thread, NULL, deep, pauses) || pthread_join(thread, NULL))
			return 1;
	} else {
		train(NULL);
		usleep(1000);
	}
	/* The number that the next file would get. */
	printf("done %d\n", dup(0));
	return 0;
}
