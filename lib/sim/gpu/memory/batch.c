/*
 * Batches of copies: one call, one operation per copy. The call's line in the truth log has the
 * total bytes, and a direction only if all copies share it.
 */
#include "sim/gpu/objects.h"

#include <stdlib.h>
#include <string.h>

enum { ORDER_STREAM = 1, ORDER_DURING_CALL = 2, ORDER_ANY = 3, FLAGS = 1 };

typedef struct {
	int srcAccessOrder;
	CUmemLocation srcLocHint, dstLocHint;
	unsigned flags;
} CUmemcpyAttributes;

struct copy_batch {
	struct sim_work *w;
	int *order; /* of each copy */
	size_t n;
};

static CUresult batch_new(struct copy_batch *b, size_t n)
{
	b->n = n;
	b->w = calloc(n, sizeof(*b->w));
	b->order = calloc(n, sizeof(*b->order));
	return b->w && b->order ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void batch_free(struct copy_batch *b)
{
	free(b->w);
	free(b->order);
}

/* A source that the client may reuse after the call is read now. */
static void take_source(struct sim_work *w)
{
	struct sim_copy *k = &w->copy;
	size_t n = sim_copy_bytes(k);
	if (k->pageable || k->dir == SIM_D2D || k->dir == SIM_P2P || k->dir == SIM_D2H || !n)
		return; /* pageable memory is read during the call anyway */
	if (k->height != 1 || k->depth != 1)
		return;
	k->staged = malloc(n);
	if (k->staged)
		memcpy(k->staged, k->src, n);
}

static CUresult batch_run(struct sim_call *c, struct copy_batch *b, CUstream h)
{
	uint64_t total = 0;
	const char *dir = NULL;
	bool mixed = false;
	CUresult r = CUDA_SUCCESS;
	for (size_t i = 0; i < b->n && !r; i++) {
		if (b->order[i] == ORDER_DURING_CALL)
			take_source(&b->w[i]);
		r = sim_copy_run(c, h, &b->w[i], true);
		total += c->bytes;
		mixed = mixed || (dir && dir != c->dir);
		dir = c->dir;
	}
	c->bytes = total;
	c->dir = mixed ? NULL : dir;
	if (mixed)
		c->host = NULL;
	return r;
}

static bool legacy(const struct sim_call *c, CUstream h)
{
	return h == SIM_STREAM_LEGACY || (!h && !c->per_thread);
}

static CUresult check_attributes(const CUmemcpyAttributes *a, const size_t *first, size_t na,
				 size_t n)
{
	if (!a || !first || !na || na > n || first[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < na; i++) {
		if (i && (first[i] <= first[i - 1] || first[i] >= n))
			return CUDA_ERROR_INVALID_VALUE;
		if (a[i].srcAccessOrder < ORDER_STREAM || a[i].srcAccessOrder > ORDER_ANY ||
		    a[i].flags & ~(unsigned)FLAGS)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* fail, if not NULL, receives the number of the invalid copy, or SIZE_MAX. */
static CUresult linear(struct sim_call *c, CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes,
		       size_t n, CUmemcpyAttributes *a, size_t *first, size_t na, size_t *fail,
		       CUstream h)
{
	struct copy_batch b = {0};
	if (fail)
		*fail = SIZE_MAX;
	if (!dst || !src || !sizes || !n || legacy(c, h))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = check_attributes(a, first, na, n);
	if (!r)
		r = batch_new(&b, n);
	for (size_t i = 0, k = 0; i < n && !r; i++) {
		if (k + 1 < na && first[k + 1] == i)
			k++;
		b.order[i] = a[k].srcAccessOrder;
		b.w[i].copy = (struct sim_copy){.dst = (char *)(uintptr_t)dst[i],
						.src = (char *)(uintptr_t)src[i],
						.width = sizes[i],
						.height = 1,
						.depth = 1};
		r = dst[i] && src[i] && sizes[i] ? sim_copy_classify(&b.w[i], sim_ctx_current())
						 : CUDA_ERROR_INVALID_VALUE;
		if (r && fail)
			*fail = i;
	}
	if (!r)
		r = batch_run(c, &b, h);
	batch_free(&b);
	return r;
}

static CUresult linear_v2(struct sim_call *c, CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes,
			  size_t n, CUmemcpyAttributes *a, size_t *first, size_t na, CUstream h)
{
	return linear(c, dst, src, sizes, n, a, first, na, NULL, h);
}

/* ---- three dimensions ---- */
enum { OPERAND_POINTER = 1, OPERAND_ARRAY = 2 };

typedef struct {
	int type;
	union {
		struct {
			CUdeviceptr ptr;
			size_t rowLength, layerHeight;
			CUmemLocation locHint;
		} ptr;
		struct {
			CUarray array;
			size_t x, y, z;
		} array;
	} op;
} CUmemcpy3DOperand;

typedef struct {
	CUmemcpy3DOperand src, dst;
	size_t width, height, depth;
	int srcAccessOrder;
	unsigned flags;
} CUDA_MEMCPY3D_BATCH_OP;

/* Bytes of an element: the array's, or 1; 0 for an invalid operand. */
static size_t element(const CUmemcpy3DOperand *o)
{
	if (o->type == OPERAND_POINTER)
		return o->op.ptr.ptr ? 1 : 0;
	return o->type == OPERAND_ARRAY && sim_array_is(o->op.array.array) ? o->op.array.array->elem
									   : 0;
}

static bool strides_fit(const CUmemcpy3DOperand *o, const CUDA_MEMCPY3D_BATCH_OP *p)
{
	return o->type != OPERAND_POINTER ||
	       ((!o->op.ptr.rowLength || o->op.ptr.rowLength >= p->width) &&
		(!o->op.ptr.layerHeight || o->op.ptr.layerHeight >= p->height));
}

static CUresult describe(const CUDA_MEMCPY3D_BATCH_OP *p, CUDA_MEMCPY3D *out)
{
	const CUmemcpy3DOperand *s = &p->src, *d = &p->dst;
	size_t es = element(s), ed = element(d);
	if (!es || !ed || !p->width || !p->height || !p->depth || p->flags & ~(unsigned)FLAGS ||
	    p->srcAccessOrder < ORDER_STREAM || p->srcAccessOrder > ORDER_ANY ||
	    !strides_fit(s, p) || !strides_fit(d, p))
		return CUDA_ERROR_INVALID_VALUE;
	if (s->type == OPERAND_ARRAY && d->type == OPERAND_ARRAY && es != ed)
		return CUDA_ERROR_INVALID_VALUE;
	size_t e = es > ed ? es : ed;
	*out = (CUDA_MEMCPY3D){
		.WidthInBytes = p->width * e, .Height = p->height, .Depth = p->depth};
	if (s->type == OPERAND_ARRAY) {
		out->srcMemoryType = SIM_MEM_ARRAY;
		out->srcArray = s->op.array.array;
		out->srcXInBytes = s->op.array.x * e;
		out->srcY = s->op.array.y;
		out->srcZ = s->op.array.z;
	} else {
		out->srcMemoryType = SIM_MEM_UNIFIED;
		out->srcDevice = s->op.ptr.ptr;
		out->srcPitch = s->op.ptr.rowLength * e;
		out->srcHeight = s->op.ptr.layerHeight;
	}
	if (d->type == OPERAND_ARRAY) {
		out->dstMemoryType = SIM_MEM_ARRAY;
		out->dstArray = d->op.array.array;
		out->dstXInBytes = d->op.array.x * e;
		out->dstY = d->op.array.y;
		out->dstZ = d->op.array.z;
	} else {
		out->dstMemoryType = SIM_MEM_UNIFIED;
		out->dstDevice = d->op.ptr.ptr;
		out->dstPitch = d->op.ptr.rowLength * e;
		out->dstHeight = d->op.ptr.layerHeight;
	}
	return CUDA_SUCCESS;
}

static CUresult boxes(struct sim_call *c, size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail,
		      unsigned long long flags, CUstream h)
{
	struct copy_batch b = {0};
	if (fail)
		*fail = SIZE_MAX;
	if (!n || !ops || flags || legacy(c, h))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = batch_new(&b, n);
	for (size_t i = 0; i < n && !r; i++) {
		CUDA_MEMCPY3D p;
		r = describe(&ops[i], &p);
		if (!r)
			r = sim_copy_from_3d(&b.w[i], &p, sim_ctx_current());
		b.order[i] = ops[i].srcAccessOrder;
		if (r && fail)
			*fail = i;
	}
	if (!r)
		r = batch_run(c, &b, h);
	batch_free(&b);
	return r;
}

static CUresult boxes_v2(struct sim_call *c, size_t n, CUDA_MEMCPY3D_BATCH_OP *ops,
			 unsigned long long flags, CUstream h)
{
	return boxes(c, n, ops, NULL, flags, h);
}

SIM_API_PT(cuMemcpyBatchAsync, _ptsz, SIM_NEED_INIT, linear,
	   (CUdeviceptr * d, CUdeviceptr *s, size_t *sizes, size_t n, CUmemcpyAttributes *a,
	    size_t *first, size_t na, size_t *fail, CUstream h),
	   (d, s, sizes, n, a, first, na, fail, h))
SIM_API_PT(cuMemcpyBatchAsync_v2, _ptsz, SIM_NEED_INIT, linear_v2,
	   (CUdeviceptr * d, CUdeviceptr *s, size_t *sizes, size_t n, CUmemcpyAttributes *a,
	    size_t *first, size_t na, CUstream h),
	   (d, s, sizes, n, a, first, na, h))
SIM_API_PT(cuMemcpy3DBatchAsync, _ptsz, SIM_NEED_INIT, boxes,
	   (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail, unsigned long long flags,
	    CUstream h),
	   (n, ops, fail, flags, h))
SIM_API_PT(cuMemcpy3DBatchAsync_v2, _ptsz, SIM_NEED_INIT, boxes_v2,
	   (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream h),
	   (n, ops, flags, h))
