/*
 * A process that still uses the driver while it ends: handlers of exit registered before and after
 * cuInit, a destructor, and a thread that copies all the while. Prints what each call returned.
 * Argument: how it ends: return, exit, _exit, quick.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long ptr;

static int (*copy)(ptr, const void *, size_t);
static ptr memory;
static volatile int stop;

static void attempt(const char *when)
{
	char bytes[64] = "";

	printf("%s %d\n", when, copy ? copy(memory, bytes, sizeof(bytes)) : -1);
	fflush(stdout);
}

static void first(void)
{
	attempt("registered before cuInit");
}

static void last(void)
{
	attempt("registered after cuInit");
}

__attribute__((destructor)) static void end(void)
{
	stop = 1;
	attempt("destructor");
}

static int (*set_current)(void *);

static void *busy(void *context)
{
	char bytes[64] = "";

	set_current(context);
	while (!stop && !copy(memory, bytes, sizeof(bytes)))
		usleep(1000);
	return NULL;
}

int main(int argc, char **argv)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;
	const char *how = argc > 1 ? argv[1] : "return";
	pthread_t thread;

#define FIND(name, types) ((int(*) types)dlsym(driver, #name))
	if (!driver)
		return 1;
	atexit(first);
	if (FIND(cuInit, (unsigned))(0) ||
	    FIND(cuDevicePrimaryCtxRetain, (void **, int))(&context, 0) ||
	    FIND(cuCtxSetCurrent, (void *))(context) ||
	    FIND(cuMemAlloc_v2, (ptr *, size_t))(&memory, 4096))
		return 2;
	set_current = FIND(cuCtxSetCurrent, (void *));
	copy = FIND(cuMemcpyHtoD_v2, (ptr, const void *, size_t));
	atexit(last);
	for (int i = 0; i < 100; i++)
		if (copy(memory, argv[0], 1))
			return 3;
	if (pthread_create(&thread, NULL, busy, context))
		return 4;
	usleep(20000);
	if (!strcmp(how, "exit"))
		exit(5);
	if (!strcmp(how, "_exit"))
		_exit(6);
	if (!strcmp(how, "quick"))
		quick_exit(7);
	return 8;
}
