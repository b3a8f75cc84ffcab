/*
 * Virtual memory management: reserved addresses, physical memory without an address, and mappings.
 * Physical memory is a shared mapping, of a file if it can be exported; mapping it creates a second
 * view of the same pages.
 */
#include "sim/gpu/objects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GRANULARITY = 2 << 20 };
enum { TYPE_PINNED = 1 };

typedef struct {
	int type;
	unsigned requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType, gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;
typedef unsigned long long CUmemGenericAllocationHandle;

struct sim_phys {
	int magic;
	unsigned handles, maps;
	CUmemAllocationProp prop;
	struct sim_device *dev;
	bool host, charged;
	char *base;
	size_t n;
	int fd;
	struct sim_phys *next;
};

struct mapping {
	char *p;
	size_t n;
	struct sim_phys *phys;
	unsigned access[SIM_MAX_DEVICES];
	struct mapping *next; /* by address */
};

struct reservation {
	char *p;
	size_t n;
	struct mapping *maps;
	struct reservation *next;
};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct reservation *reservations;
static struct sim_phys *all_phys;
static int nreservations;

bool sim_vmm_reserved(const void *p)
{
	if (!__atomic_load_n(&nreservations, __ATOMIC_ACQUIRE))
		return false;
	pthread_mutex_lock(&mu);
	const struct reservation *r = reservations;
	while (r && ((const char *)p < r->p || (const char *)p >= r->p + r->n))
		r = r->next;
	pthread_mutex_unlock(&mu);
	return r != NULL;
}

unsigned sim_phys_handles(const struct sim_phys *f)
{
	return f->prop.requestedHandleTypes;
}

/* ---- addresses ---- */
static char *reserve_at(char *hint, size_t n, size_t align)
{
	/* The kernel aligns to pages only: reserve more and release the ends. */
	char *p = mmap(hint, n + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		       0);
	if (p == MAP_FAILED)
		return NULL;
	char *at = (char *)(((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1));
	if (at > p)
		munmap(p, (size_t)(at - p));
	if (at + n < p + n + align)
		munmap(at + n, (size_t)(p + n + align - (at + n)));
	return at;
}

static CUresult reserve(struct sim_call *c, CUdeviceptr *out, size_t n, size_t align,
			CUdeviceptr hint, uint64_t flags)
{
	if (!out || !n || n % SIM_PAGE || flags || hint % SIM_PAGE || align & (align - 1))
		return CUDA_ERROR_INVALID_VALUE;
	c->bytes = n;
	if (align < GRANULARITY)
		align = GRANULARITY;
	struct reservation *r = calloc(1, sizeof(*r));
	char *p = n < SIZE_MAX / 2 && align < SIZE_MAX / 4
			  ? reserve_at((char *)(uintptr_t)hint, n, align)
			  : NULL;
	if (!r || !p) {
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r->p = p;
	r->n = n;
	pthread_mutex_lock(&mu);
	r->next = reservations;
	reservations = r;
	__atomic_add_fetch(&nreservations, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&mu);
	*out = (uintptr_t)p;
	return CUDA_SUCCESS;
}

static CUresult address_free(struct sim_call *c, CUdeviceptr d, size_t n)
{
	(void)c;
	pthread_mutex_lock(&mu);
	struct reservation **at = &reservations;
	while (*at && (uintptr_t)(*at)->p != d)
		at = &(*at)->next;
	struct reservation *r = *at;
	bool fits = r && r->n == n && !r->maps;
	if (fits) {
		*at = r->next;
		__atomic_sub_fetch(&nreservations, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&mu);
	if (!fits)
		return CUDA_ERROR_INVALID_VALUE;
	munmap(r->p, r->n);
	free(r);
	return CUDA_SUCCESS;
}

/* With mu: the reservation that contains [p, p + n). */
static struct reservation *holding(const char *p, size_t n)
{
	struct reservation *r = reservations;
	while (r && (p < r->p || p >= r->p + r->n))
		r = r->next;
	return r && n <= (size_t)(r->p + r->n - p) ? r : NULL;
}

/* ---- physical memory ---- */
static CUresult check_prop(const CUmemAllocationProp *p)
{
	if (!p || p->type != TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->requestedHandleTypes & ~(unsigned)SIM_HANDLE_FD || p->allocFlags.usage)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (p->location.type == SIM_LOC_DEVICE)
		return sim_is_device(p->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	if (p->location.type == SIM_LOC_HOST)
		return p->requestedHandleTypes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	return p->location.type == SIM_LOC_NUMA && !p->location.id ? CUDA_SUCCESS
								   : CUDA_ERROR_INVALID_VALUE;
}

static CUresult granularity(struct sim_call *c, size_t *out, const CUmemAllocationProp *p,
			    int option)
{
	(void)c;
	CUresult r = check_prop(p);
	if (!out || option < 0 || option > 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = GRANULARITY;
	return r;
}

/* Maps its pages and registers it; f->fd is the source. Takes ownership of f. */
static CUresult phys_add(struct sim_phys *f, CUmemGenericAllocationHandle *out)
{
	f->base = mmap(NULL, f->n, PROT_READ | PROT_WRITE,
		       MAP_SHARED | (f->fd < 0 ? MAP_ANONYMOUS | MAP_NORESERVE : 0), f->fd, 0);
	if (f->base == MAP_FAILED) {
		if (f->charged)
			sim_mem_uncharge(f->dev, f->n);
		if (f->fd >= 0)
			close(f->fd);
		free(f);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	f->magic = SIM_MAGIC_PHYS;
	f->handles = 1;
	pthread_mutex_lock(&mu);
	f->next = all_phys;
	all_phys = f;
	pthread_mutex_unlock(&mu);
	*out = (uintptr_t)f;
	return CUDA_SUCCESS;
}

static CUresult create(struct sim_call *c, CUmemGenericAllocationHandle *out, size_t n,
		       const CUmemAllocationProp *prop, uint64_t flags)
{
	CUresult r = check_prop(prop);
	if (r)
		return r;
	if (!out || !n || n % GRANULARITY || flags)
		return CUDA_ERROR_INVALID_VALUE;
	c->bytes = n;
	sim_host_cost(sim_cfg.alloc_ns);
	struct sim_phys *f = calloc(1, sizeof(*f));
	f->host = prop->location.type != SIM_LOC_DEVICE;
	f->dev = &sim_dev[f->host ? 0 : prop->location.id];
	f->prop = *prop;
	f->n = n;
	f->fd = -1;
	f->charged = !f->host;
	r = f->charged ? sim_mem_charge(f->dev, n) : CUDA_SUCCESS;
	if (r) {
		free(f);
		return r;
	}
	if (prop->requestedHandleTypes & SIM_HANDLE_FD) {
		struct sim_share about = {.kind = SIM_SHARE_PHYS,
					  .device = f->host ? -1 : f->dev->index,
					  .id = sim_new_id()};
		f->fd = sim_share_file(n, &about);
		if (f->fd < 0) {
			sim_mem_uncharge(f->dev, f->charged ? n : 0);
			free(f);
			return CUDA_ERROR_OPERATING_SYSTEM;
		}
	}
	return phys_add(f, out);
}

/* With mu. */
static struct sim_phys *phys_of(CUmemGenericAllocationHandle h)
{
	struct sim_phys *f = all_phys;
	while (f && (uintptr_t)f != h)
		f = f->next;
	return f && f->handles ? f : NULL;
}

/* With mu: frees f if nothing refers to it. */
static void phys_drop(struct sim_phys *f)
{
	if (f->handles || f->maps)
		return;
	struct sim_phys **at = &all_phys;
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	munmap(f->base, f->n);
	if (f->fd >= 0)
		close(f->fd);
	if (f->charged)
		sim_mem_uncharge(f->dev, f->n);
	free(f);
}

static CUresult release(struct sim_call *c, CUmemGenericAllocationHandle h)
{
	(void)c;
	pthread_mutex_lock(&mu);
	struct sim_phys *f = phys_of(h);
	if (f) {
		f->handles--;
		phys_drop(f);
	}
	pthread_mutex_unlock(&mu);
	return f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult properties(struct sim_call *c, CUmemAllocationProp *out,
			   CUmemGenericAllocationHandle h)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&mu);
	const struct sim_phys *f = phys_of(h);
	if (f)
		*out = f->prop;
	pthread_mutex_unlock(&mu);
	return f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- mappings ---- */

/* With mu: maps f at [p, p + n) in r. */
static CUresult map_in(struct reservation *r, char *p, size_t n, size_t off, struct sim_phys *f)
{
	struct mapping **at = &r->maps;
	while (*at && (*at)->p + (*at)->n <= p)
		at = &(*at)->next;
	if (*at && (*at)->p < p + n)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_range range = {.p = p,
				  .n = n,
				  .kind = f->host ? SIM_M_PINNED : SIM_M_DEVICE,
				  .ctx = sim_ctx_current(),
				  .dev = f->dev,
				  .owner = SIM_OWN_VMM,
				  .id = sim_new_id(),
				  .fd = -1,
				  .phys = f};
	struct mapping *m = calloc(1, sizeof(*m));
	if (!m || mremap(f->base + off, 0, n, MREMAP_MAYMOVE | MREMAP_FIXED, p) == MAP_FAILED) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	CUresult result = sim_mem_insert(&range);
	if (result) {
		free(m);
		return result;
	}
	*m = (struct mapping){.p = p, .n = n, .phys = f, .next = *at};
	*at = m;
	f->maps++;
	return CUDA_SUCCESS;
}

static CUresult map(struct sim_call *c, CUdeviceptr d, size_t n, size_t off,
		    CUmemGenericAllocationHandle h, uint64_t flags)
{
	char *p = (char *)(uintptr_t)d;
	if (!n || (d | n | off) % GRANULARITY || flags)
		return CUDA_ERROR_INVALID_VALUE;
	c->bytes = n;
	pthread_mutex_lock(&mu);
	struct sim_phys *f = phys_of(h);
	struct reservation *r = holding(p, n);
	CUresult result = f && r && off <= f->n && n <= f->n - off ? map_in(r, p, n, off, f)
								   : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&mu);
	return result;
}

/* With mu: the first of the mappings that together cover exactly [p, p + n). */
static struct mapping **exactly(const char *p, size_t n)
{
	struct reservation *r = holding(p, n);
	struct mapping **first = r ? &r->maps : NULL;
	while (first && *first && (*first)->p != p)
		first = &(*first)->next;
	if (!first || !*first)
		return NULL;
	const char *end = p;
	for (const struct mapping *m = *first; m && m->p == end && end < p + n; m = m->next)
		end += m->n;
	return end == p + n ? first : NULL;
}

static CUresult unmap(struct sim_call *c, CUdeviceptr d, size_t n)
{
	char *p = (char *)(uintptr_t)d;
	struct sim_range r;
	(void)c;
	if (sim_mem_find(p, &r) && r.ctx)
		sim_ctx_drain(r.ctx);
	pthread_mutex_lock(&mu);
	struct mapping **first = n ? exactly(p, n) : NULL;
	for (char *at = p; first && at < p + n;) {
		struct mapping *m = *first;
		*first = m->next;
		sim_mem_remove(m->p, SIM_OWN_VMM, &r);
		mmap(m->p, m->n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		     -1, 0);
		at += m->n;
		m->phys->maps--;
		phys_drop(m->phys);
		free(m);
	}
	pthread_mutex_unlock(&mu);
	return first ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- access ---- */
static void put_access(struct sim_range *r, void *access)
{
	r->access = *(unsigned *)access;
}

static CUresult check_access(const CUmemAccessDesc *d, size_t n)
{
	if (!d || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (d[i].flags != 0 && d[i].flags != SIM_READ && d[i].flags != SIM_READ_WRITE)
			return CUDA_ERROR_INVALID_VALUE;
		if (d[i].location.type == SIM_LOC_DEVICE && !sim_is_device(d[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
	}
	return CUDA_SUCCESS;
}

/* Host access is possible for host memory only. */
static CUresult locations_fit(const struct mapping *m, const CUmemAccessDesc *d, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int type = d[i].location.type;
		bool host = type == SIM_LOC_HOST || type == SIM_LOC_NUMA;
		if (type != SIM_LOC_DEVICE && !(host && m->phys->host))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult set_access(struct sim_call *c, CUdeviceptr d, size_t n, const CUmemAccessDesc *desc,
			   size_t count)
{
	char *p = (char *)(uintptr_t)d;
	(void)c;
	CUresult r = check_access(desc, count);
	if (r)
		return r;
	pthread_mutex_lock(&mu);
	struct mapping **first = n ? exactly(p, n) : NULL;
	r = first ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (struct mapping *m = first ? *first : NULL; m && m->p < p + n && !r; m = m->next)
		r = locations_fit(m, desc, count);
	for (struct mapping *m = r ? NULL : *first; m && m->p < p + n; m = m->next) {
		unsigned most = 0;
		for (size_t i = 0; i < count; i++)
			if (desc[i].location.type == SIM_LOC_DEVICE)
				m->access[desc[i].location.id] = desc[i].flags;
		for (int i = 0; i < SIM_MAX_DEVICES; i++)
			most |= m->access[i];
		sim_mem_change(m->p, put_access, &most);
	}
	pthread_mutex_unlock(&mu);
	return r;
}

/* With mu. */
static struct mapping *mapped_at(const char *p)
{
	const struct reservation *r = holding(p, 1);
	struct mapping *m = r ? r->maps : NULL;
	while (m && p >= m->p + m->n)
		m = m->next;
	return m && p >= m->p ? m : NULL;
}

static CUresult get_access(struct sim_call *c, unsigned long long *out, const CUmemLocation *l,
			   CUdeviceptr d)
{
	(void)c;
	if (!out || !l)
		return CUDA_ERROR_INVALID_VALUE;
	if (l->type == SIM_LOC_DEVICE && !sim_is_device(l->id))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&mu);
	const struct mapping *m = mapped_at((char *)(uintptr_t)d);
	if (m)
		*out = l->type == SIM_LOC_DEVICE ? m->access[l->id]
		       : m->phys->host		 ? SIM_READ_WRITE
						 : 0;
	pthread_mutex_unlock(&mu);
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult retain(struct sim_call *c, CUmemGenericAllocationHandle *out, void *p)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&mu);
	const struct mapping *m = mapped_at(p);
	if (m) {
		m->phys->handles++;
		*out = (uintptr_t)m->phys;
	}
	pthread_mutex_unlock(&mu);
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- between processes ---- */
static CUresult export_handle(struct sim_call *c, int *out, CUmemGenericAllocationHandle h,
			      int type, uint64_t flags)
{
	(void)c;
	if (!out || type != SIM_HANDLE_FD || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&mu);
	const struct sim_phys *f = phys_of(h);
	bool can = f && f->fd >= 0;
	int fd = can ? dup(f->fd) : -1;
	pthread_mutex_unlock(&mu);
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*out = fd;
	return CUDA_SUCCESS;
}

static CUresult import_handle(struct sim_call *c, CUmemGenericAllocationHandle *out, void *handle,
			      int type)
{
	struct sim_share about;
	int fd = (int)(intptr_t)handle;
	if (!out || type != SIM_HANDLE_FD || !sim_share_read(fd, &about) ||
	    about.kind != SIM_SHARE_PHYS)
		return CUDA_ERROR_INVALID_VALUE;
	bool host = about.device < 0;
	if (!host && !sim_is_device(about.device))
		return CUDA_ERROR_INVALID_DEVICE;
	c->bytes = about.size;
	struct sim_phys *f = calloc(1, sizeof(*f));
	f->host = host;
	f->dev = &sim_dev[host ? 0 : about.device];
	f->n = about.size;
	f->fd = dup(fd);
	f->prop = (CUmemAllocationProp){
		.type = TYPE_PINNED,
		.requestedHandleTypes = SIM_HANDLE_FD,
		.location = {host ? SIM_LOC_NUMA : SIM_LOC_DEVICE, host ? 0 : about.device}};
	if (f->fd < 0) {
		free(f);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	return phys_add(f, out);
}

SIM_API(cuMemAddressReserve, SIM_NEED_INIT, reserve,
	(CUdeviceptr * p, size_t n, size_t align, CUdeviceptr hint, unsigned long long flags),
	(p, n, align, hint, flags))
SIM_API(cuMemAddressFree, SIM_NEED_INIT, address_free, (CUdeviceptr p, size_t n), (p, n))
SIM_API(cuMemGetAllocationGranularity, SIM_NEED_INIT, granularity,
	(size_t * n, const CUmemAllocationProp *prop, int option), (n, prop, option))
SIM_API(cuMemCreate, SIM_NEED_INIT, create,
	(CUmemGenericAllocationHandle * h, size_t n, const CUmemAllocationProp *prop,
	 unsigned long long flags),
	(h, n, prop, flags))
SIM_API(cuMemRelease, SIM_NEED_INIT, release, (CUmemGenericAllocationHandle h), (h))
SIM_API(cuMemGetAllocationPropertiesFromHandle, SIM_NEED_INIT, properties,
	(CUmemAllocationProp * prop, CUmemGenericAllocationHandle h), (prop, h))
SIM_API(cuMemMap, SIM_NEED_INIT, map,
	(CUdeviceptr p, size_t n, size_t off, CUmemGenericAllocationHandle h,
	 unsigned long long flags),
	(p, n, off, h, flags))
SIM_API(cuMemUnmap, SIM_NEED_INIT, unmap, (CUdeviceptr p, size_t n), (p, n))
SIM_API(cuMemSetAccess, SIM_NEED_INIT, set_access,
	(CUdeviceptr p, size_t n, const CUmemAccessDesc *d, size_t count), (p, n, d, count))
SIM_API(cuMemGetAccess, SIM_NEED_INIT, get_access,
	(unsigned long long *flags, const CUmemLocation *l, CUdeviceptr p), (flags, l, p))
SIM_API(cuMemRetainAllocationHandle, SIM_NEED_INIT, retain,
	(CUmemGenericAllocationHandle * h, void *p), (h, p))
SIM_API(cuMemExportToShareableHandle, SIM_NEED_INIT, export_handle,
	(int *out, CUmemGenericAllocationHandle h, int type, unsigned long long flags),
	(out, h, type, flags))
SIM_API(cuMemImportFromShareableHandle, SIM_NEED_INIT, import_handle,
	(CUmemGenericAllocationHandle * h, void *handle, int type), (h, handle, type))
