/* What one would write to record launches with LTTng-UST: a preloaded library with a tracepoint before and after the call. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_calls.h"

#include <dlfcn.h>

typedef int (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			 unsigned, void *, void **, void **);

static launch_fn next;

__attribute__((constructor)) static void find(void)
{
	*(void **)&next = dlsym(RTLD_NEXT, "cuLaunchKernel");
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		   unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	int result;

	lttng_ust_tracepoint(calls, launch_entry, (uint64_t)f, gx * gy * gz, bx * by * bz,
			     (uint64_t)stream);
	result = next(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
	lttng_ust_tracepoint(calls, launch_exit, result);
	return result;
}
