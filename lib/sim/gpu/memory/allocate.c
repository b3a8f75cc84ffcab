/*
 * Memory: host memory represents device, pinned and managed memory. A sorted table of addresses
 * refers to the descriptions, so a lookup is a binary search over entries of 24 bytes.
 */
#include "base/bisect.h"
#include "sim/gpu/objects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct address_slot {
	char *p, *end;
	struct sim_range *r;
};
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct address_slot *table;
static size_t nranges, capacity;

/* Index of the first range that ends after p. */
static size_t find(const char *p)
{
	return TFH_BISECT(i, 0, nranges, table[i].end <= p);
}

static struct sim_range *holding(const char *p)
{
	size_t i = find(p);
	return i < nranges && p >= table[i].p ? table[i].r : NULL;
}

bool sim_mem_find(const void *p, struct sim_range *out)
{
	pthread_rwlock_rdlock(&lock);
	const struct sim_range *r = holding(p);
	if (r)
		*out = *r;
	pthread_rwlock_unlock(&lock);
	return r != NULL;
}

bool sim_mem_change(const void *p, void (*fn)(struct sim_range *, void *), void *arg)
{
	pthread_rwlock_wrlock(&lock);
	struct sim_range *r = holding(p);
	if (r)
		fn(r, arg);
	pthread_rwlock_unlock(&lock);
	return r != NULL;
}

static bool room_in_table(void)
{
	if (nranges < capacity)
		return true;
	size_t n = capacity ? capacity * 2 : 64;
	struct address_slot *t = realloc(table, n * sizeof(*t));
	if (!t)
		return false;
	table = t;
	capacity = n;
	return true;
}

