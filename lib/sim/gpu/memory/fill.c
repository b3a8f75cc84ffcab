/* Memory sets: one row or several, elements of one, two or four bytes. */
#include "sim/gpu/objects.h"

#include <string.h>

CUresult sim_set_fill(struct sim_work *w, CUdeviceptr dst, size_t pitch, unsigned value,
		      unsigned elem, size_t width, size_t height, struct sim_ctx *ctx)
{
	struct sim_range r;
	size_t row = width * elem;
	const void *p = (void *)(uintptr_t)dst;
	if (dst % elem || width > SIZE_MAX / 8 || (height > 1 && pitch < row))
		return CUDA_ERROR_INVALID_VALUE;
	if (width && height &&
	    (!sim_mem_find(p, &r) || sim_mem_check(p, (height - 1) * pitch + row, true)))
		return CUDA_ERROR_INVALID_VALUE;
	memset(w, 0, sizeof(*w));
	w->kind = SIM_K_MEMSET;
	w->engine = SIM_ENG_COMPUTE;
	w->dev = ctx->dev;
	w->set = (struct sim_set){(char *)(uintptr_t)dst, pitch, width, height, value, elem};
	return CUDA_SUCCESS;
}

static bool on_host(CUdeviceptr p)
{
	struct sim_range r;
	return sim_mem_find((void *)(uintptr_t)p, &r) &&
	       (r.kind == SIM_M_PINNED || r.kind == SIM_M_REGISTERED);
}

/* Only a set of host memory makes a synchronous call wait. */
static CUresult fill(struct sim_call *c, CUdeviceptr d, size_t pitch, unsigned v, unsigned elem,
		     size_t width, size_t height, CUstream h, bool async)
{
	struct sim_work w;
	struct sim_stream *s;
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
	sim_host_cost(sim_cfg.launch_ns);
	r = sim_submit(c, s, &w, !async && on_host(d) ? &op : NULL);
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
	SIM_API(cuMemsetD##bits, SIM_NEED_CTX, set##bits, (uint32_t d, type v, unsigned n),        \
		(d, v, n))                                                                         \
	SIM_API(cuMemsetD2D##bits, SIM_NEED_CTX, set2_##bits,                                      \
		(uint32_t d, unsigned pitch, type v, unsigned w, unsigned h), (d, pitch, v, w, h)) \
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
