/*
 * A program around libraries of local scope. Arguments: "local LIB" checks lookups in a local
 * scope, "trampolines LIB" calls the driver through functions that the library defines itself and
 * prints the results, "bare" asks the global scope for a driver name and calls it if there is one,
 * "two LIB" counts calls through a second preload.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int trampolines(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	unsigned long long memory = 0;

	if (!handle)
		return 2;
	int (*init)(void) = (int (*)(void))dlsym(handle, "user_init");
	int (*alloc)(unsigned long long *) =
		(int (*)(unsigned long long *))dlsym(handle, "user_alloc");
	printf("init %d\n", init());
	printf("alloc %d\n", alloc(&memory));
	printf("again %d\n", alloc(&memory));
	printf("memory %llx\n", memory);
	return 0;
}

static int local(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*works)(void) = handle ? (int (*)(void))dlsym(handle, "local_scope_works") : NULL;

	return !works || !works();
}

static int bare(void)
{
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(RTLD_DEFAULT, "cuInit");

	return init && init(0) != 303;
}

/*
 * A call to the driver through the global scope. A second preload in front of us sees it; one
 * behind us does not, because a wrapper goes on to the driver itself.
 */
static int two(void)
{
	int (*alloc)(unsigned long long *, size_t);
	int *allocs = dlsym(RTLD_DEFAULT, "next_allocs");
	unsigned long long memory = 0;

	dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	puts("through a wrapped function");
	alloc = (int (*)(unsigned long long *, size_t))dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	return !alloc || alloc(&memory, 64) || memory != 0x1000 || (allocs && *allocs > 1);
}

/* A preload that limits allocations keeps its say. */
static int limited(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*alloc)(unsigned long long *, size_t) =
		(int (*)(unsigned long long *, size_t))dlsym(driver, "cuMemAlloc_v2");
	int *allocs = dlsym(RTLD_DEFAULT, "other_alloc_calls");
	unsigned long long memory = 0;

	return alloc(&memory, 64) != 0 || alloc(&memory, 2000) != 2 || !allocs || *allocs != 2;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "trampolines") && argc > 2)
		return trampolines(argv[2]);
	if (!strcmp(what, "local") && argc > 2)
		return local(argv[2]);
	if (!strcmp(what, "bare"))
		return bare();
	if (!strcmp(what, "two"))
		return two();
	if (!strcmp(what, "limited"))
		return limited();
	return 2;
}
