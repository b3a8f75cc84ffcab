/*
 * Like TensorFlow's wheel: defines the driver's names itself, as functions that open the driver at
 * their first call; its own calls go through its PLT, so that a preload's functions are reached
 * first.
 */
#include <dlfcn.h>
#include <stddef.h>

int trampoline_calls;

static void *resolve(const char *name)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	trampoline_calls++;
	return handle ? dlsym(handle, name) : NULL;
}

int cuInit(unsigned flags)
{
	int (*real)(unsigned) = (int (*)(unsigned))resolve("cuInit");
	return real ? real(flags) : 303;
}

int cuMemAlloc_v2(unsigned long long *out, size_t bytes)
{
	int (*real)(unsigned long long *, size_t) =
		(int (*)(unsigned long long *, size_t))resolve("cuMemAlloc_v2");
	return real ? real(out, bytes) : 303;
}

int user_init(void)
{
	return cuInit(0);
}

int user_alloc(unsigned long long *out)
{
	return cuMemAlloc_v2(out, 64);
}
