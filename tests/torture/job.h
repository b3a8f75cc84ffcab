/*
 * What the programs of this folder share: steps (one driver call each) that are counted outside of
 * the process, and the table of ways that a program's main() chooses from.
 *
 * The counts lie in the file that TORTURE_PAGE names, mapped shared, so that they outlive any end.
 * A slot belongs to one program image of one process; `tried` is counted before and `done` after
 * the call, so that of a killed process between `done` and `tried` records must be there.
 */
#ifndef TESTS_TORTURE_JOB_H
#define TESTS_TORTURE_JOB_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 65536u

struct count {
	uint32_t pid, pad;
	uint64_t tried, done; /* atomic */
	uint64_t pad2[5];
};

struct page {
	uint64_t used; /* atomic: slots given out */
	uint64_t pad[7];
	struct count of[SLOTS];
};

static struct page *page;
static struct count *mine;
static int (*copy)(uint64_t, const void *, size_t); /* cuMemcpyHtoD of libdriver.c */

static inline void count_as_new(void)
{
	uint64_t slot = __atomic_fetch_add(&page->used, 1, __ATOMIC_RELAXED);

	if (slot >= SLOTS)
		abort();
	mine = &page->of[slot];
	mine->pid = (uint32_t)syscall(SYS_getpid);
}

static inline void step(void)
{
	__atomic_fetch_add(&mine->tried, 1, __ATOMIC_RELAXED);
	copy(0, NULL, 0);
	__atomic_fetch_add(&mine->done, 1, __ATOMIC_RELEASE);
}

static inline void steps(long n)
{
	for (long i = 0; i < n; i++)
		step();
}

static inline void *steps_thread(void *n)
{
	steps((long)(intptr_t)n);
	return NULL;
}

static inline void nap_ms(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static inline void must(int ok, const char *what)
{
	if (ok)
		return;
	dprintf(1, "the job's own %s failed: %s\n", what, strerror(errno));
	_exit(98);
}

static inline pthread_t spawn(void *(*run)(void *), long n)
{
	pthread_t t;

	must(!pthread_create(&t, NULL, run, (void *)(intptr_t)n), "pthread_create");
	return t;
}

/* A thread of steps that ends when the `volatile int` at `flag` is set. */
static inline void *steps_until(void *flag)
{
	while (!*(volatile int *)flag)
		step();
	return NULL;
}

/* Waits for a child; its exit status, or 128 + signal. */
static inline int ended(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct way {
	const char *name;
	int (*run)(int n, char **more); /* exit status */
};

static inline void *driver(void)
{
	const char *path = getenv("TORTURE_DRIVER"); /* a setuid program looks nowhere else */
	void *lib = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);

	must(lib != NULL, "dlopen");
	return lib;
}

static inline int choose(const struct way *ways, int argc, char **argv)
{
	const char *path = getenv("TORTURE_PAGE");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;

	if (argc < 3 || fd < 0 || ftruncate(fd, sizeof(*page)))
		return 99;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return 99;
	count_as_new();
	pthread_atfork(NULL, NULL, count_as_new);
	copy = (int (*)(uint64_t, const void *, size_t))dlsym(driver(), "cuMemcpyHtoD_v2");
	must(copy != NULL, "dlsym");
	for (; ways->name; ways++)
		if (!strcmp(ways->name, argv[1]))
			return ways->run(atoi(argv[2]), argv + 3);
	return 99;
}

#endif
