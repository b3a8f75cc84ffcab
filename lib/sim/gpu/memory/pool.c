/*
 * Pools: stream-ordered device memory. An allocation exists at once; a free happens when its stream
 * reaches it, and an allocation that finds no memory waits for such frees. A pool caches nothing,
 * so it reserves what is used.
 */
#include "sim/gpu/objects.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sim_pool {
	int magic, refs; /* the handle and each allocation */
	struct sim_device *dev;
	bool host, imported;
	unsigned handle_types;
	size_t max, used, used_high, reserved_high;
	uint64_t threshold;
	int reuse[3];
	unsigned access[SIM_MAX_DEVICES];
	int fd; /* exported as this file, or -1 */
};
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

static bool is_pool(const struct sim_pool *p)
{
	return p && p->magic == SIM_MAGIC_POOL;
}

unsigned sim_pool_handles(const struct sim_pool *p)
{
	return p->handle_types;
}

static struct sim_pool *pool_new(struct sim_device *dev)
{
	struct sim_pool *p = calloc(1, sizeof(*p));
	p->magic = SIM_MAGIC_POOL;
	p->refs = 1;
	p->dev = dev;
	p->fd = -1;
	p->access[dev->index] = SIM_READ_WRITE;
	for (int i = 0; i < 3; i++)
		p->reuse[i] = 1;
	return p;
}

