/*
 * Copies. Blocking follows the synchronisation rules of the driver documentation:
 *   host memory   synchronous call                  asynchronous call
 *   H2D pageable  waits for the stream, then        staged; waits for the copy if it is larger
 *                 like the asynchronous call        than the staging buffer
 *   H2D pinned    waits for the copy                returns at once
 *   D2H pageable  waits for the copy                waits for the copy
 *   D2H pinned    waits for the copy                returns at once
 *   D2D, peer     returns at once                   returns at once
 */
#include "sim/gpu/objects.h"

#include <stdlib.h>
#include <string.h>

static const char *const dir_names[] = {"H2D", "D2H", "D2D", "P2P", "H2H"};

static bool on_host(bool known, const struct sim_range *r)
{
	return !known || r->kind == SIM_M_PINNED || r->kind == SIM_M_REGISTERED;
}

/* Bytes from the start to the end of a side with this pitch and slice. */
static size_t span(const struct sim_copy *k, size_t pitch, size_t slice)
{
	return (k->depth - 1) * slice + (k->height - 1) * pitch + k->width;
}

/* Sets direction, engine and pageable of w->copy according to its pointers. */
CUresult sim_copy_classify(struct sim_work *w, struct sim_ctx *ctx)
{
	const struct sim_copy *k = &w->copy;
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
	if (!sim_copy_bytes(k))
		return CUDA_SUCCESS;
	CUresult r = sim_mem_check(k->src, span(k, k->spitch, k->sslice), false);
	return r ? r : sim_mem_check(k->dst, span(k, k->dpitch, k->dslice), true);
}

static bool must_wait(const struct sim_copy *k, bool async)
{
	if (k->dir == SIM_D2D || k->dir == SIM_P2P)
		return false;
	return k->pageable ? !k->staged : !async;
}

/* Runs the classified copy w on stream h. */
CUresult sim_copy_run(struct sim_call *c, CUstream h, struct sim_work *w, bool async)
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

CUresult sim_linear_copy(struct sim_call *c, const struct sim_linear *l)
{
	struct sim_work w = {.copy = {.dst = (char *)l->dst,
				      .src = (char *)l->src,
				      .width = l->n,
				      .height = 1,
				      .depth = 1}};
	if (l->n && (!l->dst || !l->src))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = sim_copy_classify(&w, sim_ctx_current());
	if (r)
		return r;
	enum sim_dir d = w.copy.dir == SIM_P2P ? SIM_D2D : w.copy.dir;
	if (l->n && l->want >= 0 && (int)d != l->want) {
		/* Device calls accept mapped host memory; addresses passed as device memory must be
		 * known. */
		struct sim_range range;
		bool ok = (l->want == SIM_D2H || sim_mem_find((void *)l->dst, &range)) &&
			  (l->want == SIM_H2D || sim_mem_find((void *)l->src, &range));
		if (!ok)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return sim_copy_run(c, l->stream, &w, l->async);
}

static CUresult linear(struct sim_call *c, uintptr_t dst, uintptr_t src, size_t n, CUstream h,
		       bool async, int want)
{
	struct sim_linear l = {dst, src, n, h, async, want};
	return sim_linear_copy(c, &l);
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

/* One side of a 3D copy: start and strides. */
struct side {
	int type;
	char *base;
	CUarray array;
	size_t x, y, z, lod, pitch, rows, slice;
};

/* Arrays have strides of their own; the copied box must lie inside. */
static CUresult place_in_array(struct side *s, const CUDA_MEMCPY3D *p)
{
	struct sim_array *a = s->array;
	if (sim_mipmap_is(a) && s->lod < a->nlevels)
		a = &a->levels[s->lod];
	else if (!sim_array_is(a) || s->lod)
		return CUDA_ERROR_INVALID_VALUE;
	size_t rows = a->height ? a->height : 1, layers = a->depth ? a->depth : 1;
	if (s->x + p->WidthInBytes > a->pitch || s->y + p->Height > rows ||
	    s->z + p->Depth > layers)
		return CUDA_ERROR_INVALID_VALUE;
	s->pitch = a->pitch;
	s->slice = a->slice;
	s->base = a->data;
	return CUDA_SUCCESS;
}

static CUresult place(struct side *s, const CUDA_MEMCPY3D *p)
{
	if (s->type < SIM_MEM_HOST || s->type > SIM_MEM_UNIFIED || s->x > SIZE_MAX / 2)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->type == SIM_MEM_ARRAY) {
		CUresult r = place_in_array(s, p);
		if (r)
			return r;
	} else {
		if (!s->base || s->lod || (s->pitch && s->pitch < p->WidthInBytes))
			return CUDA_ERROR_INVALID_VALUE;
		if (!s->pitch)
			s->pitch = p->WidthInBytes + s->x;
		s->slice = s->pitch * (s->rows ? s->rows : p->Height + s->y);
	}
	s->base += s->x + s->y * s->pitch + s->z * s->slice;
	return CUDA_SUCCESS;
}

CUresult sim_copy_from_3d(struct sim_work *w, const CUDA_MEMCPY3D *p, struct sim_ctx *ctx)
{
	struct side src = {.type = p->srcMemoryType,
			   .array = p->srcArray,
			   .x = p->srcXInBytes,
			   .y = p->srcY,
			   .z = p->srcZ,
			   .lod = p->srcLOD,
			   .pitch = p->srcPitch,
			   .rows = p->srcHeight};
	struct side dst = {.type = p->dstMemoryType,
			   .array = p->dstArray,
			   .x = p->dstXInBytes,
			   .y = p->dstY,
			   .z = p->dstZ,
			   .lod = p->dstLOD,
			   .pitch = p->dstPitch,
			   .rows = p->dstHeight};
	src.base = src.type == SIM_MEM_HOST ? (char *)p->srcHost : (char *)(uintptr_t)p->srcDevice;
	dst.base = dst.type == SIM_MEM_HOST ? p->dstHost : (char *)(uintptr_t)p->dstDevice;
	CUresult r = place(&src, p);
	if (!r)
		r = place(&dst, p);
	if (r)
		return r;
	memset(w, 0, sizeof(*w));
	w->copy = (struct sim_copy){.dst = dst.base,
				    .src = src.base,
				    .width = p->WidthInBytes,
				    .height = p->Height,
				    .depth = p->Depth,
				    .dpitch = dst.pitch,
				    .dslice = dst.slice,
				    .spitch = src.pitch,
				    .sslice = src.slice};
	return sim_copy_classify(w, ctx);
}

CUresult sim_copy_3d(struct sim_call *c, const CUDA_MEMCPY3D *p, CUstream h, bool async)
{
	struct sim_work w;
	CUresult r = p ? sim_copy_from_3d(&w, p, sim_ctx_current()) : CUDA_ERROR_INVALID_VALUE;
	return r ? r : sim_copy_run(c, h, &w, async);
}

CUresult sim_copy_2d(struct sim_call *c, const CUDA_MEMCPY2D *p, CUstream h, bool async)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D q = {SIM_COPY_FIELDS(p), .Depth = 1};
	return sim_copy_3d(c, &q, h, async);
}

