/*
 * Steps that each launch kernels of a millisecond and fetch a large result, in a function of its own.
 * tests/analyze/native_lines.py compiles it in several ways, and looks for the line below.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 60
#define BYTES ((size_t)4 << 20)

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 ns)\n{\n\tret;\n}\n";

static void *cuda;

static void *find(const char *name)
{
	void *f = dlsym(cuda, name);

	if (!f) {
		fprintf(stderr, "client_fetch: no %s: %s\n", name, dlerror());
		exit(1);
	}
	return f;
}

static void check(int rc)
{
	if (rc) {
		fprintf(stderr, "client_fetch: error %d\n", rc);
		exit(1);
	}
}

static __attribute__((noinline)) void fetch(void *host, unsigned long long memory)
{
	static int (*copy)(void *, unsigned long long, size_t);

	if (!copy)
		*(void **)&copy = find("cuMemcpyDtoH_v2");
	check(copy(host, memory, BYTES)); /* fetched here */
}

static __attribute__((noinline)) void compute(void *kernel)
{
	static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			     unsigned, void *, void **, void **);
	unsigned long long ns = 1000000;
	void *args[] = {&ns};

	if (!launch)
		*(void **)&launch = find("cuLaunchKernel");
	check(launch(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL));
}

int main(void)
{
	void *context, *module, *kernel, *host = calloc(1, BYTES);
	unsigned long long memory;

	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda || !host) {
		fprintf(stderr, "client_fetch: no driver\n");
		return 1;
	}
	check(((int (*)(unsigned))find("cuInit"))(0));
	check(((int (*)(void **, int))find("cuDevicePrimaryCtxRetain"))(&context, 0));
	check(((int (*)(void *))find("cuCtxSetCurrent"))(context));
	check(((int (*)(void **, const void *))find("cuModuleLoadData"))(&module, ptx));
	check(((int (*)(void **, void *, const char *))find("cuModuleGetFunction"))(&kernel, module,
										    "spin"));
	check(((int (*)(unsigned long long *, size_t))find("cuMemAlloc_v2"))(&memory, BYTES));
	for (int step = 0; step < STEPS; step++) {
		compute(kernel);
		fetch(host, memory);
	}
	printf("%d steps\n", STEPS);
	free(host);
	return 0;
}
