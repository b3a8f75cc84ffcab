/*
 * Arrays and mipmapped arrays: device memory with a shape, rows in sequence. Copies with one array
 * side in bytes are for one-dimensional arrays.
 */
#include "sim/gpu/objects.h"

#include <stdlib.h>
#include <string.h>

enum { LAYERED = 1, CUBEMAP = 4, SPARSE = 0x40, DEFERRED = 0x80 };
enum { MAX_WIDTH = 131072, MAX_HEIGHT = 65536, MAX_DEPTH = 16384 };

bool sim_array_is(const void *a)
{
	return a && ((const struct sim_array *)a)->magic == SIM_MAGIC_ARRAY;
}

bool sim_mipmap_is(const void *a)
{
	return a && ((const struct sim_array *)a)->magic == SIM_MAGIC_MIPMAP;
}

unsigned sim_format_bytes(int format)
{
	switch (format) {
	case 0x01: /* unsigned and signed integers of 8, 16, 32 bits */
	case 0x08:
		return 1;
	case 0x02:
	case 0x09:
	case 0x10: /* half float */
		return 2;
	case 0x03:
	case 0x0a:
	case 0x20: /* float */
		return 4;
	default:
		return 0;
	}
}

static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned *elem)
{
	unsigned channel = sim_format_bytes(d->Format);
	bool layered = d->Flags & LAYERED, cube = d->Flags & CUBEMAP;
	if (!d->Width || !channel ||
	    (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	if (d->Width > MAX_WIDTH || d->Height > MAX_HEIGHT || d->Depth > MAX_DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	if ((d->Depth && !d->Height && !layered) || (layered && !d->Depth))
		return CUDA_ERROR_INVALID_VALUE;
	if (cube && (d->Width != d->Height || (layered ? d->Depth % 6 : d->Depth != 6)))
		return CUDA_ERROR_INVALID_VALUE;
	*elem = channel * d->NumChannels;
	return CUDA_SUCCESS;
}

static void shape(struct sim_array *a, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned elem)
{
	*a = (struct sim_array){.magic = SIM_MAGIC_ARRAY,
				.width = d->Width,
				.height = d->Height,
				.depth = d->Depth,
				.format = d->Format,
				.channels = d->NumChannels,
				.flags = d->Flags,
				.elem = elem,
				.dev = sim_ctx_current()->dev};
	a->pitch = a->width * elem;
	a->slice = a->pitch * (a->height ? a->height : 1);
}

static size_t size_of(const struct sim_array *a)
{
	return a->slice * (a->depth ? a->depth : 1);
}

static CUresult create(struct sim_call *c, CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	unsigned elem;
	if (!out || !d)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->Flags & (SPARSE | DEFERRED))
		return sim_cannot(c);
	CUresult r = check(d, &elem);
	struct sim_array *a = r ? NULL : malloc(sizeof(*a));
	if (!a)
		return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
	shape(a, d, elem);
	sim_host_cost(sim_cfg.alloc_ns);
	c->bytes = size_of(a);
	r = sim_mem_static(a->dev, size_of(a), &a->data);
	if (r)
		free(a);
	else
		*out = a;
	return r;
}

static CUresult create_2d(struct sim_call *c, CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR d3 = {d->Width, d->Height, 0, d->Format, d->NumChannels, 0};
	return create(c, out, &d3);
}

static CUresult give_back(struct sim_array *a)
{
	struct sim_range r;
	if (sim_mem_find(a->data, &r) && r.ctx)
		sim_ctx_drain(r.ctx);
	a->magic = 0;
	CUresult result = sim_mem_release(a->data, false);
	free(a->levels);
	free(a);
	return result;
}

static CUresult destroy(struct sim_call *c, CUarray a)
{
	(void)c;
	if (!sim_array_is(a))
		return CUDA_ERROR_INVALID_HANDLE;
	return a->part ? CUDA_ERROR_INVALID_VALUE : give_back(a);
}

static CUresult descriptor(struct sim_call *c, CUDA_ARRAY3D_DESCRIPTOR *d, CUarray a)
{
	(void)c;
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_array_is(a))
		return CUDA_ERROR_INVALID_HANDLE;
	*d = (CUDA_ARRAY3D_DESCRIPTOR){a->width,  a->height,   a->depth,
				       a->format, a->channels, a->flags};
	return CUDA_SUCCESS;
}

static CUresult descriptor_2d(struct sim_call *c, CUDA_ARRAY_DESCRIPTOR *d, CUarray a)
{
	CUDA_ARRAY3D_DESCRIPTOR d3;
	CUresult r = d ? descriptor(c, &d3, a) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*d = (CUDA_ARRAY_DESCRIPTOR){d3.Width, d3.Height, d3.Format, d3.NumChannels};
	return r;
}

/* ---- descriptors of the first CUDA versions ---- */
typedef struct {
	unsigned Width, Height;
	int Format;
	unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;

typedef struct {
	unsigned Width, Height, Depth;
	int Format;
	unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

static CUresult create_v1(struct sim_call *c, CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR d3 = {d->Width,	 d->Height,	 d->Depth,
				      d->Format, d->NumChannels, d->Flags};
	return create(c, out, &d3);
}

static CUresult create_2d_v1(struct sim_call *c, CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR d3 = {d->Width, d->Height, 0, d->Format, d->NumChannels, 0};
	return create(c, out, &d3);
}

static CUresult descriptor_v1(struct sim_call *c, CUDA_ARRAY3D_DESCRIPTOR_v1 *d, CUarray a)
{
	CUDA_ARRAY3D_DESCRIPTOR d3;
	CUresult r = d ? descriptor(c, &d3, a) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*d = (CUDA_ARRAY3D_DESCRIPTOR_v1){(unsigned)d3.Width, (unsigned)d3.Height,
						  (unsigned)d3.Depth, d3.Format,
						  d3.NumChannels,     d3.Flags};
	return r;
}

static CUresult descriptor_2d_v1(struct sim_call *c, CUDA_ARRAY_DESCRIPTOR_v1 *d, CUarray a)
{
	CUDA_ARRAY3D_DESCRIPTOR d3;
	CUresult r = d ? descriptor(c, &d3, a) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*d = (CUDA_ARRAY_DESCRIPTOR_v1){(unsigned)d3.Width, (unsigned)d3.Height, d3.Format,
						d3.NumChannels};
	return r;
}

/* ---- mipmapped arrays ---- */
static size_t half(size_t n, unsigned level)
{
	return !n ? 0 : n >> level ? n >> level : 1;
}

static unsigned levels_of(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	size_t most = d->Width > d->Height ? d->Width : d->Height;
	if (!(d->Flags & (LAYERED | CUBEMAP)) && d->Depth > most)
		most = d->Depth;
	unsigned n = 0;
	while (most >> n)
		n++;
	return n;
}

/* The levels follow each other in the memory of the first. */
static CUresult create_mipmap(struct sim_call *c, CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d,
			      unsigned n)
{
	unsigned elem;
	size_t total = 0;
	if (!out || !d || !n)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->Flags & (SPARSE | DEFERRED))
		return sim_cannot(c);
	CUresult r = check(d, &elem);
	if (r)
		return r;
	if (n > levels_of(d))
		n = levels_of(d);
	struct sim_array *m = malloc(sizeof(*m)), *levels = calloc(n, sizeof(*levels));
	shape(m, d, elem);
	m->magic = SIM_MAGIC_MIPMAP;
	m->levels = levels;
	m->nlevels = n;
	for (unsigned i = 0; i < n; i++) {
		CUDA_ARRAY3D_DESCRIPTOR l = *d;
		l.Width = half(d->Width, i);
		l.Height = half(d->Height, i);
		if (!(d->Flags & (LAYERED | CUBEMAP)))
			l.Depth = half(d->Depth, i);
		shape(&levels[i], &l, elem);
		levels[i].part = true;
		total += size_of(&levels[i]);
	}
	c->bytes = total;
	r = sim_mem_static(m->dev, total, &m->data);
	if (r) {
		free(levels);
		free(m);
		return r;
	}
	for (unsigned i = 0; i < n; i++)
		levels[i].data = i ? levels[i - 1].data + size_of(&levels[i - 1]) : m->data;
	*out = m;
	return CUDA_SUCCESS;
}

static CUresult destroy_mipmap(struct sim_call *c, CUarray m)
{
	(void)c;
	if (!sim_mipmap_is(m))
		return CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; i < m->nlevels; i++)
		m->levels[i].magic = 0;
	return give_back(m);
}

static CUresult get_level(struct sim_call *c, CUarray *out, CUarray m, unsigned level)
{
	(void)c;
	if (!sim_mipmap_is(m))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || level >= m->nlevels)
		return CUDA_ERROR_INVALID_VALUE;
	*out = &m->levels[level];
	return CUDA_SUCCESS;
}

