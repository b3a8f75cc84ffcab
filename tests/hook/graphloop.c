/* Launches one graph of five kernels and a copy to the device over and over: graphloop SECONDS
 * [BYTES [take|capture]], or until SIGTERM. Waits for it each time; then prints how often. take:
 * each tenth of a second 4 MiB of device memory are taken; capture: another stream captures all the
 * time. */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 ns)\n{\n\tret;\n}\n";
static void *cuda;

#define CU(name, types, ...)                                                                       \
	do {                                                                                       \
		int(*f_) types = (int(*) types)dlsym(cuda, #name);                                 \
		int r_ = f_ ? f_(__VA_ARGS__) : -1;                                                \
		if (r_) {                                                                          \
			fprintf(stderr, "graphloop: " #name ": error %d\n", r_);                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1, start = now();
	size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 4096;
	void *context, *module, *function, *stream, *graph, *exec, *host;
	uint64_t device, ns = 200000;
	void *params[] = {&ns};
	bool take = argc > 3 && !strcmp(argv[3], "take");
	double taken = start;
	long n = 0;

	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda)
		return 1;
	CU(cuInit, (unsigned), 0);
	CU(cuCtxCreate_v2, (void **, unsigned, int), &context, 0, 0);
	CU(cuModuleLoadData, (void **, const void *), &module, ptx);
	CU(cuModuleGetFunction, (void **, void *, const char *), &function, module, "spin");
	CU(cuMemAlloc_v2, (uint64_t *, size_t), &device, bytes);
	CU(cuMemHostAlloc, (void **, size_t, unsigned), &host, bytes, 0);
	memset(host, 1, bytes);
	CU(cuStreamCreate, (void **, unsigned), &stream, 1);
	CU(cuStreamBeginCapture_v2, (void *, int), stream, 2);
	CU(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *), device, host, bytes,
	   stream);
	for (int i = 0; i < 5; i++)
		CU(cuLaunchKernel,
		   (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		    void *, void **, void **),
		   function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
	CU(cuStreamEndCapture, (void *, void **), stream, &graph);
	CU(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long), &exec, graph, 0);
	if (argc > 3 && !strcmp(argv[3], "capture")) {
		void *other;
		CU(cuStreamCreate, (void **, unsigned), &other, 1);
		CU(cuStreamBeginCapture_v2, (void *, int), other, 2);
	}
	signal(SIGTERM, on_signal);
	for (; !stop && now() - start < seconds; n++) {
		CU(cuGraphLaunch, (void *, void *), exec, stream);
		CU(cuStreamSynchronize, (void *), stream);
		if (take && now() - taken > 0.1) {
			CU(cuMemAlloc_v2, (uint64_t *, size_t), &device, 4 << 20);
			taken = now();
		}
	}
	printf("%ld\n", n);
	return 0;
}
