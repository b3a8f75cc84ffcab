/*
 * A small training loop in the driver's own interface, with its functions found as the first
 * argument says: "dlsym", "getproc", "per-thread" (cuGetProcAddress with per-thread default
 * streams), or, compiled with -DLINKED, by the linker. "replay" and "replay-dlsym" make the lookups
 * of the runtime library first, as the list (second argument) has them, and run on what these
 * answered; a third argument chooses its per-thread variants. Ends with 0 if every call did what
 * it should.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

typedef unsigned long long ptr;
typedef void *handle;

typedef struct {
	size_t src_x, src_y;
	int src_type;
	const void *src_host;
	ptr src_device;
	handle src_array;
	size_t src_pitch;
	size_t dst_x, dst_y;
	int dst_type;
	void *dst_host;
	ptr dst_device;
	handle dst_array;
	size_t dst_pitch;
	size_t width, height;
} pitched;

/* X(name, exported name, version for cuGetProcAddress, parameters) */
#define FUNCTIONS(X)                                                                               \
	X(cuInit, cuInit, 2000, (unsigned))                                                        \
	X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (handle *, int))               \
	X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (handle))                                        \
	X(cuMemAlloc, cuMemAlloc_v2, 3020, (ptr *, size_t))                                        \
	X(cuMemFree, cuMemFree_v2, 3020, (ptr))                                                    \
	X(cuMemHostAlloc, cuMemHostAlloc, 2020, (void **, size_t, unsigned))                       \
	X(cuMemFreeHost, cuMemFreeHost, 2000, (void *))                                            \
	X(cuStreamCreate, cuStreamCreate, 2000, (handle *, unsigned))                              \
	X(cuStreamDestroy, cuStreamDestroy_v2, 4000, (handle))                                     \
	X(cuStreamSynchronize, cuStreamSynchronize, 2000, (handle))                                \
	X(cuEventCreate, cuEventCreate, 2000, (handle *, unsigned))                                \
	X(cuEventRecord, cuEventRecord, 2000, (handle, handle))                                    \
	X(cuEventSynchronize, cuEventSynchronize, 2000, (handle))                                  \
	X(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020, (ptr, const void *, size_t))                        \
	X(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020, (void *, ptr, size_t))                              \
	X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020, (ptr, const void *, size_t, handle))      \
	X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020, (ptr, ptr, size_t, handle))               \
	X(cuMemcpyAsync, cuMemcpyAsync, 4000, (ptr, ptr, size_t, handle))                          \
	X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020, (const pitched *, handle))                    \
	X(cuMemsetD8Async, cuMemsetD8Async, 3020, (ptr, unsigned char, size_t, handle))            \
	X(cuMemsetD32Async, cuMemsetD32Async, 3020, (ptr, unsigned, size_t, handle))               \
	X(cuModuleLoadData, cuModuleLoadData, 2000, (handle *, const void *))                      \
	X(cuModuleGetFunction, cuModuleGetFunction, 2000, (handle *, handle, const char *))        \
	X(cuModuleUnload, cuModuleUnload, 2000, (handle))                                          \
	X(cuLaunchKernel, cuLaunchKernel, 4000,                                                    \
	  (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle,   \
	   void **, void **))                                                                      \
	X(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010, (handle, int))                     \
	X(cuStreamEndCapture, cuStreamEndCapture, 10000, (handle, handle *))                       \
	X(cuGraphInstantiate, cuGraphInstantiateWithFlags, 12000, (handle *, handle, uint64_t))    \
	X(cuGraphLaunch, cuGraphLaunch, 10000, (handle, handle))                                   \
	X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, (handle))

