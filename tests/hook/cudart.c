/*
 * A program on NVIDIA's runtime library: cudart LIBRARY... calls each as programs do and prints
 * what comes back. LIBRARY:FUNCTION is one with a runtime inside, whose FUNCTION makes a handle.
 * "-" is a runtime linked into this program. A static runtime hides its names: where it is linked
 * in, a pointer rt_<name> says where each function is. Then it copies once through the driver, so
 * that there is something to record.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *handle, const char *name)
{
	void *found = handle ? dlsym(handle, name) : NULL;

	if (!found) {
		printf("%s: %s\n", name, dlerror());
		exit(2);
	}
	return found;
}

static void *function(void *handle, const char *name)
{
	char pointer[64] = "rt_";
	void **linked = handle ? dlsym(handle, strcat(pointer, name)) : NULL;

	return linked ? *linked : need(handle, name);
}

static void runtime(const char *path)
{
	void *lib = dlopen(strcmp(path, "-") ? path : NULL, RTLD_NOW | RTLD_LOCAL);
	int (*count)(int *) = (int (*)(int *))function(lib, "cudaGetDeviceCount");
	int (*alloc)(void **, size_t) = (int (*)(void **, size_t))function(lib, "cudaMalloc");
	int (*copy)(void *, const void *, size_t, int) =
		(int (*)(void *, const void *, size_t, int))function(lib, "cudaMemcpy");
	int (*create)(void **) = (int (*)(void **))function(lib, "cudaStreamCreate");
	int (*version)(int *) = (int (*)(int *))function(lib, "cudaRuntimeGetVersion");
	int (*driver)(int *) = (int (*)(int *))function(lib, "cudaDriverGetVersion");
	int (*last)(void) = (int (*)(void))function(lib, "cudaGetLastError");
	int devices = -1, runtime_version = 0, driver_version = 0;
	void *memory = NULL, *stream = NULL;
	char bytes[16] = "";
	const char *slash = strrchr(path, '/');

	printf("%s:", slash ? slash + 1 : path);
	printf(" count %d", count(&devices));
	printf(" (%d) malloc %d", devices, alloc(&memory, 64));
	printf(" copy %d", copy(memory, bytes, sizeof(bytes), 1));
	printf(" stream %d", create(&stream));
	printf(" version %d", version(&runtime_version));
	printf(" (%d) driver %d", runtime_version, driver(&driver_version));
	printf(" (%d) last %d\n", driver_version, last());
}

static void inside(char *path, char *name)
{
	*name++ = '\0';
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL), *made = NULL;
	int (*make)(void **, int, void *) = (int (*)(void **, int, void *))need(lib, name);

	printf("%s: %d\n", name, make(&made, 1, NULL));
}

static int copy_once(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;
	int (*init)(unsigned) = (int (*)(unsigned))need(driver, "cuInit");
	int (*retain)(void **, int) =
		(int (*)(void **, int))need(driver, "cuDevicePrimaryCtxRetain");
	int (*current)(void *) = (int (*)(void *))need(driver, "cuCtxSetCurrent");
	int (*alloc)(unsigned long long *, size_t) =
		(int (*)(unsigned long long *, size_t))need(driver, "cuMemAlloc_v2");
	int (*copy)(unsigned long long, const void *, size_t) =
		(int (*)(unsigned long long, const void *, size_t))need(driver, "cuMemcpyHtoD_v2");
	unsigned long long memory;

	return init(0) || retain(&context, 0) || current(context) || alloc(&memory, 64) ||
	       copy(memory, "0123456789abcdef", 16);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *name = strchr(argv[i], ':');
		if (name)
			inside(argv[i], name);
		else
			runtime(argv[i]);
	}
	printf("driver: %d\n", copy_once());
	return 0;
}
