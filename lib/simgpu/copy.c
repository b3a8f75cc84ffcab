/*
 * Copies. What blocks the caller follows the synchronisation rules of the driver documentation:
 *   host memory   synchronous call                  asynchronous call
 *   H2D pageable  waits for the stream, then        staged; waits for the copy if it is larger
 *                 as the asynchronous call          than the staging buffer
 *   H2D pinned    waits for the copy                returns at once
 *   D2H pageable  waits for the copy                waits for the copy
 *   D2H pinned    waits for the copy                returns at once
 *   D2D, peer     returns at once                   returns at once
 */
#include "simgpu/api.h"

#include <stdlib.h>
#include <string.h>

static const char *const dir_names[] = {"H2D", "D2H", "D2D", "P2P", "H2H"};

static bool on_host(bool known, const struct sim_range *r)
{
	return !known || r->kind == SIM_M_PINNED || r->kind == SIM_M_REGISTERED;
}

/* Sets direction, engine and pageable of w->copy from what its pointers are. */
static void classify(struct sim_work *w, struct sim_ctx *ctx)
{
	struct sim_range src, dst;
	bool ksrc = sim_mem_find(w->copy.src, &src), kdst = sim_mem_find(w->copy.dst, &dst);
	bool hsrc = on_host(ksrc, &src), hdst = on_host(kdst, &dst);
	w->kind = SIM_K_COPY;
	w->copy.pageable = (hsrc && !ksrc) || (hdst && !kdst);
	if (hsrc && hdst) {
		w->copy.dir = SIM_H2H;
		w->engine = SIM_ENG_D2H;
		w->dev = ctx ? ctx->dev : &sim_dev[0];
	} else if (hsrc) {
		w->copy.dir = SIM_H2D;
		w->engine = SIM_ENG_H2D;
		w->dev = dst.dev;
	} else if (hdst) {
		w->copy.dir = SIM_D2H;
		w->engine = SIM_ENG_D2H;
		w->dev = src.dev;
	} else {
		w->copy.dir = src.dev == dst.dev ? SIM_D2D : SIM_P2P;
		w->engine = SIM_ENG_D2D;
		w->dev = src.dev;
	}
}

static bool must_wait(const struct sim_copy *k, bool async)
{
	if (k->dir == SIM_D2D || k->dir == SIM_P2P)
		return false;
	return k->pageable ? !k->staged : !async;
}

/* Runs the classified copy w on stream h. */
static CUresult run(struct sim_call *c, CUstream h, struct sim_work *w, bool async)
{
	struct sim_stream *s;
	struct sim_op *op = NULL;
	struct sim_copy *k = &w->copy;
	size_t n = sim_copy_bytes(k);
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	c->bytes = n;
	c->dir = dir_names[k->dir];
	if (k->dir != SIM_D2D && k->dir != SIM_P2P)
		c->host = k->pageable ? "pageable" : "pinned";
	if (!n)
		return CUDA_SUCCESS;
	if (k->pageable && k->dir == SIM_H2D && !s->capture) {
		if (!async)
			sim_stream_drain(s);
		if (n <= sim_cfg.staging && k->height == 1 && k->depth == 1) {
			k->staged = malloc(n);
			memcpy(k->staged, k->src, n);
		}
	}
	sim_host_cost(sim_cfg.launch_ns);
	bool wait = must_wait(k, async);
	r = sim_submit(c, s, w, wait ? &op : NULL);
	sim_op_wait(op);
	return r ? r : s->ctx->sticky;
}

