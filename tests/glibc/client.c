/* A job for systems of any age: linked as tfhook's products are, it finds the driver by dlopen.
 * Three threads copy. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, STEPS = 500, BYTES = 1 << 16 };

static void *driver, *context;

static int call(const char *name, uintptr_t a, uintptr_t b, uintptr_t c)
{
	int (*function)(uintptr_t, uintptr_t, uintptr_t) =
		(int (*)(uintptr_t, uintptr_t, uintptr_t))dlsym(driver, name);
	int result = function ? function(a, b, c) : -1;

	if (result) {
		fprintf(stderr, "%s: %d\n", name, result);
		exit(1);
	}
	return result;
}

static void *work(void *unused)
{
	static char host[THREADS * BYTES];
	uintptr_t device = 0;

	call("cuCtxSetCurrent", (uintptr_t)context, 0, 0);
	call("cuMemAlloc_v2", (uintptr_t)&device, BYTES, 0);
	for (int i = 0; i < STEPS; i++) {
		call("cuMemcpyHtoD_v2", device, (uintptr_t)host, BYTES);
		call("cuCtxSynchronize", 0, 0, 0);
	}
	call("cuMemFree_v2", device, 0, 0);
	return unused;
}

int main(void)
{
	pthread_t threads[THREADS];

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	call("cuInit", 0, 0, 0);
	call("cuCtxCreate_v2", (uintptr_t)&context, 0, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	puts("copied");
	return 7;
}