/* ---- queries ---- */

/* No array has planes or is sparse, and all are backed by memory, so each query is an error. */
static CUresult get_plane(struct sim_call *c, CUarray *out, CUarray a, unsigned plane)
{
	(void)c;
	(void)out;
	(void)plane;
	return sim_array_is(a) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult sparse(struct sim_call *c, void *out, CUarray a)
{
	(void)c;
	(void)out;
	return sim_array_is(a) || sim_mipmap_is(a) ? CUDA_ERROR_INVALID_VALUE
						   : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult requirements(struct sim_call *c, void *out, CUarray a, CUdevice d)
{
	(void)d;
	return sparse(c, out, a);
}

/* ---- copies ---- */

/* The memory at byte off of a one-dimensional array; 0 if [off, off + n) is not inside. */
static uintptr_t inside(CUarray a, size_t off, size_t n)
{
	if (!sim_array_is(a) || a->height || a->depth || off > a->pitch || n > a->pitch - off)
		return 0;
	return (uintptr_t)a->data + off;
}

static CUresult copy(struct sim_call *c, uintptr_t dst, uintptr_t src, size_t n, CUstream h,
		     bool async, int want)
{
	struct sim_linear l = {dst, src, n, h, async, want};
	return dst && src ? sim_linear_copy(c, &l) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult atoh(struct sim_call *c, void *d, CUarray a, size_t off, size_t n)
{
	return copy(c, (uintptr_t)d, inside(a, off, n), n, NULL, false, SIM_D2H);
}

static CUresult htoa(struct sim_call *c, CUarray a, size_t off, const void *s, size_t n)
{
	return copy(c, inside(a, off, n), (uintptr_t)s, n, NULL, false, SIM_H2D);
}

static CUresult atod(struct sim_call *c, CUdeviceptr d, CUarray a, size_t off, size_t n)
{
	return copy(c, d, inside(a, off, n), n, NULL, false, SIM_D2D);
}

static CUresult dtoa(struct sim_call *c, CUarray a, size_t off, CUdeviceptr s, size_t n)
{
	return copy(c, inside(a, off, n), s, n, NULL, false, SIM_D2D);
}

static CUresult atoa(struct sim_call *c, CUarray d, size_t doff, CUarray s, size_t soff, size_t n)
{
	return copy(c, inside(d, doff, n), inside(s, soff, n), n, NULL, false, SIM_D2D);
}

static CUresult atoh_async(struct sim_call *c, void *d, CUarray a, size_t off, size_t n, CUstream h)
{
	return copy(c, (uintptr_t)d, inside(a, off, n), n, h, true, SIM_D2H);
}

static CUresult htoa_async(struct sim_call *c, CUarray a, size_t off, const void *s, size_t n,
			   CUstream h)
{
	return copy(c, inside(a, off, n), (uintptr_t)s, n, h, true, SIM_H2D);
}

SIM_API(cuArrayCreate, SIM_NEED_CTX, create_2d_v1, (CUarray * a, const CUDA_ARRAY_DESCRIPTOR_v1 *d),
	(a, d))
SIM_API(cuArrayCreate_v2, SIM_NEED_CTX, create_2d, (CUarray * a, const CUDA_ARRAY_DESCRIPTOR *d),
	(a, d))
SIM_API(cuArray3DCreate, SIM_NEED_CTX, create_v1,
	(CUarray * a, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d), (a, d))
SIM_API(cuArray3DCreate_v2, SIM_NEED_CTX, create, (CUarray * a, const CUDA_ARRAY3D_DESCRIPTOR *d),
	(a, d))
SIM_API(cuArrayGetDescriptor, SIM_NEED_INIT, descriptor_2d_v1,
	(CUDA_ARRAY_DESCRIPTOR_v1 * d, CUarray a), (d, a))
SIM_API(cuArrayGetDescriptor_v2, SIM_NEED_INIT, descriptor_2d,
	(CUDA_ARRAY_DESCRIPTOR * d, CUarray a), (d, a))
SIM_API(cuArray3DGetDescriptor, SIM_NEED_INIT, descriptor_v1,
	(CUDA_ARRAY3D_DESCRIPTOR_v1 * d, CUarray a), (d, a))
SIM_API(cuArray3DGetDescriptor_v2, SIM_NEED_INIT, descriptor,
	(CUDA_ARRAY3D_DESCRIPTOR * d, CUarray a), (d, a))
SIM_API(cuArrayDestroy, SIM_NEED_INIT, destroy, (CUarray a), (a))
SIM_API(cuArrayGetPlane, SIM_NEED_INIT, get_plane, (CUarray * out, CUarray a, unsigned plane),
	(out, a, plane))
SIM_API(cuArrayGetSparseProperties, SIM_NEED_INIT, sparse, (void *out, CUarray a), (out, a))
SIM_API(cuArrayGetMemoryRequirements, SIM_NEED_INIT, requirements,
	(void *out, CUarray a, CUdevice d), (out, a, d))
SIM_API(cuMipmappedArrayCreate, SIM_NEED_CTX, create_mipmap,
	(CUarray * m, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned n), (m, d, n))
SIM_API(cuMipmappedArrayDestroy, SIM_NEED_INIT, destroy_mipmap, (CUarray m), (m))
SIM_API(cuMipmappedArrayGetLevel, SIM_NEED_INIT, get_level,
	(CUarray * out, CUarray m, unsigned level), (out, m, level))
SIM_API(cuMipmappedArrayGetSparseProperties, SIM_NEED_INIT, sparse, (void *out, CUarray m),
	(out, m))
SIM_API(cuMipmappedArrayGetMemoryRequirements, SIM_NEED_INIT, requirements,
	(void *out, CUarray m, CUdevice d), (out, m, d))

SIM_API_PT(cuMemcpyAtoH_v2, _ptds, SIM_NEED_CTX, atoh, (void *d, CUarray a, size_t off, size_t n),
	   (d, a, off, n))
SIM_API_PT(cuMemcpyHtoA_v2, _ptds, SIM_NEED_CTX, htoa,
	   (CUarray a, size_t off, const void *s, size_t n), (a, off, s, n))
SIM_API_PT(cuMemcpyAtoD_v2, _ptds, SIM_NEED_CTX, atod,
	   (CUdeviceptr d, CUarray a, size_t off, size_t n), (d, a, off, n))
SIM_API_PT(cuMemcpyDtoA_v2, _ptds, SIM_NEED_CTX, dtoa,
	   (CUarray a, size_t off, CUdeviceptr s, size_t n), (a, off, s, n))
SIM_API_PT(cuMemcpyAtoA_v2, _ptds, SIM_NEED_CTX, atoa,
	   (CUarray d, size_t doff, CUarray s, size_t soff, size_t n), (d, doff, s, soff, n))
SIM_API_PT(cuMemcpyAtoHAsync_v2, _ptsz, SIM_NEED_INIT, atoh_async,
	   (void *d, CUarray a, size_t off, size_t n, CUstream h), (d, a, off, n, h))
SIM_API_PT(cuMemcpyHtoAAsync_v2, _ptsz, SIM_NEED_INIT, htoa_async,
	   (CUarray a, size_t off, const void *s, size_t n, CUstream h), (a, off, s, n, h))
SIM_API(cuMemcpyAtoH, SIM_NEED_CTX, atoh, (void *d, CUarray a, unsigned off, unsigned n),
	(d, a, off, n))
SIM_API(cuMemcpyHtoA, SIM_NEED_CTX, htoa, (CUarray a, unsigned off, const void *s, unsigned n),
	(a, off, s, n))
SIM_API(cuMemcpyAtoD, SIM_NEED_CTX, atod, (uint32_t d, CUarray a, unsigned off, unsigned n),
	(d, a, off, n))
SIM_API(cuMemcpyDtoA, SIM_NEED_CTX, dtoa, (CUarray a, unsigned off, uint32_t s, unsigned n),
	(a, off, s, n))
SIM_API(cuMemcpyAtoA, SIM_NEED_CTX, atoa,
	(CUarray d, unsigned doff, CUarray s, unsigned soff, unsigned n), (d, doff, s, soff, n))
SIM_API(cuMemcpyAtoHAsync, SIM_NEED_INIT, atoh_async,
	(void *d, CUarray a, unsigned off, unsigned n, CUstream h), (d, a, off, n, h))
SIM_API(cuMemcpyHtoAAsync, SIM_NEED_INIT, htoa_async,
	(CUarray a, unsigned off, const void *s, unsigned n, CUstream h), (a, off, s, n, h))