/* any: the call's name does not say the direction. */
static CUresult linear(struct sim_call *c, uintptr_t dst, uintptr_t src, size_t n, CUstream h,
		       bool async, int want)
{
	struct sim_work w = {.copy = {.dst = (char *)dst,
				      .src = (char *)src,
				      .width = n,
				      .height = 1,
				      .depth = 1}};
	if (n && (!dst || !src))
		return CUDA_ERROR_INVALID_VALUE;
	classify(&w, sim_ctx_current());
	enum sim_dir d = w.copy.dir == SIM_P2P ? SIM_D2D : w.copy.dir;
	if (n && want >= 0 && (int)d != want) {
		/* Device calls accept mapped host memory; what they name as device must be known.
		 */
		struct sim_range r;
		bool ok = (want == SIM_D2H || sim_mem_find((void *)dst, &r)) &&
			  (want == SIM_H2D || sim_mem_find((void *)src, &r));
		if (!ok)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return run(c, h, &w, async);
}

enum { ANY = -1 };

static CUresult htod(struct sim_call *c, CUdeviceptr d, const void *s, size_t n)
{
	return linear(c, d, (uintptr_t)s, n, NULL, false, SIM_H2D);
}

static CUresult dtoh(struct sim_call *c, void *d, CUdeviceptr s, size_t n)
{
	return linear(c, (uintptr_t)d, s, n, NULL, false, SIM_D2H);
}

static CUresult dtod(struct sim_call *c, CUdeviceptr d, CUdeviceptr s, size_t n)
{
	return linear(c, d, s, n, NULL, false, SIM_D2D);
}

static CUresult any(struct sim_call *c, CUdeviceptr d, CUdeviceptr s, size_t n)
{
	return linear(c, d, s, n, NULL, false, ANY);
}

static CUresult htod_async(struct sim_call *c, CUdeviceptr d, const void *s, size_t n, CUstream h)
{
	return linear(c, d, (uintptr_t)s, n, h, true, SIM_H2D);
}

static CUresult dtoh_async(struct sim_call *c, void *d, CUdeviceptr s, size_t n, CUstream h)
{
	return linear(c, (uintptr_t)d, s, n, h, true, SIM_D2H);
}

static CUresult dtod_async(struct sim_call *c, CUdeviceptr d, CUdeviceptr s, size_t n, CUstream h)
{
	return linear(c, d, s, n, h, true, SIM_D2D);
}

static CUresult any_async(struct sim_call *c, CUdeviceptr d, CUdeviceptr s, size_t n, CUstream h)
{
	return linear(c, d, s, n, h, true, ANY);
}

static CUresult peer(struct sim_call *c, CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc,
		     size_t n)
{
	return dc && sc ? linear(c, d, s, n, NULL, false, SIM_D2D) : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult peer_async(struct sim_call *c, CUdeviceptr d, CUcontext dc, CUdeviceptr s,
			   CUcontext sc, size_t n, CUstream h)
{
	return dc && sc ? linear(c, d, s, n, h, true, SIM_D2D) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_copy_from_3d(struct sim_work *w, const CUDA_MEMCPY3D *p, struct sim_ctx *ctx)
{
	struct sim_copy *k = &w->copy;
	if (p->srcMemoryType == SIM_MEM_ARRAY || p->dstMemoryType == SIM_MEM_ARRAY)
		return CUDA_ERROR_NOT_SUPPORTED;
	const char *src =
		p->srcMemoryType == SIM_MEM_HOST ? p->srcHost : (char *)(uintptr_t)p->srcDevice;
	char *dst = p->dstMemoryType == SIM_MEM_HOST ? p->dstHost : (char *)(uintptr_t)p->dstDevice;
	if (!src || !dst)
		return CUDA_ERROR_INVALID_VALUE;
	memset(w, 0, sizeof(*w));
	k->width = p->WidthInBytes;
	k->height = p->Height;
	k->depth = p->Depth;
	k->spitch = p->srcPitch ? p->srcPitch : p->WidthInBytes + p->srcXInBytes;
	k->dpitch = p->dstPitch ? p->dstPitch : p->WidthInBytes + p->dstXInBytes;
	k->sslice = k->spitch * (p->srcHeight ? p->srcHeight : p->Height + p->srcY);
	k->dslice = k->dpitch * (p->dstHeight ? p->dstHeight : p->Height + p->dstY);
	k->src = src + p->srcXInBytes + p->srcY * k->spitch + p->srcZ * k->sslice;
	k->dst = dst + p->dstXInBytes + p->dstY * k->dpitch + p->dstZ * k->dslice;
	classify(w, ctx);
	return CUDA_SUCCESS;
}

static CUresult run_3d(struct sim_call *c, const CUDA_MEMCPY3D *p, CUstream h, bool async)
{
	struct sim_work w;
	CUresult r = p ? sim_copy_from_3d(&w, p, sim_ctx_current()) : CUDA_ERROR_INVALID_VALUE;
	return r ? r : run(c, h, &w, async);
}

static CUresult run_2d(struct sim_call *c, const CUDA_MEMCPY2D *p, CUstream h, bool async)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D q = {.srcXInBytes = p->srcXInBytes,
			   .srcY = p->srcY,
			   .srcMemoryType = p->srcMemoryType,
			   .srcHost = p->srcHost,
			   .srcDevice = p->srcDevice,
			   .srcPitch = p->srcPitch,
			   .dstXInBytes = p->dstXInBytes,
			   .dstY = p->dstY,
			   .dstMemoryType = p->dstMemoryType,
			   .dstHost = p->dstHost,
			   .dstDevice = p->dstDevice,
			   .dstPitch = p->dstPitch,
			   .WidthInBytes = p->WidthInBytes,
			   .Height = p->Height,
			   .Depth = 1};
	return run_3d(c, &q, h, async);
}

static CUresult copy_2d(struct sim_call *c, const CUDA_MEMCPY2D *p)
{
	return run_2d(c, p, NULL, false);
}

static CUresult copy_2d_async(struct sim_call *c, const CUDA_MEMCPY2D *p, CUstream h)
{
	return run_2d(c, p, h, true);
}

static CUresult copy_3d(struct sim_call *c, const CUDA_MEMCPY3D *p)
{
	return run_3d(c, p, NULL, false);
}

static CUresult copy_3d_async(struct sim_call *c, const CUDA_MEMCPY3D *p, CUstream h)
{
	return run_3d(c, p, h, true);
}

/* ---- sets ---- */
CUresult sim_set_fill(struct sim_work *w, CUdeviceptr dst, size_t pitch, unsigned value,
		      unsigned elem, size_t width, size_t height, struct sim_ctx *ctx)
{
	struct sim_range r;
	if (width && height && !sim_mem_find((void *)(uintptr_t)dst, &r))
		return CUDA_ERROR_INVALID_VALUE;
	if (dst % elem)
		return CUDA_ERROR_INVALID_VALUE;
	memset(w, 0, sizeof(*w));
	w->kind = SIM_K_MEMSET;
	w->engine = SIM_ENG_COMPUTE;
	w->dev = ctx->dev;
	w->set = (struct sim_set){(char *)(uintptr_t)dst, pitch, width, height, value, elem};
	return CUDA_SUCCESS;
}

static CUresult fill(struct sim_call *c, CUdeviceptr d, size_t pitch, unsigned v, unsigned elem,
		     size_t width, size_t height, CUstream h, bool async)
{
	struct sim_work w;
	struct sim_stream *s;
	struct sim_range range;
	struct sim_op *op = NULL;
	CUresult r = sim_stream_get(c, h, &s);
	if (!r)
		r = sim_set_fill(&w, d, pitch, v, elem, width, height, s->ctx);
	if (r)
		return r;
	c->bytes = width * height * elem;
	c->dir = "SET";
	if (!c->bytes)
		return CUDA_SUCCESS;
	bool host = sim_mem_find((void *)(uintptr_t)d, &range) && on_host(true, &range);
	sim_host_cost(sim_cfg.launch_ns);
	r = sim_submit(c, s, &w, host && !async ? &op : NULL);
	sim_op_wait(op);
	return r;
}

#define MEMSET(bits, type)                                                                         \
	static CUresult set##bits(struct sim_call *c, CUdeviceptr d, type v, size_t n)             \
	{                                                                                          \
		return fill(c, d, n * sizeof(type), v, sizeof(type), n, 1, NULL, false);           \
	}                                                                                          \
	static CUresult set##bits##_async(struct sim_call *c, CUdeviceptr d, type v, size_t n,     \
					  CUstream h)                                              \
	{                                                                                          \
		return fill(c, d, n * sizeof(type), v, sizeof(type), n, 1, h, true);               \
	}                                                                                          \
	static CUresult set2_##bits(struct sim_call *c, CUdeviceptr d, size_t pitch, type v,       \
				    size_t w, size_t h)                                            \
	{                                                                                          \
		return fill(c, d, pitch, v, sizeof(type), w, h, NULL, false);                      \
	}                                                                                          \
	static CUresult set2_##bits##_async(struct sim_call *c, CUdeviceptr d, size_t pitch,       \
					    type v, size_t w, size_t h, CUstream s)                \
	{                                                                                          \
		return fill(c, d, pitch, v, sizeof(type), w, h, s, true);                          \
	}                                                                                          \
	SIM_API_PT(cuMemsetD##bits##_v2, _ptds, SIM_NEED_CTX, set##bits,                           \
		   (CUdeviceptr d, type v, size_t n), (d, v, n))                                   \
	SIM_API_PT(cuMemsetD##bits##Async, _ptsz, SIM_NEED_INIT, set##bits##_async,                \
		   (CUdeviceptr d, type v, size_t n, CUstream s), (d, v, n, s))                    \
	SIM_API_PT(cuMemsetD2D##bits##_v2, _ptds, SIM_NEED_CTX, set2_##bits,                       \
		   (CUdeviceptr d, size_t pitch, type v, size_t w, size_t h), (d, pitch, v, w, h)) \
	SIM_API_PT(cuMemsetD2D##bits##Async, _ptsz, SIM_NEED_INIT, set2_##bits##_async,            \
		   (CUdeviceptr d, size_t pitch, type v, size_t w, size_t h, CUstream s),          \
		   (d, pitch, v, w, h, s))

