/* A library that is linked to the driver; opened with RTLD_DEEPBIND, it finds the driver's
 * functions before any preload's. */
#include <stddef.h>

typedef unsigned long long ptr;

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(ptr *memory, size_t bytes);
int cuMemcpyHtoD_v2(ptr to, const void *from, size_t bytes);

int deeplinked_run(void)
{
	char bytes[100] = "";
	void *context;
	ptr memory;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	    cuMemAlloc_v2(&memory, sizeof(bytes)))
		return 2;
	for (size_t i = 1; i <= 40; i++)
		if (cuMemcpyHtoD_v2(memory, bytes, 2 * i))
			return 3;
	return 0;
}
