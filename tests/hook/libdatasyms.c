/*
 * A library that exports variables named like the driver's functions, as slangpy's does, and fills
 * them from the driver: a preload that exports functions of these names is written to in their
 * place.
 */
#include <dlfcn.h>
#include <stddef.h>

typedef unsigned long long ptr;

int (*cuInit)(unsigned);
int (*cuDevicePrimaryCtxRetain)(void **, int);
int (*cuCtxSetCurrent)(void *);
int (*cuMemAlloc_v2)(ptr *, size_t);
int (*cuMemcpyHtoD_v2)(ptr, const void *, size_t);
int (*cuMemsetD8_v2)(ptr, unsigned char, size_t);
int (*cuMemcpyDtoH_v2)(void *, ptr, size_t);
int (*cuMemFree_v2)(ptr);

#define FILL(name) ((name = (__typeof__(name))dlsym(driver, #name)) != NULL)

int datasyms_run(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;
	char there[100] = "from the host", back[100] = "";
	ptr memory;

	if (!driver || !FILL(cuInit) || !FILL(cuDevicePrimaryCtxRetain) || !FILL(cuCtxSetCurrent) ||
	    !FILL(cuMemAlloc_v2) || !FILL(cuMemcpyHtoD_v2) || !FILL(cuMemsetD8_v2) ||
	    !FILL(cuMemcpyDtoH_v2) || !FILL(cuMemFree_v2))
		return 2;
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	    cuMemAlloc_v2(&memory, sizeof(there)))
		return 3;
	for (size_t i = 1; i <= 20; i++)
		if (cuMemcpyHtoD_v2(memory, there, 5 * i) || cuMemsetD8_v2(memory, 'x', i) ||
		    cuMemcpyDtoH_v2(back, memory, sizeof(back)))
			return 4;
	/* An error is an answer, too. */
	if (cuMemAlloc_v2(NULL, 1) != 1 || cuMemFree_v2(memory))
		return 5;
	return back[0] == 'x' && back[13] == 'x' && back[20] == '\0' ? 0 : 6;
}