MEMSET(8, uint8_t)
MEMSET(16, uint16_t)
MEMSET(32, uint32_t)

SIM_API_PT(cuMemcpy, _ptds, SIM_NEED_CTX, any, (CUdeviceptr d, CUdeviceptr s, size_t n), (d, s, n))
SIM_API_PT(cuMemcpyAsync, _ptsz, SIM_NEED_INIT, any_async,
	   (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream h), (d, s, n, h))
SIM_API_PT(cuMemcpyHtoD_v2, _ptds, SIM_NEED_CTX, htod, (CUdeviceptr d, const void *s, size_t n),
	   (d, s, n))
SIM_API_PT(cuMemcpyDtoH_v2, _ptds, SIM_NEED_CTX, dtoh, (void *d, CUdeviceptr s, size_t n),
	   (d, s, n))
SIM_API_PT(cuMemcpyDtoD_v2, _ptds, SIM_NEED_CTX, dtod, (CUdeviceptr d, CUdeviceptr s, size_t n),
	   (d, s, n))
SIM_API_PT(cuMemcpyHtoDAsync_v2, _ptsz, SIM_NEED_INIT, htod_async,
	   (CUdeviceptr d, const void *s, size_t n, CUstream h), (d, s, n, h))
SIM_API_PT(cuMemcpyDtoHAsync_v2, _ptsz, SIM_NEED_INIT, dtoh_async,
	   (void *d, CUdeviceptr s, size_t n, CUstream h), (d, s, n, h))