#ifdef LINKED
#define X(name, exported, version, parameters)                                                     \
	extern int exported parameters;                                                            \
	static int(*const name##_) parameters = exported;
#else
#define X(name, exported, version, parameters) static int(*name##_) parameters;
#endif
FUNCTIONS(X)
#undef X

#ifndef LINKED
typedef int (*getproc)(const char *, void **, int, uint64_t, int *);

static struct {
	char name[96]; /* with its ending */
	void *found;
} replayed[500];

/* Makes every lookup of the list; what was asked for by its exported name is kept. */
static int replay(void *driver, getproc get, const char *path)
{
	FILE *list = fopen(path, "r");
	char line[256], name[64], ending[32];
	unsigned long long flags;
	int version, status, n = 0;

	while (list && fgets(line, sizeof(line), list)) {
		ending[0] = '\0';
		if (*line == '#' ||
		    sscanf(line, "%63s %d %llu %31s", name, &version, &flags, ending) < 3)
			continue;
		if (!strcmp(name, "\"\""))
			name[0] = '\0';
		void **found = &replayed[n].found;
		*found = &replayed;
		snprintf(replayed[n++].name, sizeof(replayed[0].name), "%s%s", name, ending);
		if (!get)
			*found = *name ? dlsym(driver, replayed[n - 1].name) : NULL;
		else if (get(name, found, version, flags, &status) || (!*name && *found))
			return printf("%s: %p\n", name, *found), 0;
	}
	if (list)
		fclose(list);
	printf("%d lookups\n", n);
	return n;
}

static void *of_replay(const char *exported, int per_thread)
{
	static const char *const ending[] = {"", "_ptsz", "_ptds"};
	void *found = NULL;
	char name[64];

	for (int e = 0; e < (per_thread ? 3 : 1); e++) {
		snprintf(name, sizeof(name), "%s%s", exported, ending[e]);
		for (int i = 0; *replayed[i].name; i++)
			if (!strcmp(replayed[i].name, name))
				found = replayed[i].found;
	}
	return found;
}

static int find(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "dlsym";
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	uint64_t flags = !strcmp(argv[argc - 1], "per-thread") ? 2 : 0;
	int by_name = strstr(how, "dlsym") != NULL;
	void *found;
	int status;

	if (!driver)
		return 0;
	getproc get = by_name ? NULL : (getproc)dlsym(driver, "cuGetProcAddress_v2");
	if (!strncmp(how, "replay", 6) && (argc < 3 || !replay(driver, get, argv[2])))
		return 0;
#define X(name, exported, version, parameters)                                                     \
	found = of_replay(#exported, flags != 0);                                                  \
	if (!found && by_name && flags)                                                            \
		found = dlsym(driver, #exported "_ptsz");                                          \
	if (!found && by_name)                                                                     \
		found = dlsym(driver, #exported);                                                  \
	if (!found && !by_name)                                                                    \
		get(#name, &found, flags &&version < 7000 ? 7000 : version, flags, &status);       \
	name##_ = (int(*) parameters)found;                                                        \
	if (!found)                                                                                \
		return printf("no %s\n", #name), 0;
	FUNCTIONS(X)
#undef X
	return 1;
}
#endif

#define DO(name, ...)                                                                              \
	do {                                                                                       \
		int result_ = name##_(__VA_ARGS__);                                                \
		if (result_)                                                                       \
			printf("line %d: %s: %d\n", __LINE__, #name, result_), exit(1);            \
	} while (0)

enum { BYTES = 1 << 16 };
static const char ptx[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .entry spin(.param .u64 ns)\n{ ret; }\n"
	".visible .entry a_kernel_with_a_name_longer_than_one_part_of_a_record(.param .u64 ns)\n"
	"{ ret; }\n";

static handle stream, spin, longer;
static ptr memory;
static char *host;

static void launch(handle function, handle on, unsigned grid)
{
	uint64_t ns = 20000;
	void *arguments[] = {&ns, NULL};

	DO(cuLaunchKernel, function, grid, 2, 3, 32, 4, 1, 128, on, arguments, NULL);
}

static void step(int i)
{
	pitched rows = {.src_type = 1,
			.src_host = host,
			.src_pitch = 256,
			.dst_type = 2,
			.dst_device = memory,
			.dst_pitch = 512,
			.width = 100,
			.height = 7};

	DO(cuMemcpyHtoD, memory, host, 1000 + (size_t)i);
	DO(cuMemcpyHtoDAsync, memory, host, 5000, stream);
	DO(cuMemcpy2DAsync, &rows, stream);
	DO(cuMemcpyDtoDAsync, memory, memory + BYTES / 2, 300, stream);
	DO(cuMemcpyAsync, memory, (ptr)(uintptr_t)host, 400, NULL);
	DO(cuMemsetD8Async, memory, 1, 60, stream);
	DO(cuMemsetD32Async, memory, 1, 70, NULL);
	launch(spin, stream, 1);
	launch(longer, NULL, 70000);
	DO(cuStreamSynchronize, stream);
	DO(cuMemcpyDtoH, host, memory, 77);
	if (cuMemcpyHtoD_(0, NULL, 10) == 0)
		exit(1);
}

static void *other_thread(void *context)
{
	DO(cuCtxSetCurrent, context);
	for (int i = 0; i < 5; i++) {
		launch(spin, stream, 2);
		DO(cuMemcpyHtoDAsync, memory, host, 11, NULL);
		DO(cuStreamSynchronize, NULL);
	}
	return NULL;
}

static void captured(void)
{
	handle graph, exec;

	DO(cuStreamBeginCapture, stream, 2);
	launch(spin, stream, 5);
	DO(cuMemcpyHtoDAsync, memory, host, 4321, stream);
	DO(cuMemsetD8Async, memory, 1, 60, stream);
	DO(cuStreamEndCapture, stream, &graph);
	DO(cuGraphInstantiate, &exec, graph, 0);
	for (int i = 0; i < 3; i++)
		DO(cuGraphLaunch, exec, stream);
	DO(cuStreamSynchronize, stream);
	DO(cuGraphExecDestroy, exec);
}

int main(int argc, char **argv)
{
	handle context, module, event;
	void *pinned;
	pthread_t thread;

#ifdef LINKED
	(void)argc;
	(void)argv;
#else
	if (!find(argc, argv))
		return 1;
#endif
	host = malloc(BYTES);
	memset(host, 1, BYTES);
	DO(cuInit, 0);
	DO(cuDevicePrimaryCtxRetain, &context, 0);
	DO(cuCtxSetCurrent, context);
	DO(cuMemAlloc, &memory, BYTES);
	DO(cuMemHostAlloc, &pinned, 4096, 0);
	DO(cuStreamCreate, &stream, 1);
	DO(cuModuleLoadData, &module, ptx);
	DO(cuModuleGetFunction, &spin, module, "spin");
	DO(cuModuleGetFunction, &longer, module,
	   "a_kernel_with_a_name_longer_than_one_part_of_a_record");
	DO(cuEventCreate, &event, 0);
	for (int i = 0; i < 10; i++)
		step(i);
	DO(cuMemcpyHtoD, memory, pinned, 2222);
	DO(cuEventRecord, event, stream);
	DO(cuEventSynchronize, event);
	pthread_create(&thread, NULL, other_thread, context);
	pthread_join(thread, NULL);
	captured();
	DO(cuMemFreeHost, pinned);
	DO(cuStreamDestroy, stream);
	DO(cuModuleUnload, module);
	DO(cuMemFree, memory);
	return 0;
}