static CUresult insert_locked(const struct sim_range *r)
{
	size_t i = find(r->p);
	if (i < nranges && table[i].p < r->p + r->n)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (r->charged && r->dev->used + sim_pages(r->n) > sim_cfg.total_memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct sim_range *copy = malloc(sizeof(*copy));
	if (!copy || !room_in_table()) {
		free(copy);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*copy = *r;
	memmove(table + i + 1, table + i, (nranges - i) * sizeof(*table));
	table[i] = (struct address_slot){r->p, r->p + r->n, copy};
	nranges++;
	if (r->charged)
		r->dev->used += sim_pages(r->n);
	return CUDA_SUCCESS;
}

CUresult sim_mem_charge(struct sim_device *dev, size_t n)
{
	pthread_rwlock_wrlock(&lock);
	bool fits = n <= sim_cfg.total_memory - dev->used;
	if (fits)
		dev->used += n;
	pthread_rwlock_unlock(&lock);
	return fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void sim_mem_uncharge(struct sim_device *dev, size_t n)
{
	pthread_rwlock_wrlock(&lock);
	dev->used -= n;
	pthread_rwlock_unlock(&lock);
}

CUresult sim_mem_insert(const struct sim_range *r)
{
	pthread_rwlock_wrlock(&lock);
	CUresult result = insert_locked(r);
	pthread_rwlock_unlock(&lock);
	return result;
}

/* Removes the range that starts at p and is accepted by fits(). */
static bool take(const void *p, bool (*fits)(const struct sim_range *, int), int arg,
		 struct sim_range *out)
{
	pthread_rwlock_wrlock(&lock);
	size_t i = find(p);
	bool hit = i < nranges && table[i].p == p && fits(table[i].r, arg);
	if (hit) {
		*out = *table[i].r;
		free(table[i].r);
		memmove(table + i, table + i + 1, (nranges - i - 1) * sizeof(*table));
		nranges--;
		if (out->charged)
			out->dev->used -= sim_pages(out->n);
	}
	pthread_rwlock_unlock(&lock);
	return hit;
}

static bool owned_by(const struct sim_range *r, int owner)
{
	return r->owner == owner;
}

bool sim_mem_remove(const void *p, enum sim_owner owner, struct sim_range *out)
{
	return take(p, owned_by, (int)owner, out);
}

static bool freed_by(const struct sim_range *r, int host)
{
	return (r->owner == SIM_OWN_ALLOC || r->owner == SIM_OWN_OBJECT) &&
	       (r->kind == SIM_M_PINNED && !r->pool) == host;
}

CUresult sim_mem_release(const void *p, bool host)
{
	struct sim_range r;
	if (!take(p, freed_by, host, &r))
		return CUDA_ERROR_INVALID_VALUE;
	munmap(r.p, sim_pages(r.n));
	if (r.fd >= 0)
		close(r.fd);
	if (r.managed)
		sim_managed_free(r.managed);
	if (r.pool)
		sim_pool_return(r.pool, r.n);
	return CUDA_SUCCESS;
}

/* Mappings may be adjacent, and a copy may span them; other allocations end at their last page.
 * Host memory is not checked. */
static CUresult check_locked(const char *p, const char *end, unsigned access)
{
	for (;;) {
		const struct sim_range *r = holding(p);
		if (!r || (!r->phys && (r->kind == SIM_M_PINNED || r->kind == SIM_M_REGISTERED)))
			return CUDA_SUCCESS;
		if ((r->access & access) != access)
			return CUDA_ERROR_INVALID_VALUE;
		if (end <= r->p + sim_pages(r->n))
			return CUDA_SUCCESS;
		p = r->p + r->n;
		if (!r->phys || !holding(p))
			return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult sim_mem_check(const void *p, size_t n, bool write)
{
	pthread_rwlock_rdlock(&lock);
	bool known = holding(p) != NULL;
	CUresult r = check_locked(p, (const char *)p + n, write ? SIM_READ_WRITE : SIM_READ);
	pthread_rwlock_unlock(&lock);
	return !known && sim_vmm_reserved(p) ? CUDA_ERROR_INVALID_VALUE : r;
}

static char *map_at(char *wanted, size_t bytes)
{
	return mmap(wanted, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Below 4 GiB, for functions with 32-bit addresses. */
static char *map_low(size_t bytes)
{
	const uintptr_t end = 1ull << 32;

	for (uintptr_t at = 1u << 28; at < end && bytes <= end - at; at += 1u << 24) {
		char *p = map_at((char *)at, bytes);
		if (p == MAP_FAILED || (uintptr_t)p <= end - bytes)
			return p;
		munmap(p, bytes);
	}
	return MAP_FAILED;
}

CUresult sim_mem_new(struct sim_call *c, const struct sim_range *want, size_t n, bool low,
		     char **out)
{
	if (!n || !out)
		return CUDA_ERROR_INVALID_VALUE;
	c->bytes = n;
	sim_host_cost(sim_cfg.alloc_ns);
	if (n > SIZE_MAX - SIM_PAGE || (want->charged && n > sim_cfg.total_memory))
		return CUDA_ERROR_OUT_OF_MEMORY;
	char *p = low ? map_low(sim_pages(n)) : map_at(NULL, sim_pages(n));
	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct sim_range r = *want;
	r.p = p;
	r.n = n;
	r.id = sim_new_id();
	r.fd = -1;
	r.access = SIM_READ_WRITE;
	if (!r.ctx)
		r.ctx = sim_ctx_current();
	CUresult result = sim_mem_insert(&r);
	if (result)
		munmap(p, sim_pages(n));
	else
		*out = p;
	return result;
}

CUresult sim_mem_static(struct sim_device *dev, size_t n, char **out)
{
	struct sim_call quiet = {0};
	struct sim_range want = {
		.kind = SIM_M_DEVICE, .dev = dev, .charged = true, .owner = SIM_OWN_OBJECT};
	return sim_mem_new(&quiet, &want, n, false, out);
}

/* Memory of the current context's device, as a device pointer. */
static CUresult current_new(struct sim_call *c, enum sim_mem kind, unsigned flags, size_t n,
			    bool low, CUdeviceptr *out)
{
	char *p = NULL;
	struct sim_range want = {.kind = kind,
				 .dev = sim_ctx_current()->dev,
				 .flags = flags,
				 .charged = kind == SIM_M_DEVICE};
	CUresult r = sim_mem_new(c, &want, n, low, out ? &p : NULL);
	if (!r)
		*out = (uintptr_t)p;
	return r;
}

static CUresult mem_alloc(struct sim_call *c, CUdeviceptr *out, size_t n)
{
	return current_new(c, SIM_M_DEVICE, 0, n, false, out);
}

CUresult sim_mem_pitch(struct sim_call *c, CUdeviceptr *out, size_t *pitch, size_t w, size_t h,
		       unsigned e, bool low)
{
	if (!out || !pitch || !w || !h || (e != 4 && e != 8 && e != 16))
		return CUDA_ERROR_INVALID_VALUE;
	size_t n = 0, row = (w + 511) & ~(size_t)511;
	if (__builtin_mul_overflow(row, h, &n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult r = current_new(c, SIM_M_DEVICE, 0, n, low, out);
	if (!r)
		*pitch = row;
	return r;
}

static CUresult alloc_pitch(struct sim_call *c, CUdeviceptr *out, size_t *pitch, size_t w, size_t h,
			    unsigned e)
{
	return sim_mem_pitch(c, out, pitch, w, h, e, false);
}

enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2 };

static CUresult alloc_managed(struct sim_call *c, CUdeviceptr *out, size_t n, unsigned flags)
{
	if (flags != ATTACH_GLOBAL && flags != ATTACH_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	return current_new(c, SIM_M_MANAGED, flags, n, false, out);
}

enum { HOST_FLAGS = 7, REGISTER_FLAGS = 15 };

CUresult sim_host_alloc(struct sim_call *c, void **out, size_t n, unsigned flags)
{
	char *p = NULL;
	struct sim_range want = {
		.kind = SIM_M_PINNED, .dev = sim_ctx_current()->dev, .flags = flags};
	if (flags & ~(unsigned)HOST_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = sim_mem_new(c, &want, n, false, out ? &p : NULL);
	if (!r)
		*out = p;
	return r;
}

static CUresult alloc_host(struct sim_call *c, void **out, size_t n)
{
	return sim_host_alloc(c, out, n, 0);
}

/* Freeing waits for the whole context, as the real driver does. */
CUresult sim_mem_free(struct sim_call *c, CUdeviceptr d)
{
	struct sim_range r;
	(void)c;
	if (!d)
		return CUDA_SUCCESS;
	void *p = (void *)(uintptr_t)d;
	if (sim_reserve_is(p)) {
		sim_ctx_drain(sim_ctx_current());
		return sim_reserve_free(p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	}
	if (!sim_mem_find(p, &r) || r.p != p || r.owner != SIM_OWN_ALLOC || r.freeing)
		return CUDA_ERROR_INVALID_VALUE;
	if (r.ctx)
		sim_ctx_drain(r.ctx);
	return sim_mem_release(p, false);
}

static CUresult free_host(struct sim_call *c, void *p)
{
	struct sim_range r;
	(void)c;
	if (!p)
		return CUDA_SUCCESS;
	if (!sim_mem_find(p, &r) || r.owner != SIM_OWN_ALLOC)
		return CUDA_ERROR_INVALID_VALUE;
	if (r.ctx)
		sim_ctx_drain(r.ctx);
	return sim_mem_release(p, true);
}

static CUresult host_register(struct sim_call *c, void *p, size_t n, unsigned flags)
{
	struct sim_ctx *ctx = sim_ctx_current();
	if (!p || !n || flags & ~(unsigned)REGISTER_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	c->bytes = n;
	struct sim_range r = {.p = p,
			      .n = n,
			      .kind = SIM_M_REGISTERED,
			      .ctx = ctx,
			      .dev = ctx->dev,
			      .flags = flags,
			      .owner = SIM_OWN_CLIENT,
			      .access = SIM_READ_WRITE,
			      .fd = -1,
			      .id = sim_new_id()};
	sim_host_cost(sim_cfg.alloc_ns);
	return sim_mem_insert(&r);
}

static CUresult host_unregister(struct sim_call *c, void *p)
{
	struct sim_range r;
	(void)c;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_mem_remove(p, SIM_OWN_CLIENT, &r) ? CUDA_SUCCESS
						     : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

static bool find_host(void *p, struct sim_range *r)
{
	return sim_mem_find(p, r) && r->kind != SIM_M_DEVICE;
}

CUresult sim_host_pointer(struct sim_call *c, CUdeviceptr *out, void *p, unsigned flags)
{
	struct sim_range r;
	(void)c;
	if (!out || flags || !find_host(p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (uintptr_t)p;
	return CUDA_SUCCESS;
}

static CUresult host_flags(struct sim_call *c, unsigned *out, void *p)
{
	struct sim_range r;
	(void)c;
	if (!out || !find_host(p, &r) || r.kind == SIM_M_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	*out = r.flags;
	return CUDA_SUCCESS;
}

CUresult sim_mem_info(struct sim_call *c, size_t *available, size_t *total)
{
	(void)c;
	if (!available && !total)
		return CUDA_ERROR_INVALID_VALUE;
	if (available)
		*available = sim_cfg.total_memory - sim_ctx_current()->dev->used;
	if (total)
		*total = sim_cfg.total_memory;
	return CUDA_SUCCESS;
}

CUresult sim_mem_range(struct sim_call *c, CUdeviceptr *base, size_t *n, CUdeviceptr p)
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

/* ---- 32-bit pointers ---- */
static CUresult mem_alloc_v1(struct sim_call *c, uint32_t *out, unsigned n)
{
	CUdeviceptr p = 0;
	CUresult r = current_new(c, SIM_M_DEVICE, 0, n, true, out ? &p : NULL);
	if (!r)
		*out = (uint32_t)p;
	return r;
}

SIM_API(cuMemAlloc, SIM_NEED_CTX, mem_alloc_v1, (uint32_t * p, unsigned n), (p, n))
SIM_API(cuMemAlloc_v2, SIM_NEED_CTX, mem_alloc, (CUdeviceptr * p, size_t n), (p, n))
SIM_API(cuMemAllocPitch_v2, SIM_NEED_CTX, alloc_pitch,
	(CUdeviceptr * p, size_t *pitch, size_t w, size_t h, unsigned e), (p, pitch, w, h, e))
SIM_API(cuMemAllocManaged, SIM_NEED_CTX, alloc_managed, (CUdeviceptr * p, size_t n, unsigned flags),
	(p, n, flags))
SIM_API(cuMemFree_v2, SIM_NEED_INIT, sim_mem_free, (CUdeviceptr p), (p))
SIM_API(cuMemHostAlloc, SIM_NEED_CTX, sim_host_alloc, (void **p, size_t n, unsigned flags),
	(p, n, flags))
SIM_API(cuMemAllocHost_v2, SIM_NEED_CTX, alloc_host, (void **p, size_t n), (p, n))
SIM_API(cuMemFreeHost, SIM_NEED_INIT, free_host, (void *p), (p))
SIM_API(cuMemHostRegister, SIM_NEED_CTX, host_register, (void *p, size_t n, unsigned flags),
	(p, n, flags))
SIM_API(cuMemHostRegister_v2, SIM_NEED_CTX, host_register, (void *p, size_t n, unsigned flags),
	(p, n, flags))
SIM_API(cuMemHostUnregister, SIM_NEED_INIT, host_unregister, (void *p), (p))
SIM_API(cuMemHostGetDevicePointer_v2, SIM_NEED_CTX, sim_host_pointer,
	(CUdeviceptr * d, void *p, unsigned flags), (d, p, flags))
SIM_API(cuMemHostGetFlags, SIM_NEED_CTX, host_flags, (unsigned *flags, void *p), (flags, p))
SIM_API(cuMemGetInfo_v2, SIM_NEED_CTX, sim_mem_info, (size_t * available, size_t *total),
	(available, total))
SIM_API(cuMemGetAddressRange_v2, SIM_NEED_CTX, sim_mem_range,
	(CUdeviceptr * base, size_t *n, CUdeviceptr p), (base, n, p))