SIM_API_PT(cuMemcpyDtoDAsync_v2, _ptsz, SIM_NEED_INIT, dtod_async,
	   (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream h), (d, s, n, h))
SIM_API_PT(cuMemcpyPeer, _ptds, SIM_NEED_CTX, peer,
	   (CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n), (d, dc, s, sc, n))
SIM_API_PT(cuMemcpyPeerAsync, _ptsz, SIM_NEED_INIT, peer_async,
	   (CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream h),
	   (d, dc, s, sc, n, h))
SIM_API_PT(cuMemcpy2D_v2, _ptds, SIM_NEED_CTX, copy_2d, (const CUDA_MEMCPY2D *p), (p))
SIM_API_PT(cuMemcpy2DUnaligned_v2, _ptds, SIM_NEED_CTX, copy_2d, (const CUDA_MEMCPY2D *p), (p))
SIM_API_PT(cuMemcpy2DAsync_v2, _ptsz, SIM_NEED_INIT, copy_2d_async,
	   (const CUDA_MEMCPY2D *p, CUstream h), (p, h))
SIM_API_PT(cuMemcpy3D_v2, _ptds, SIM_NEED_CTX, copy_3d, (const CUDA_MEMCPY3D *p), (p))
SIM_API_PT(cuMemcpy3DAsync_v2, _ptsz, SIM_NEED_INIT, copy_3d_async,
	   (const CUDA_MEMCPY3D *p, CUstream h), (p, h))
SIM_API_PT(cuMemcpy3DPeer, _ptds, SIM_NEED_CTX, copy_3d, (const CUDA_MEMCPY3D *p), (p))
SIM_API_PT(cuMemcpy3DPeerAsync, _ptsz, SIM_NEED_INIT, copy_3d_async,
	   (const CUDA_MEMCPY3D *p, CUstream h), (p, h))