static void unref_locked(struct sim_pool *p)
{
	if (--p->refs)
		return;
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

void sim_pool_return(struct sim_pool *p, size_t n)
{
	pthread_mutex_lock(&mu);
	p->used -= n;
	unref_locked(p);
	pthread_mutex_unlock(&mu);
}

static CUresult charge(struct sim_pool *p, size_t n)
{
	pthread_mutex_lock(&mu);
	bool fits = !p->max || p->used + n <= p->max;
	if (fits) {
		p->refs++;
		p->used += n;
		if (p->used > p->used_high)
			p->used_high = p->used;
		if (p->used > p->reserved_high)
			p->reserved_high = p->used;
	}
	pthread_mutex_unlock(&mu);
	return fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static struct sim_pool *default_pool(struct sim_device *dev)
{
	pthread_mutex_lock(&mu);
	if (!dev->pool)
		dev->pool = pool_new(dev);
	if (!dev->current_pool)
		dev->current_pool = dev->pool;
	pthread_mutex_unlock(&mu);
	return dev->pool;
}

static CUresult allocate(struct sim_call *c, struct sim_pool *pool, struct sim_ctx *ctx, size_t n,
			 char **out)
{
	struct sim_range want = {.kind = pool->host ? SIM_M_PINNED : SIM_M_DEVICE,
				 .ctx = ctx,
				 .dev = pool->dev,
				 .pool = pool,
				 .charged = !pool->host};
	CUresult r = n ? charge(pool, n) : CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	r = sim_mem_new(c, &want, n, false, out);
	if (r)
		sim_pool_return(pool, n);
	return r;
}

static CUresult alloc_from(struct sim_call *c, CUdeviceptr *out, size_t n, CUmemoryPool pool,
			   CUstream h)
{
	struct sim_stream *s;
	char *p = NULL;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (!out || (pool && (!is_pool(pool) || pool->imported)))
		return CUDA_ERROR_INVALID_VALUE;
	if (s->capture) {
		c->captured = true;
		return sim_capture_alloc(s, pool ? pool->dev : s->ctx->dev, n, out);
	}
	if (!pool) {
		default_pool(s->ctx->dev);
		pool = s->ctx->dev->current_pool;
	}
	r = allocate(c, pool, s->ctx, n, &p);
	if (r == CUDA_ERROR_OUT_OF_MEMORY) {
		sim_ctx_drain(s->ctx);
		r = allocate(c, pool, s->ctx, n, &p);
	}
	if (!r)
		*out = (uintptr_t)p;
	return r;
}

static CUresult alloc_async(struct sim_call *c, CUdeviceptr *out, size_t n, CUstream h)
{
	return alloc_from(c, out, n, NULL, h);
}

/* Marks r as being freed, unless it already is or the client does not own it. */
static void mark_freeing(struct sim_range *r, void *arg)
{
	CUdeviceptr *d = arg;
	if ((uintptr_t)r->p != *d || r->freeing || r->owner != SIM_OWN_ALLOC ||
	    (r->kind == SIM_M_PINNED && !r->pool) || r->kind == SIM_M_MANAGED)
		return;
	r->freeing = true;
	*d = 0;
}

static void unmark_freeing(struct sim_range *r, void *unused)
{
	(void)unused;
	r->freeing = false;
}

static CUresult free_async(struct sim_call *c, CUdeviceptr d, CUstream h)
{
	struct sim_stream *s;
	CUdeviceptr left = d;
	CUresult r = sim_stream_get(c, h, &s);
	if (r || !d)
		return r;
	void *p = (void *)(uintptr_t)d;
	bool ours = s->capture ? sim_reserve_is(p) : sim_reserve_free(p);
	if (!ours && (!sim_mem_change(p, mark_freeing, &left) || left))
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_work w = {
		.kind = SIM_K_FREE, .engine = SIM_ENG_NONE, .dev = s->ctx->dev, .free = d};
	r = sim_submit(c, s, &w, NULL);
	if (r && !ours)
		sim_mem_change(p, unmark_freeing, NULL);
	return r;
}

static CUresult get_default_pool(struct sim_call *c, CUmemoryPool *out, CUdevice d)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = default_pool(&sim_dev[d]);
	return CUDA_SUCCESS;
}

static CUresult get_pool(struct sim_call *c, CUmemoryPool *out, CUdevice d)
{
	CUresult r = get_default_pool(c, out, d);
	if (!r)
		*out = sim_dev[d].current_pool;
	return r;
}

static CUresult set_pool(struct sim_call *c, CUdevice d, CUmemoryPool pool)
{
	CUmemoryPool was;
	CUresult r = get_default_pool(c, &was, d);
	if (!r && (!is_pool(pool) || pool->host || pool->dev != &sim_dev[d] || pool->imported))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		sim_dev[d].current_pool = pool;
	return r;
}

/* Pools by location: only those of devices. */
static CUresult at_location(const CUmemLocation *l, int type)
{
	enum { PINNED = 1 };
	if (!l || type != PINNED || l->type != SIM_LOC_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_is_device(l->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult default_at(struct sim_call *c, CUmemoryPool *out, const CUmemLocation *l, int type)
{
	CUresult r = at_location(l, type);
	return r ? r : get_default_pool(c, out, l->id);
}

static CUresult current_at(struct sim_call *c, CUmemoryPool *out, const CUmemLocation *l, int type)
{
	CUresult r = at_location(l, type);
	return r ? r : get_pool(c, out, l->id);
}

static CUresult set_at(struct sim_call *c, const CUmemLocation *l, int type, CUmemoryPool pool)
{
	CUresult r = at_location(l, type);
	return r ? r : set_pool(c, l->id, pool);
}

typedef struct {
	int allocType;
	unsigned handleTypes;
	CUmemLocation location;
	void *security;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;

static CUresult pool_create(struct sim_call *c, CUmemoryPool *out, const CUmemPoolProps *p)
{
	enum { PINNED = 1 };
	(void)c;
	if (!out || !p || p->allocType != PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->handleTypes & ~(unsigned)SIM_HANDLE_FD)
		return CUDA_ERROR_NOT_SUPPORTED;
	bool host = p->location.type == SIM_LOC_HOST || p->location.type == SIM_LOC_NUMA;
	if (!host && p->location.type != SIM_LOC_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!host && !sim_is_device(p->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (p->location.type == SIM_LOC_HOST && p->handleTypes)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_pool *pool = pool_new(&sim_dev[host ? 0 : p->location.id]);
	pool->host = host;
	pool->handle_types = p->handleTypes;
	pool->max = p->maxSize;
	*out = pool;
	return CUDA_SUCCESS;
}

static CUresult pool_destroy(struct sim_call *c, CUmemoryPool p)
{
	(void)c;
	if (!is_pool(p) || p == p->dev->pool)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&mu);
	if (p->dev->current_pool == p)
		p->dev->current_pool = p->dev->pool;
	p->magic = 0;
	unref_locked(p);
	pthread_mutex_unlock(&mu);
	return CUDA_SUCCESS;
}

static CUresult pool_trim(struct sim_call *c, CUmemoryPool p, size_t n)
{
	(void)c;
	(void)n;
	return is_pool(p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

enum {
	REUSE_FIRST = 1,
	REUSE_LAST = 3,
	THRESHOLD = 4,
	RESERVED = 5,
	RESERVED_HIGH = 6,
	USED = 7,
	USED_HIGH = 8
};

static CUresult pool_get(struct sim_call *c, CUmemoryPool p, int what, void *v)
{
	(void)c;
	if (!is_pool(p) || !v)
		return CUDA_ERROR_INVALID_VALUE;
	if (what >= REUSE_FIRST && what <= REUSE_LAST) {
		*(int *)v = p->reuse[what - REUSE_FIRST];
		return CUDA_SUCCESS;
	}
	const uint64_t values[] = {[THRESHOLD] = p->threshold,
				   [RESERVED] = p->used,
				   [RESERVED_HIGH] = p->reserved_high,
				   [USED] = p->used,
				   [USED_HIGH] = p->used_high};
	if (what < THRESHOLD || what > USED_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	*(uint64_t *)v = values[what];
	return CUDA_SUCCESS;
}

static CUresult pool_set(struct sim_call *c, CUmemoryPool p, int what, const void *v)
{
	(void)c;
	if (!is_pool(p) || !v)
		return CUDA_ERROR_INVALID_VALUE;
	if (what >= REUSE_FIRST && what <= REUSE_LAST)
		p->reuse[what - REUSE_FIRST] = *(const int *)v != 0;
	else if (what == THRESHOLD)
		p->threshold = *(const uint64_t *)v;
	else if ((what == RESERVED_HIGH || what == USED_HIGH) && !*(const uint64_t *)v)
		*(what == USED_HIGH ? &p->used_high : &p->reserved_high) = p->used;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult set_access(struct sim_call *c, CUmemoryPool p, const CUmemAccessDesc *d, size_t n)
{
	(void)c;
	if (!is_pool(p) || (n && !d))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (d[i].location.type != SIM_LOC_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
		if (!sim_is_device(d[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		/* The pool's own device keeps its access. */
		if (&sim_dev[d[i].location.id] == p->dev && d[i].flags != SIM_READ_WRITE)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < n; i++)
		p->access[d[i].location.id] = d[i].flags;
	return CUDA_SUCCESS;
}

static CUresult get_access(struct sim_call *c, unsigned *out, CUmemoryPool p,
			   const CUmemLocation *l)
{
	(void)c;
	if (!out || !is_pool(p) || !l || l->type != SIM_LOC_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(l->id))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = p->access[l->id];
	return CUDA_SUCCESS;
}

/* ---- between processes: the pool is a file, each of its allocations data ---- */
static CUresult export_pool(struct sim_call *c, int *out, CUmemoryPool p, int type, uint64_t flags)
{
	(void)c;
	if (!out || !is_pool(p) || flags || !((unsigned)type & p->handle_types))
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_share about = {
		.kind = SIM_SHARE_POOL, .device = p->dev->index, .id = (uintptr_t)p};
	pthread_mutex_lock(&mu);
	if (p->fd < 0)
		p->fd = sim_share_file(0, &about);
	int fd = p->fd < 0 ? -1 : dup(p->fd);
	pthread_mutex_unlock(&mu);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*out = fd;
	return CUDA_SUCCESS;
}

static CUresult import_pool(struct sim_call *c, CUmemoryPool *out, void *handle, int type,
			    uint64_t flags)
{
	struct sim_share about;
	(void)c;
	if (!out || type != SIM_HANDLE_FD || flags ||
	    !sim_share_read((int)(intptr_t)handle, &about) || about.kind != SIM_SHARE_POOL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(about.device))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = pool_new(&sim_dev[about.device]);
	(*out)->imported = true;
	return CUDA_SUCCESS;
}

static CUresult export_pointer(struct sim_call *c, void *data, CUdeviceptr d)
{
	enum { SIZE = 64 };
	struct sim_range r;
	struct sim_share h;
	(void)c;
	if (!data || !sim_mem_find((void *)(uintptr_t)d, &r) || (uintptr_t)r.p != d || !r.pool ||
	    r.freeing || !(r.pool->handle_types & SIM_HANDLE_FD))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = sim_mem_share(r.p, &h);
	if (result)
		return result;
	memset(data, 0, SIZE);
	memcpy(data, &h, sizeof(h));
	return CUDA_SUCCESS;
}

static CUresult import_pointer(struct sim_call *c, CUdeviceptr *out, CUmemoryPool p,
			       const void *data)
{
	struct sim_share h;
	char *at;
	(void)c;
	if (!out || !data || !is_pool(p) || !p->imported)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&h, data, sizeof(h));
	CUresult r = sim_share_open(&h, SIM_SHARE_MEMORY, &at);
	if (r)
		return r == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : r;
	struct sim_range range = {.p = at,
				  .n = h.size,
				  .kind = SIM_M_DEVICE,
				  .ctx = sim_ctx_current(),
				  .dev = p->dev,
				  .id = sim_new_id(),
				  .pool = p,
				  .access = SIM_READ_WRITE,
				  .fd = -1};
	charge(p, h.size);
	r = sim_mem_insert(&range);
	if (!r)
		*out = (uintptr_t)at;
	return r;
}

SIM_API_PT(cuMemAllocAsync, _ptsz, SIM_NEED_INIT, alloc_async,
	   (CUdeviceptr * p, size_t n, CUstream s), (p, n, s))
SIM_API_PT(cuMemAllocFromPoolAsync, _ptsz, SIM_NEED_INIT, alloc_from,
	   (CUdeviceptr * p, size_t n, CUmemoryPool pool, CUstream s), (p, n, pool, s))
SIM_API_PT(cuMemFreeAsync, _ptsz, SIM_NEED_INIT, free_async, (CUdeviceptr p, CUstream s), (p, s))
SIM_API(cuDeviceGetDefaultMemPool, SIM_NEED_INIT, get_default_pool, (CUmemoryPool * p, CUdevice d),
	(p, d))
SIM_API(cuDeviceGetMemPool, SIM_NEED_INIT, get_pool, (CUmemoryPool * p, CUdevice d), (p, d))
SIM_API(cuDeviceSetMemPool, SIM_NEED_INIT, set_pool, (CUdevice d, CUmemoryPool p), (d, p))
SIM_API(cuMemGetDefaultMemPool, SIM_NEED_INIT, default_at,
	(CUmemoryPool * p, const CUmemLocation *l, int type), (p, l, type))
SIM_API(cuMemGetMemPool, SIM_NEED_INIT, current_at,
	(CUmemoryPool * p, const CUmemLocation *l, int type), (p, l, type))
SIM_API(cuMemSetMemPool, SIM_NEED_INIT, set_at, (const CUmemLocation *l, int type, CUmemoryPool p),
	(l, type, p))
SIM_API(cuMemPoolCreate, SIM_NEED_INIT, pool_create,
	(CUmemoryPool * p, const CUmemPoolProps *props), (p, props))
SIM_API(cuMemPoolDestroy, SIM_NEED_INIT, pool_destroy, (CUmemoryPool p), (p))
SIM_API(cuMemPoolTrimTo, SIM_NEED_INIT, pool_trim, (CUmemoryPool p, size_t n), (p, n))
SIM_API(cuMemPoolGetAttribute, SIM_NEED_INIT, pool_get, (CUmemoryPool p, int what, void *v),
	(p, what, v))
SIM_API(cuMemPoolSetAttribute, SIM_NEED_INIT, pool_set, (CUmemoryPool p, int what, const void *v),
	(p, what, v))
SIM_API(cuMemPoolSetAccess, SIM_NEED_INIT, set_access,
	(CUmemoryPool p, const CUmemAccessDesc *d, size_t n), (p, d, n))
SIM_API(cuMemPoolGetAccess, SIM_NEED_INIT, get_access,
	(unsigned *flags, CUmemoryPool p, const CUmemLocation *l), (flags, p, l))
SIM_API(cuMemPoolExportToShareableHandle, SIM_NEED_INIT, export_pool,
	(int *out, CUmemoryPool p, int type, unsigned long long flags), (out, p, type, flags))
SIM_API(cuMemPoolImportFromShareableHandle, SIM_NEED_INIT, import_pool,
	(CUmemoryPool * p, void *handle, int type, unsigned long long flags),
	(p, handle, type, flags))
SIM_API(cuMemPoolExportPointer, SIM_NEED_INIT, export_pointer, (void *data, CUdeviceptr p),
	(data, p))
SIM_API(cuMemPoolImportPointer, SIM_NEED_INIT, import_pointer,
	(CUdeviceptr * p, CUmemoryPool pool, const void *data), (p, pool, data))
