/* Memory: host memory that stands for device, pinned and managed memory, in one sorted table. */
#include "simgpu/api.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct sim_range *table;
static size_t nranges, capacity;

static size_t pages(size_t n)
{
	return (n + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* Index of the first range that ends after p. */
static size_t find(const char *p)
{
	size_t lo = 0, hi = nranges;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (table[mid].p + table[mid].n <= p)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool sim_mem_find(const void *p, struct sim_range *out)
{
	pthread_rwlock_rdlock(&lock);
	size_t i = find(p);
	bool hit = i < nranges && (const char *)p >= table[i].p;
	if (hit)
		*out = table[i];
	pthread_rwlock_unlock(&lock);
	return hit;
}

static CUresult insert(struct sim_range *r)
{
	CUresult result = CUDA_SUCCESS;
	pthread_rwlock_wrlock(&lock);
	size_t i = find(r->p);
	if (i < nranges && table[i].p < r->p + r->n) {
		result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	} else if (r->kind == SIM_M_DEVICE && r->dev->used + pages(r->n) > sim_cfg.total_memory) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		if (nranges == capacity) {
			capacity = capacity ? capacity * 2 : 64;
			table = realloc(table, capacity * sizeof(*table));
		}
		memmove(table + i + 1, table + i, (nranges - i) * sizeof(*table));
		table[i] = *r;
		nranges++;
		if (r->kind == SIM_M_DEVICE)
			r->dev->used += pages(r->n);
	}
	pthread_rwlock_unlock(&lock);
	return result;
}

static CUresult allocate(struct sim_call *c, size_t n, enum sim_mem kind, unsigned flags,
			 struct sim_device *dev, struct sim_pool *pool, char **out)
{
	struct sim_ctx *ctx = sim_ctx_current();
	if (!n || !out)
		return CUDA_ERROR_INVALID_VALUE;
	c->bytes = n;
	sim_host_cost(sim_cfg.alloc_ns);
	char *p = mmap(NULL, pages(n), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct sim_range r = {.p = p,
			      .n = n,
			      .kind = kind,
			      .ctx = ctx,
			      .dev = dev,
			      .flags = flags,
			      .id = sim_new_id(),
			      .pool = pool};
	CUresult result = insert(&r);
	if (result)
		munmap(p, pages(n));
	else
		*out = p;
	return result;
}

CUresult sim_mem_static(struct sim_device *dev, size_t n, char **out)
{
	struct sim_call quiet = {0};
	return allocate(&quiet, n, SIM_M_DEVICE, 0, dev, NULL, out);
}

CUresult sim_mem_release(const void *p, bool host)
{
	pthread_rwlock_wrlock(&lock);
	size_t i = find(p);
	bool hit = i < nranges && table[i].p == p && (table[i].kind == SIM_M_PINNED) == host &&
		   table[i].kind != SIM_M_REGISTERED;
	struct sim_range r = {0};
	if (hit) {
		r = table[i];
		memmove(table + i, table + i + 1, (nranges - i - 1) * sizeof(*table));
		nranges--;
		if (r.kind == SIM_M_DEVICE)
			r.dev->used -= pages(r.n);
	}
	pthread_rwlock_unlock(&lock);
	if (!hit)
		return CUDA_ERROR_INVALID_VALUE;
	munmap(r.p, pages(r.n));
	return CUDA_SUCCESS;
}

static CUresult mem_alloc(struct sim_call *c, CUdeviceptr *out, size_t n)
{
	char *p = NULL;
	CUresult r = allocate(c, n, SIM_M_DEVICE, 0, sim_ctx_current()->dev, NULL, out ? &p : NULL);
	if (!r)
		*out = (uintptr_t)p;
	return r;
}

static CUresult alloc_pitch(struct sim_call *c, CUdeviceptr *out, size_t *pitch, size_t w, size_t h,
			    unsigned e)
{
	(void)e;
	*pitch = (w + 511) & ~(size_t)511;
	return mem_alloc(c, out, *pitch * h);
}

static CUresult alloc_managed(struct sim_call *c, CUdeviceptr *out, size_t n, unsigned flags)
{
	char *p = NULL;
	CUresult r =
		allocate(c, n, SIM_M_MANAGED, flags, sim_ctx_current()->dev, NULL, out ? &p : NULL);
	if (!r)
		*out = (uintptr_t)p;
	return r;
}

static CUresult host_alloc(struct sim_call *c, void **out, size_t n, unsigned flags)
{
	char *p = NULL;
	CUresult r =
		allocate(c, n, SIM_M_PINNED, flags, sim_ctx_current()->dev, NULL, out ? &p : NULL);
	if (!r)
		*out = p;
	return r;
}

static CUresult alloc_host(struct sim_call *c, void **out, size_t n)
{
	return host_alloc(c, out, n, 0);
}

/* Freeing waits for the whole context, as the real driver does. */
static CUresult mem_free(struct sim_call *c, CUdeviceptr d)
{
	struct sim_range r;
	(void)c;
	if (!d)
		return CUDA_SUCCESS;
	if (!sim_mem_find((void *)(uintptr_t)d, &r))
		return CUDA_ERROR_INVALID_VALUE;
	if (r.ctx)
		sim_ctx_drain(r.ctx);
	return sim_mem_release((void *)(uintptr_t)d, false);
}

static CUresult free_host(struct sim_call *c, void *p)
{
	struct sim_range r;
	(void)c;
	if (!p)
		return CUDA_SUCCESS;
	if (!sim_mem_find(p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	if (r.ctx)
		sim_ctx_drain(r.ctx);
	return sim_mem_release(p, true);
}

static CUresult host_register(struct sim_call *c, void *p, size_t n, unsigned flags)
{
	struct sim_ctx *ctx = sim_ctx_current();
	if (!p || !n)
		return CUDA_ERROR_INVALID_VALUE;
	c->bytes = n;
	struct sim_range r = {.p = p,
			      .n = n,
			      .kind = SIM_M_REGISTERED,
			      .ctx = ctx,
			      .dev = ctx->dev,
			      .flags = flags,
			      .id = sim_new_id()};
	sim_host_cost(sim_cfg.alloc_ns);
	return insert(&r);
}

static CUresult host_unregister(struct sim_call *c, void *p)
{
	(void)c;
	pthread_rwlock_wrlock(&lock);
	size_t i = find(p);
	bool hit = i < nranges && table[i].p == p && table[i].kind == SIM_M_REGISTERED;
	if (hit) {
		memmove(table + i, table + i + 1, (nranges - i - 1) * sizeof(*table));
		nranges--;
	}
	pthread_rwlock_unlock(&lock);
	return hit ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

static CUresult host_device_pointer(struct sim_call *c, CUdeviceptr *out, void *p, unsigned flags)
{
	struct sim_range r;
	(void)c;
	(void)flags;
	if (!sim_mem_find(p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (uintptr_t)p;
	return CUDA_SUCCESS;
}

static CUresult host_flags(struct sim_call *c, unsigned *out, void *p)
{
	struct sim_range r;
	(void)c;
	if (!sim_mem_find(p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	*out = r.flags;
	return CUDA_SUCCESS;
}

static CUresult get_info(struct sim_call *c, size_t *available, size_t *total)
{
	(void)c;
	if (available)
		*available = sim_cfg.total_memory - sim_ctx_current()->dev->used;
	if (total)
		*total = sim_cfg.total_memory;
	return CUDA_SUCCESS;
}

static CUresult address_range(struct sim_call *c, CUdeviceptr *base, size_t *n, CUdeviceptr p)
{
	struct sim_range r;
	(void)c;
	if (!sim_mem_find((void *)(uintptr_t)p, &r))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = (uintptr_t)r.p;
	if (n)
		*n = r.n;
	return CUDA_SUCCESS;
}

/* ---- pools: device memory in stream order ---- */
struct sim_pool {
	int magic;
	struct sim_device *dev;
	uint64_t threshold;
};

static struct sim_pool *default_pool(struct sim_device *dev)
{
	pthread_rwlock_wrlock(&lock);
	if (!dev->pool) {
		dev->pool = calloc(1, sizeof(*dev->pool));
		dev->pool->magic = SIM_MAGIC_POOL;
		dev->pool->dev = dev;
	}
	if (!dev->current_pool)
		dev->current_pool = dev->pool;
	pthread_rwlock_unlock(&lock);
	return dev->pool;
}

static CUresult alloc_from(struct sim_call *c, CUdeviceptr *out, size_t n, CUmemoryPool pool,
			   CUstream h)
{
	struct sim_stream *s;
	char *p = NULL;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (s->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	struct sim_device *dev = s->ctx->dev;
	if (!pool) {
		default_pool(dev);
		pool = dev->current_pool;
	}
	r = allocate(c, n, SIM_M_DEVICE, 0, pool->dev, pool, out ? &p : NULL);
	if (!r)
		*out = (uintptr_t)p;
	return r;
}

static CUresult alloc_async(struct sim_call *c, CUdeviceptr *out, size_t n, CUstream h)
{
	return alloc_from(c, out, n, NULL, h);
}

static CUresult free_async(struct sim_call *c, CUdeviceptr d, CUstream h)
{
	struct sim_stream *s;
	struct sim_range range;
	CUresult r = sim_stream_get(c, h, &s);
	if (r || !d)
		return r;
	if (!sim_mem_find((void *)(uintptr_t)d, &range))
		return CUDA_ERROR_INVALID_VALUE;
	if (s->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	struct sim_work w = {
		.kind = SIM_K_FREE, .engine = SIM_ENG_NONE, .dev = s->ctx->dev, .free = d};
	return sim_submit(c, s, &w, NULL);
}

static CUresult get_default_pool(struct sim_call *c, CUmemoryPool *out, CUdevice d)
{
	(void)c;
	if (d < 0 || d >= sim_cfg.devices)
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
	if (!r)
		sim_dev[d].current_pool = pool;
	return r;
}

/* The properties name the device at byte 12: type, handle types, location type, location id. */
static CUresult pool_create(struct sim_call *c, CUmemoryPool *out, const int *props)
{
	(void)c;
	if (!out || !props || props[3] < 0 || props[3] >= sim_cfg.devices)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_pool *p = calloc(1, sizeof(*p));
	p->magic = SIM_MAGIC_POOL;
	p->dev = &sim_dev[props[3]];
	*out = p;
	return CUDA_SUCCESS;
}

static CUresult pool_destroy(struct sim_call *c, CUmemoryPool p)
{
	(void)c;
	if (!p || p->magic != SIM_MAGIC_POOL || p == p->dev->pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->dev->current_pool == p)
		p->dev->current_pool = p->dev->pool;
	p->magic = 0;
	free(p);
	return CUDA_SUCCESS;
}

static CUresult pool_trim(struct sim_call *c, CUmemoryPool p, size_t n)
{
	(void)c;
	(void)p;
	(void)n;
	return CUDA_SUCCESS;
}

enum { POOL_REUSE_LAST = 3, POOL_THRESHOLD = 4, POOL_RESERVED = 5, POOL_USED_HIGH = 8 };

static CUresult pool_get(struct sim_call *c, CUmemoryPool p, int what, void *v)
{
	(void)c;
	if (what >= 1 && what <= POOL_REUSE_LAST)
		*(int *)v = 1;
	else if (what == POOL_THRESHOLD)
		*(uint64_t *)v = p->threshold;
	else if (what >= POOL_RESERVED && what <= POOL_USED_HIGH)
		*(uint64_t *)v = p->dev->used;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult pool_set(struct sim_call *c, CUmemoryPool p, int what, const void *v)
{
	(void)c;
	if (what == POOL_THRESHOLD)
		p->threshold = *(const uint64_t *)v;
	return what >= 1 && what <= POOL_USED_HIGH ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult pool_access(struct sim_call *c, CUmemoryPool p, const void *desc, size_t n)
{
	(void)desc;
	return pool_trim(c, p, n);
}

SIM_API(cuMemAlloc_v2, SIM_NEED_CTX, mem_alloc, (CUdeviceptr * p, size_t n), (p, n))
SIM_API(cuMemAllocPitch_v2, SIM_NEED_CTX, alloc_pitch,
	(CUdeviceptr * p, size_t *pitch, size_t w, size_t h, unsigned e), (p, pitch, w, h, e))
SIM_API(cuMemAllocManaged, SIM_NEED_CTX, alloc_managed, (CUdeviceptr * p, size_t n, unsigned flags),
	(p, n, flags))
SIM_API(cuMemFree_v2, SIM_NEED_INIT, mem_free, (CUdeviceptr p), (p))
SIM_API(cuMemHostAlloc, SIM_NEED_CTX, host_alloc, (void **p, size_t n, unsigned flags),
	(p, n, flags))
SIM_API(cuMemAllocHost_v2, SIM_NEED_CTX, alloc_host, (void **p, size_t n), (p, n))
SIM_API(cuMemFreeHost, SIM_NEED_INIT, free_host, (void *p), (p))
SIM_API(cuMemHostRegister, SIM_NEED_CTX, host_register, (void *p, size_t n, unsigned flags),
	(p, n, flags))
SIM_API(cuMemHostRegister_v2, SIM_NEED_CTX, host_register, (void *p, size_t n, unsigned flags),
	(p, n, flags))
SIM_API(cuMemHostUnregister, SIM_NEED_INIT, host_unregister, (void *p), (p))
SIM_API(cuMemHostGetDevicePointer_v2, SIM_NEED_CTX, host_device_pointer,
	(CUdeviceptr * d, void *p, unsigned flags), (d, p, flags))
SIM_API(cuMemHostGetFlags, SIM_NEED_CTX, host_flags, (unsigned *flags, void *p), (flags, p))
SIM_API(cuMemGetInfo_v2, SIM_NEED_CTX, get_info, (size_t * available, size_t *total),
	(available, total))
SIM_API(cuMemGetAddressRange_v2, SIM_NEED_CTX, address_range,
	(CUdeviceptr * base, size_t *n, CUdeviceptr p), (base, n, p))
SIM_API_PT(cuMemAllocAsync, _ptsz, SIM_NEED_INIT, alloc_async,
	   (CUdeviceptr * p, size_t n, CUstream s), (p, n, s))
SIM_API_PT(cuMemAllocFromPoolAsync, _ptsz, SIM_NEED_INIT, alloc_from,
	   (CUdeviceptr * p, size_t n, CUmemoryPool pool, CUstream s), (p, n, pool, s))
SIM_API_PT(cuMemFreeAsync, _ptsz, SIM_NEED_INIT, free_async, (CUdeviceptr p, CUstream s), (p, s))
SIM_API(cuDeviceGetDefaultMemPool, SIM_NEED_INIT, get_default_pool, (CUmemoryPool * p, CUdevice d),
	(p, d))
SIM_API(cuDeviceGetMemPool, SIM_NEED_INIT, get_pool, (CUmemoryPool * p, CUdevice d), (p, d))
SIM_API(cuDeviceSetMemPool, SIM_NEED_INIT, set_pool, (CUdevice d, CUmemoryPool p), (d, p))
SIM_API(cuMemPoolCreate, SIM_NEED_INIT, pool_create, (CUmemoryPool * p, const int *props),
	(p, props))
SIM_API(cuMemPoolDestroy, SIM_NEED_INIT, pool_destroy, (CUmemoryPool p), (p))
SIM_API(cuMemPoolTrimTo, SIM_NEED_INIT, pool_trim, (CUmemoryPool p, size_t n), (p, n))
SIM_API(cuMemPoolGetAttribute, SIM_NEED_INIT, pool_get, (CUmemoryPool p, int what, void *v),
	(p, what, v))
SIM_API(cuMemPoolSetAttribute, SIM_NEED_INIT, pool_set, (CUmemoryPool p, int what, const void *v),
	(p, what, v))
SIM_API(cuMemPoolSetAccess, SIM_NEED_INIT, pool_access,
	(CUmemoryPool p, const void *desc, size_t n), (p, desc, n))
