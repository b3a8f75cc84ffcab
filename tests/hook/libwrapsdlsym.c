/* Another preload that wraps dlsym in plain C, as HAMi-core and others do, and answers for one
 * driver name itself. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/arch.h"

int other_dlsym_calls, other_alloc_calls;
static int (*real_alloc)(unsigned long long *, size_t);

static void *next(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);
	if (!real)
		real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", TFH_ARCH_GLIBC);
	return real(handle, name);
}

static int limited_alloc(unsigned long long *out, size_t bytes)
{
	other_alloc_calls++;
	return bytes > 1000 ? 2 : real_alloc(out, bytes);
}

void *dlsym(void *handle, const char *name)
{
	other_dlsym_calls++;
	void *found = next(handle, name);
	if (found && handle != RTLD_NEXT && handle != RTLD_DEFAULT &&
	    !strcmp(name, "cuMemAlloc_v2") && getenv("OTHER_LIMITS")) {
		if (!real_alloc)
			real_alloc = (int (*)(unsigned long long *, size_t))found;
		return (void *)limited_alloc;
	}
	return found;
}
