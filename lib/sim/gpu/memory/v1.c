/*
 * Functions of the first CUDA versions, with 32-bit device pointers and sizes. cuMemAlloc's memory
 * is in the first 2 GiB, so that pointers fit; sizes that do not fit are clamped. Plain copies and
 * sets are beside their newer variants.
 */
#include "sim/gpu/objects.h"

static uint32_t narrow(size_t n)
{
	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static CUresult alloc_host(struct sim_call *c, void **out, unsigned n)
{
	return sim_host_alloc(c, out, n, 0);
}

static CUresult alloc_pitch(struct sim_call *c, uint32_t *out, unsigned *pitch, unsigned w,
			    unsigned h, unsigned e)
{
	CUdeviceptr p;
	size_t row;
	CUresult r = sim_mem_pitch(c, out ? &p : NULL, pitch ? &row : NULL, w, h, e, true);
	if (!r) {
		*out = (uint32_t)p;
		*pitch = (unsigned)row;
	}
	return r;
}

static CUresult address_range(struct sim_call *c, uint32_t *base, unsigned *n, uint32_t p)
{
	CUdeviceptr at;
	size_t size;
	CUresult r = sim_mem_range(c, &at, &size, p);
	if (!r && base)
		*base = (uint32_t)at;
	if (!r && n)
		*n = narrow(size);
	return r;
}

static CUresult info(struct sim_call *c, unsigned *available, unsigned *total)
{
	size_t a, t;
	CUresult r = sim_mem_info(c, &a, &t);
	if (!r && available)
		*available = narrow(a);
	if (!r && total)
		*total = narrow(t);
	return r;
}

static CUresult host_pointer(struct sim_call *c, uint32_t *out, void *p, unsigned flags)
{
	CUdeviceptr d;
	CUresult r = sim_host_pointer(c, out ? &d : NULL, p, flags);
	if (!r && d > UINT32_MAX)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = (uint32_t)d;
	return r;
}

static CUresult total_memory(struct sim_call *c, unsigned *n, CUdevice d)
{
	(void)c;
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*n = narrow(sim_cfg.total_memory);
	return CUDA_SUCCESS;
}

typedef struct {
	unsigned srcXInBytes, srcY;
	int srcMemoryType;
	const void *srcHost;
	uint32_t srcDevice;
	CUarray srcArray;
	unsigned srcPitch, dstXInBytes, dstY;
	int dstMemoryType;
	void *dstHost;
	uint32_t dstDevice;
	CUarray dstArray;
	unsigned dstPitch, WidthInBytes, Height;
} CUDA_MEMCPY2D_v1;

static CUresult run_2d(struct sim_call *c, const CUDA_MEMCPY2D_v1 *p, CUstream h, bool async)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY2D q = {SIM_COPY_FIELDS(p)};
	return sim_copy_2d(c, &q, h, async);
}

static CUresult copy_2d(struct sim_call *c, const CUDA_MEMCPY2D_v1 *p)
{
	return run_2d(c, p, NULL, false);
}

static CUresult copy_2d_async(struct sim_call *c, const CUDA_MEMCPY2D_v1 *p, CUstream h)
{
	return run_2d(c, p, h, true);
}

typedef struct {
	unsigned srcXInBytes, srcY, srcZ, srcLOD;
	int srcMemoryType;
	const void *srcHost;
	uint32_t srcDevice;
	CUarray srcArray;
	void *reserved0;
	unsigned srcPitch, srcHeight, dstXInBytes, dstY, dstZ, dstLOD;
	int dstMemoryType;
	void *dstHost;
	uint32_t dstDevice;
	CUarray dstArray;
	void *reserved1;
	unsigned dstPitch, dstHeight, WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_v1;

static CUresult run_3d(struct sim_call *c, const CUDA_MEMCPY3D_v1 *p, CUstream h, bool async)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D q = {SIM_COPY_FIELDS(p),	      .srcZ = p->srcZ,	.srcLOD = p->srcLOD,
			   .srcHeight = p->srcHeight, .dstZ = p->dstZ,	.dstLOD = p->dstLOD,
			   .dstHeight = p->dstHeight, .Depth = p->Depth};
	return sim_copy_3d(c, &q, h, async);
}

static CUresult copy_3d(struct sim_call *c, const CUDA_MEMCPY3D_v1 *p)
{
	return run_3d(c, p, NULL, false);
}

static CUresult copy_3d_async(struct sim_call *c, const CUDA_MEMCPY3D_v1 *p, CUstream h)
{
	return run_3d(c, p, h, true);
}

SIM_API(cuMemAllocHost, SIM_NEED_CTX, alloc_host, (void **p, unsigned n), (p, n))
SIM_API(cuMemAllocPitch, SIM_NEED_CTX, alloc_pitch,
	(uint32_t * p, unsigned *pitch, unsigned w, unsigned h, unsigned e), (p, pitch, w, h, e))
SIM_API(cuMemFree, SIM_NEED_INIT, sim_mem_free, (uint32_t p), (p))
SIM_API(cuMemGetAddressRange, SIM_NEED_CTX, address_range,
	(uint32_t * base, unsigned *n, uint32_t p), (base, n, p))
SIM_API(cuMemGetInfo, SIM_NEED_CTX, info, (unsigned *available, unsigned *total),
	(available, total))
SIM_API(cuMemHostGetDevicePointer, SIM_NEED_CTX, host_pointer,
	(uint32_t * d, void *p, unsigned flags), (d, p, flags))
SIM_API(cuDeviceTotalMem, SIM_NEED_INIT, total_memory, (unsigned *n, CUdevice d), (n, d))
SIM_API(cuMemcpy2D, SIM_NEED_CTX, copy_2d, (const CUDA_MEMCPY2D_v1 *p), (p))
SIM_API(cuMemcpy2DUnaligned, SIM_NEED_CTX, copy_2d, (const CUDA_MEMCPY2D_v1 *p), (p))
SIM_API(cuMemcpy2DAsync, SIM_NEED_INIT, copy_2d_async, (const CUDA_MEMCPY2D_v1 *p, CUstream s),
	(p, s))
SIM_API(cuMemcpy3D, SIM_NEED_CTX, copy_3d, (const CUDA_MEMCPY3D_v1 *p), (p))
SIM_API(cuMemcpy3DAsync, SIM_NEED_INIT, copy_3d_async, (const CUDA_MEMCPY3D_v1 *p, CUstream s),
	(p, s))
