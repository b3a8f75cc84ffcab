/* Launch functions of the first CUDA versions, where shape and parameters are set on the kernel
 * before, and the cooperative launch on several devices. */
#include "sim/gpu/api.h"

#include <stdlib.h>
#include <string.h>

static CUresult block_shape(struct sim_call *c, CUfunction f, int x, int y, int z)
{
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (x < 1 || y < 1 || z < 1)
		return CUDA_ERROR_INVALID_VALUE;
	f->block[0] = (unsigned)x;
	f->block[1] = (unsigned)y;
	f->block[2] = (unsigned)z;
	return CUDA_SUCCESS;
}

static CUresult shared_size(struct sim_call *c, CUfunction f, unsigned n)
{
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	f->legacy_shared = n;
	return CUDA_SUCCESS;
}

enum { MAX_PARAMS = 4096 };

static CUresult param_bytes(struct sim_call *c, CUfunction f, int off, const void *p, unsigned n)
{
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (off < 0 || !p || n > MAX_PARAMS || (unsigned)off > MAX_PARAMS - n)
		return CUDA_ERROR_INVALID_VALUE;
	if (!f->legacy_args)
		f->legacy_args = calloc(1, MAX_PARAMS);
	memcpy(f->legacy_args + off, p, n);
	return CUDA_SUCCESS;
}

static CUresult param_int(struct sim_call *c, CUfunction f, int off, unsigned v)
{
	return param_bytes(c, f, off, &v, sizeof(v));
}

static CUresult param_float(struct sim_call *c, CUfunction f, int off, float v)
{
	return param_bytes(c, f, off, &v, sizeof(v));
}

static CUresult param_size(struct sim_call *c, CUfunction f, unsigned n)
{
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (n > MAX_PARAMS)
		return CUDA_ERROR_INVALID_VALUE;
	f->nlegacy = n;
	return CUDA_SUCCESS;
}

static CUresult grid_async(struct sim_call *c, CUfunction f, int x, int y, CUstream h)
{
	static char none[MAX_PARAMS];
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (x < 1 || y < 1)
		return CUDA_ERROR_INVALID_VALUE;
	void *extra[] = {(void *)SIM_LAUNCH_PARAM_POINTER, f->legacy_args ? f->legacy_args : none,
			 (void *)SIM_LAUNCH_PARAM_SIZE, &f->nlegacy, (void *)SIM_LAUNCH_PARAM_END};
	CUDA_KERNEL_NODE_PARAMS p = {.func = f,
				     .gridDimX = (unsigned)x,
				     .gridDimY = (unsigned)y,
				     .gridDimZ = 1,
				     .blockDimX = f->block[0],
				     .blockDimY = f->block[1],
				     .blockDimZ = f->block[2],
				     .sharedMemBytes = f->legacy_shared,
				     .extra = extra};
	return sim_launch_run(c, &p, h);
}

static CUresult grid(struct sim_call *c, CUfunction f, int x, int y)
{
	return grid_async(c, f, x, y, NULL);
}

static CUresult one(struct sim_call *c, CUfunction f)
{
	return grid_async(c, f, 1, 1, NULL);
}

typedef struct {
	CUfunction function;
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	void **kernelParams;
} CUDA_LAUNCH_PARAMS;

static CUresult several(struct sim_call *c, CUDA_LAUNCH_PARAMS *list, unsigned n, unsigned flags)
{
	enum { ALL_FLAGS = 3 };
	CUresult r = CUDA_SUCCESS;
	if (!list || !n || n > (unsigned)sim_cfg.devices || flags > ALL_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n && !r; i++) {
		const CUDA_LAUNCH_PARAMS *l = &list[i];
		CUDA_KERNEL_NODE_PARAMS p = {.func = l->function,
					     .gridDimX = l->gridDimX,
					     .gridDimY = l->gridDimY,
					     .gridDimZ = l->gridDimZ,
					     .blockDimX = l->blockDimX,
					     .blockDimY = l->blockDimY,
					     .blockDimZ = l->blockDimZ,
					     .sharedMemBytes = l->sharedMemBytes,
					     .kernelParams = l->kernelParams};
		r = l->hStream ? sim_launch_run(c, &p, l->hStream) : CUDA_ERROR_INVALID_HANDLE;
	}
	return r;
}

SIM_API(cuFuncSetBlockShape, SIM_NEED_CTX, block_shape, (CUfunction f, int x, int y, int z),
	(f, x, y, z))
SIM_API(cuFuncSetSharedSize, SIM_NEED_CTX, shared_size, (CUfunction f, unsigned n), (f, n))
SIM_API(cuParamSetSize, SIM_NEED_CTX, param_size, (CUfunction f, unsigned n), (f, n))
SIM_API(cuParamSeti, SIM_NEED_CTX, param_int, (CUfunction f, int off, unsigned v), (f, off, v))
SIM_API(cuParamSetf, SIM_NEED_CTX, param_float, (CUfunction f, int off, float v), (f, off, v))
SIM_API(cuParamSetv, SIM_NEED_CTX, param_bytes, (CUfunction f, int off, const void *p, unsigned n),
	(f, off, p, n))
SIM_API(cuLaunch, SIM_NEED_CTX, one, (CUfunction f), (f))
SIM_API(cuLaunchGrid, SIM_NEED_CTX, grid, (CUfunction f, int x, int y), (f, x, y))
SIM_API(cuLaunchGridAsync, SIM_NEED_CTX, grid_async, (CUfunction f, int x, int y, CUstream s),
	(f, x, y, s))
SIM_API(cuLaunchCooperativeKernelMultiDevice, SIM_NEED_INIT, several,
	(CUDA_LAUNCH_PARAMS * list, unsigned n, unsigned flags), (list, n, flags))