static CUresult copy_2d(struct sim_call *c, const CUDA_MEMCPY2D *p)
{
	return sim_copy_2d(c, p, NULL, false);
}

static CUresult copy_2d_async(struct sim_call *c, const CUDA_MEMCPY2D *p, CUstream h)
{
	return sim_copy_2d(c, p, h, true);
}

static CUresult copy_3d(struct sim_call *c, const CUDA_MEMCPY3D *p)
{
	return sim_copy_3d(c, p, NULL, false);
}

static CUresult copy_3d_async(struct sim_call *c, const CUDA_MEMCPY3D *p, CUstream h)
{
	return sim_copy_3d(c, p, h, true);
}

/* The contexts must be valid; the memory determines the rest. */
static CUresult peer_3d(struct sim_call *c, const CUDA_MEMCPY3D *p, CUstream h, bool async)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return p->srcContext && p->dstContext ? sim_copy_3d(c, p, h, async)
					      : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult copy_3d_peer(struct sim_call *c, const CUDA_MEMCPY3D *p)
{
	return peer_3d(c, p, NULL, false);
}

static CUresult copy_3d_peer_async(struct sim_call *c, const CUDA_MEMCPY3D *p, CUstream h)
{
	return peer_3d(c, p, h, true);
}

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
SIM_API_PT(cuMemcpy3DPeer, _ptds, SIM_NEED_CTX, copy_3d_peer, (const CUDA_MEMCPY3D *p), (p))
SIM_API_PT(cuMemcpy3DPeerAsync, _ptsz, SIM_NEED_INIT, copy_3d_peer_async,
	   (const CUDA_MEMCPY3D *p, CUstream h), (p, h))

/* Variants of the first CUDA versions, with 32-bit pointers and sizes. */
SIM_API(cuMemcpyHtoD, SIM_NEED_CTX, htod, (uint32_t d, const void *s, unsigned n), (d, s, n))
SIM_API(cuMemcpyDtoH, SIM_NEED_CTX, dtoh, (void *d, uint32_t s, unsigned n), (d, s, n))
SIM_API(cuMemcpyDtoD, SIM_NEED_CTX, dtod, (uint32_t d, uint32_t s, unsigned n), (d, s, n))
SIM_API(cuMemcpyHtoDAsync, SIM_NEED_INIT, htod_async,
	(uint32_t d, const void *s, unsigned n, CUstream h), (d, s, n, h))
SIM_API(cuMemcpyDtoHAsync, SIM_NEED_INIT, dtoh_async, (void *d, uint32_t s, unsigned n, CUstream h),
	(d, s, n, h))
SIM_API(cuMemcpyDtoDAsync, SIM_NEED_INIT, dtod_async,
	(uint32_t d, uint32_t s, unsigned n, CUstream h), (d, s, n, h))
