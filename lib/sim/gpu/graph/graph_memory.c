/*
 * Memory of graphs. An allocation node gets its address when it is created. The pages stay mapped,
 * whether they count as allocated or not, so that every launch finds them. cuDeviceGraphMemTrim
 * frees them once the last graph with the node is destroyed.
 */
#include "sim/gpu/graph/graph.h"

#include <stdlib.h>

struct sim_reserve {
	struct sim_device *dev;
	char *p;
	size_t n;
	unsigned refs; /* nodes */
	bool taken;
	struct sim_reserve *next;
};

static struct sim_reserve *all;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static uint64_t used_high[SIM_MAX_DEVICES], reserved_high[SIM_MAX_DEVICES];

/* With mu. */
static uint64_t total(const struct sim_device *dev, bool only_taken)
{
	uint64_t n = 0;
	for (const struct sim_reserve *r = all; r; r = r->next)
		if (r->dev == dev && (r->taken || !only_taken))
			n += r->n;
	return n;
}

static void note_high(const struct sim_device *dev)
{
	uint64_t used = total(dev, true), reserved = total(dev, false);
	if (used > used_high[dev->index])
		used_high[dev->index] = used;
	if (reserved > reserved_high[dev->index])
		reserved_high[dev->index] = reserved;
}

struct sim_reserve *sim_reserve_new(struct sim_device *dev, size_t n)
{
	char *p = NULL;
	if (sim_mem_static(dev, n, &p))
		return NULL;
	struct sim_reserve *r = calloc(1, sizeof(*r));
	r->dev = dev;
	r->p = p;
	r->n = n;
	r->refs = 1;
	pthread_mutex_lock(&mu);
	r->next = all;
	all = r;
	note_high(dev);
	pthread_mutex_unlock(&mu);
	return r;
}

void sim_reserve_ref(struct sim_reserve *r)
{
	__atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
}

void sim_reserve_unref(struct sim_reserve *r)
{
	__atomic_sub_fetch(&r->refs, 1, __ATOMIC_RELAXED);
}

CUdeviceptr sim_reserve_address(const struct sim_reserve *r)
{
	return (uintptr_t)r->p;
}

void sim_reserve_describe(const struct sim_reserve *r, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	p->poolProps.allocType = 1; /* pinned */
	p->poolProps.locationType = 1;
	p->poolProps.locationId = r->dev->index;
	p->bytesize = r->n;
	p->dptr = (uintptr_t)r->p;
}

bool sim_reserve_taken(const struct sim_reserve *r)
{
	return __atomic_load_n(&r->taken, __ATOMIC_RELAXED);
}

void sim_reserve_take(struct sim_reserve *r)
{
	pthread_mutex_lock(&mu);
	r->taken = true;
	note_high(r->dev);
	pthread_mutex_unlock(&mu);
}

/* Its entry, if p is memory of a graph. */
static struct sim_reserve *find(const void *p)
{
	if (!__atomic_load_n(&all, __ATOMIC_RELAXED))
		return NULL;
	pthread_mutex_lock(&mu);
	struct sim_reserve *r = all;
	while (r && r->p != p)
		r = r->next;
	pthread_mutex_unlock(&mu);
	return r;
}

bool sim_reserve_is(const void *p)
{
	return find(p) != NULL;
}

bool sim_reserve_free(const void *p)
{
	struct sim_reserve *r = find(p);
	return r && __atomic_exchange_n(&r->taken, false, __ATOMIC_RELAXED);
}

enum { USED, USED_HIGH, RESERVED, RESERVED_HIGH };

static CUresult get_attribute(struct sim_call *c, CUdevice d, int what, void *v)
{
	(void)c;
	if (d < 0 || d >= sim_cfg.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!v || what < USED || what > RESERVED_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&mu);
	*(uint64_t *)v = what == USED	     ? total(&sim_dev[d], true)
			 : what == RESERVED  ? total(&sim_dev[d], false)
			 : what == USED_HIGH ? used_high[d]
					     : reserved_high[d];
	pthread_mutex_unlock(&mu);
	return CUDA_SUCCESS;
}

/* The high-water marks can be reset to the current values. */
static CUresult set_attribute(struct sim_call *c, CUdevice d, int what, void *v)
{
	(void)c;
	if (d < 0 || d >= sim_cfg.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!v || (what != USED_HIGH && what != RESERVED_HIGH) || *(uint64_t *)v)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&mu);
	(what == USED_HIGH ? used_high : reserved_high)[d] = 0;
	note_high(&sim_dev[d]);
	pthread_mutex_unlock(&mu);
	return CUDA_SUCCESS;
}

static CUresult trim(struct sim_call *c, CUdevice d)
{
	(void)c;
	if (d < 0 || d >= sim_cfg.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	struct sim_ctx *ctx = sim_ctx_current();
	if (ctx)
		sim_ctx_drain(ctx);
	pthread_mutex_lock(&mu);
	for (struct sim_reserve **at = &all; *at;) {
		struct sim_reserve *r = *at;
		if (r->refs || r->taken || r->dev != &sim_dev[d]) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		sim_mem_release(r->p, false);
		free(r);
	}
	pthread_mutex_unlock(&mu);
	return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetGraphMemAttribute, SIM_NEED_INIT, get_attribute, (CUdevice d, int what, void *v),
	(d, what, v))
SIM_API(cuDeviceSetGraphMemAttribute, SIM_NEED_INIT, set_attribute, (CUdevice d, int what, void *v),
	(d, what, v))
SIM_API(cuDeviceGraphMemTrim, SIM_NEED_INIT, trim, (CUdevice d), (d))
