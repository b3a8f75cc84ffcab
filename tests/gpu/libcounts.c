/*
 * Counts every driver call of a process by name, as CUPTI's callbacks tell: what a recording is
 * held against. The driver loads it by CUDA_INJECTION64_PATH; COUNTS_CUPTI is the path of libcupti,
 * COUNTS the file for "name count" lines, written at the exit of the process.
 *
 * CUPTI's few types are written out here, so that no header of the vendor's is needed.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOMAIN_DRIVER = 1, SITE_ENTER = 0, MOST = 4096 };

struct callback_data {
	int site;
	const char *function;
};

typedef void (*callback)(void *user, int domain, uint32_t id, const struct callback_data *data);

static struct {
	const char *name;
	uint64_t count;
} seen[MOST];

static void count(void *user, int domain, uint32_t id, const struct callback_data *data)
{
	(void)user;
	if (domain != DOMAIN_DRIVER || data->site != SITE_ENTER || id >= MOST)
		return;
	__atomic_store_n(&seen[id].name, data->function, __ATOMIC_RELAXED);
	__atomic_fetch_add(&seen[id].count, 1, __ATOMIC_RELAXED);
}

static void put(void)
{
	FILE *out = getenv("COUNTS") ? fopen(getenv("COUNTS"), "w") : NULL;

	for (int i = 0; out && i < MOST; i++)
		if (seen[i].count)
			fprintf(out, "%s %llu\n", seen[i].name, (unsigned long long)seen[i].count);
	if (out)
		fclose(out);
}

int InitializeInjection(void);
int InitializeInjection(void)
{
	const char *path = getenv("COUNTS_CUPTI");
	void *cupti = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL, *subscriber;
	int (*subscribe)(void **, callback, void *) =
		cupti ? (int (*)(void **, callback, void *))dlsym(cupti, "cuptiSubscribe") : NULL;
	int (*enable)(uint32_t, void *, int) =
		cupti ? (int (*)(uint32_t, void *, int))dlsym(cupti, "cuptiEnableDomain") : NULL;

	if (!subscribe || !enable || subscribe(&subscriber, count, NULL) ||
	    enable(1, subscriber, DOMAIN_DRIVER)) {
		fprintf(stderr, "counts: no callbacks from %s\n", path ? path : "(COUNTS_CUPTI)");
		return 0;
	}
	/* After the program's own exit handlers, which may call the driver. */
	atexit(put);
	return 1;
}
