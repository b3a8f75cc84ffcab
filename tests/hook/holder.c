/*
 * holder KIND: a thread trains and takes a lock in each step, which another thread holds most of the time.
 *	plain, robust, inherit	kinds of mutexes; inherit: the kernel knows the owner
 *	sleeps			a plain one, whose holder sleeps
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STEPS 150

static pthread_mutex_t lock;
static volatile int done, sleeps;
static volatile unsigned counted;
static unsigned char host[1 << 16];

static void work(long us)
{
	struct timespec t, begin;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &t);
	while ((t.tv_sec - begin.tv_sec) * 1000000 + (t.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void *summarize(void *arg)
{
	while (!done) {
		pthread_mutex_lock(&lock);
		if (sleeps)
			usleep(6000);
		else
			work(6000);
		pthread_mutex_unlock(&lock);
		usleep(500);
	}
	return arg;
}

__attribute__((noinline)) static void note_step(void)
{
	pthread_mutex_lock(&lock); /* the line */
	counted++;
	pthread_mutex_unlock(&lock);
}

static const char ptx[] =
	".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry forward(.param .u64 x) { ret; }\n"
	".visible .entry update(.param .u64 x) { ret; }\n";

static void *look(void *driver, const char *name)
{
	void *f = dlsym(driver, name);

	if (!f)
		exit(1);
	return f;
}

int main(int argc, char **argv)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;
	int (*init)(unsigned), (*retain)(void **, int), (*set)(void *), (*wait)(void);
	int (*alloc)(unsigned long long *, size_t),
		(*copy)(unsigned long long, const void *, size_t);
	int (*load)(void **, const void *), (*get)(void **, void *, const char *);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **);
	void *module, *forward, *update, *args[] = {&context};
	const char *kind = argc > 1 ? argv[1] : "plain";
	pthread_mutexattr_t how;
	unsigned long long memory;
	pthread_t thread;

	if (!driver)
		return 1;
	*(void **)&init = look(driver, "cuInit");
	*(void **)&retain = look(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&set = look(driver, "cuCtxSetCurrent");
	*(void **)&wait = look(driver, "cuCtxSynchronize");
	*(void **)&alloc = look(driver, "cuMemAlloc_v2");
	*(void **)&copy = look(driver, "cuMemcpyHtoD_v2");
	*(void **)&load = look(driver, "cuModuleLoadData");
	*(void **)&get = look(driver, "cuModuleGetFunction");
	*(void **)&launch = look(driver, "cuLaunchKernel");
	pthread_mutexattr_init(&how);
	if (!strcmp(kind, "robust"))
		pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
	if (!strcmp(kind, "inherit"))
		pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
	sleeps = !strcmp(kind, "sleeps");
	pthread_mutex_init(&lock, &how);
	if (init(0) || retain(&context, 0) || set(context) || alloc(&memory, sizeof(host)) ||
	    load(&module, ptx) || get(&forward, module, "forward") ||
	    get(&update, module, "update") || pthread_create(&thread, NULL, summarize, NULL))
		return 1;
	for (int i = 0; i < STEPS; i++) {
		if (copy(memory, host, sizeof(host)) ||
		    launch(forward, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL) ||
		    launch(update, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL) || wait())
			return 1;
		work(700); /* by then it is held again */
		note_step();
	}
	done = 1;
	return pthread_join(thread, NULL) || counted != STEPS;
}
