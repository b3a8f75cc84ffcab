/*
 * A driver newer than every header: unknown names, new versions of common functions, and two names
 * for one function. The Makefile also makes cuEventDestroy an alias of cuEventDestroy_v2.
 */
#include "sim/gpu/api.h"
#include "sim/gpu/entry/variant.h"

enum { FUTURE = 14000 };

int sim_variant_version = FUTURE;

static CUresult operation(struct sim_call *c, int *out)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = FUTURE;
	return CUDA_SUCCESS;
}

/* All launch parameters in one struct. */
static CUresult launch(struct sim_call *c, const CUDA_KERNEL_NODE_PARAMS *p, CUstream h,
		       unsigned long long flags)
{
	return p && !flags ? sim_launch_run(c, p, h) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult create(struct sim_call *c, CUevent *out, unsigned flags, int priority)
{
	extern CUresult cuEventCreate(CUevent * e, unsigned flags);
	(void)c;
	return priority ? CUDA_ERROR_INVALID_VALUE : cuEventCreate(out, flags);
}

SIM_API(cuFutureOperation, SIM_NEED_INIT, operation, (int *out), (out))
/* gcc warns about an alias without its target's attributes, which clang 14 does not know. */
#if __has_attribute(copy)
#define SAME(name) alias(#name), copy(name)
#else
#define SAME(name) alias(#name)
#endif
SIM_EXPORTED CUresult cuFutureOperationAlias(int *out) __attribute__((SAME(cuFutureOperation)));
SIM_API(cuEventCreate_v2, SIM_NEED_CTX, create, (CUevent * e, unsigned flags, int priority),
	(e, flags, priority))
SIM_API_PT(cuLaunchKernel_v2, _ptsz, SIM_NEED_INIT, launch,
	   (const CUDA_KERNEL_NODE_PARAMS *p, CUstream s, unsigned long long flags), (p, s, flags))

const struct sim_proc sim_variant_procs[] = {
	{"cuFutureOperation", "cuFutureOperation", FUTURE, 0, (void *)cuFutureOperation},
	{"cuFutureOperationAlias", "cuFutureOperationAlias", FUTURE, 0,
	 (void *)cuFutureOperationAlias},
	{"cuEventCreate_v2", "cuEventCreate", FUTURE, 0, (void *)cuEventCreate_v2},
	{"cuLaunchKernel_v2", "cuLaunchKernel", FUTURE, 0, (void *)cuLaunchKernel_v2},
	{"cuLaunchKernel_v2_ptsz", "cuLaunchKernel", FUTURE, 1, (void *)cuLaunchKernel_v2_ptsz},
	{0},
};
