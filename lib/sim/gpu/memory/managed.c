/*
 * Managed memory: location of its pages, advice, prefetches. Accesses by kernels or the host cannot
 * be observed, so pages are where the last prefetch moved them, at first on the host. A prefetch
 * takes the time of copying the pages that are elsewhere.
 */
#include "sim/gpu/objects.h"

#include <stdlib.h>
#include <string.h>

/* Places: a device's index, or one of these; NUMA nodes go down from PLACE_NUMA. */
enum { PLACE_HOST = -1, PLACE_NONE = -2, PLACE_NUMA = -3 };
enum { CPU_BIT = SIM_MAX_DEVICES };

struct page {
	int16_t at, prefetched, preferred;
	uint16_t accessed; /* a bit for each device, and CPU_BIT */
	bool read_mostly;
};
struct sim_managed {
	struct page *pages;
};
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

void sim_managed_free(struct sim_managed *m)
{
	pthread_mutex_lock(&mu);
	free(m->pages);
	free(m);
	pthread_mutex_unlock(&mu);
}

static void describe(struct sim_range *r, void *unused)
{
	(void)unused;
	if (r->managed)
		return;
	size_t n = sim_pages(r->n) / SIM_PAGE;
	struct sim_managed *m = malloc(sizeof(*m));
	struct page *p = malloc(n * sizeof(*p));
	if (!m || !p) {
		free(m);
		free(p);
		return;
	}
	for (size_t i = 0; i < n; i++)
		p[i] = (struct page){PLACE_HOST, PLACE_NONE, PLACE_NONE, 0, false};
	m->pages = p;
	r->managed = m;
}

/* The pages that [d, d + n) touches. */
struct pages {
	struct page *p;
	size_t n;
	char *base;
};

static CUresult find_pages(CUdeviceptr d, size_t n, struct pages *out)
{
	struct sim_range r;
	char *p = (char *)(uintptr_t)d;
	if (!n || !sim_mem_find(p, &r) || r.kind != SIM_M_MANAGED ||
	    n > (size_t)(r.p + sim_pages(r.n) - p))
		return CUDA_ERROR_INVALID_VALUE;
	sim_mem_change(p, describe, NULL);
	if (!sim_mem_find(p, &r) || !r.managed)
		return CUDA_ERROR_OUT_OF_MEMORY;
	size_t first = (size_t)(p - r.p) / SIM_PAGE, last = (size_t)(p + n - 1 - r.p) / SIM_PAGE;
	*out = (struct pages){r.managed->pages + first, last - first + 1, r.p + first * SIM_PAGE};
	return CUDA_SUCCESS;
}

static CUresult place_of(const CUmemLocation *l, int *place)
{
	switch (l->type) {
	case SIM_LOC_DEVICE:
		*place = l->id;
		return sim_is_device(l->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case SIM_LOC_HOST:
		*place = PLACE_HOST;
		return CUDA_SUCCESS;
	case SIM_LOC_NUMA:
		*place = PLACE_NUMA - l->id;
		return l->id >= 0 && l->id < 1024 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case SIM_LOC_NUMA_CURRENT:
		*place = PLACE_NUMA;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* The first version of the interface uses -1 for the CPU. */
static CUmemLocation of_device(CUdevice d)
{
	return (CUmemLocation){d == -1 ? SIM_LOC_HOST : SIM_LOC_DEVICE, d};
}

/* ---- prefetch and discard ---- */

/* Moves the pages that are at `from`; returns their number. */
static size_t move(const struct pages *g, int from, int to)
{
	size_t n = 0;
	for (size_t i = 0; i < g->n; i++) {
		if (g->p[i].at != from)
			continue;
		g->p[i].at = (int16_t)to;
		n++;
	}
	return n;
}

/* Engine work that represents moving so many bytes. A copy onto itself moves nothing and takes its
 * time. */
static CUresult transfer(struct sim_call *c, struct sim_stream *s, const struct pages *g, size_t n,
			 int from, int to)
{
	struct sim_work w = {.kind = SIM_K_COPY,
			     .copy = {.dst = g->base,
				      .src = g->base,
				      .width = n,
				      .height = 1,
				      .depth = 1,
				      .dir = to < 0	? SIM_D2H
					     : from < 0 ? SIM_H2D
							: SIM_P2P}};
	if (from < 0 && to < 0)
		return CUDA_SUCCESS;
	w.engine = to < 0 ? SIM_ENG_D2H : from < 0 ? SIM_ENG_H2D : SIM_ENG_D2D;
	w.dev = &sim_dev[to < 0 ? from : to];
	return sim_submit(c, s, &w, NULL);
}

static CUresult prefetch_on(struct sim_call *c, struct sim_stream *s, CUdeviceptr d, size_t n,
			    const CUmemLocation *l)
{
	struct pages g;
	int to;
	CUresult r = place_of(l, &to);
	if (!r)
		r = find_pages(d, n, &g);
	if (r)
		return r;
	size_t moved[SIM_MAX_DEVICES + 1] = {0}; /* from each device, then from the host */
	pthread_mutex_lock(&mu);
	for (int from = 0; from < SIM_MAX_DEVICES; from++)
		if (from != to)
			moved[from] = move(&g, from, to);
	for (size_t i = 0; i < g.n; i++) {
		moved[SIM_MAX_DEVICES] += g.p[i].at != to && g.p[i].at != PLACE_NONE;
		g.p[i].at = g.p[i].prefetched = (int16_t)to;
	}
	pthread_mutex_unlock(&mu);
	for (int i = 0; i <= SIM_MAX_DEVICES && !r; i++)
		if (moved[i])
			r = transfer(c, s, &g, moved[i] * SIM_PAGE,
				     i == SIM_MAX_DEVICES ? PLACE_HOST : i, to);
	c->bytes += n;
	c->dir = to < 0 ? "D2H" : "H2D";
	return r;
}

static CUresult prefetch(struct sim_call *c, CUdeviceptr d, size_t n, const CUmemLocation *l,
			 unsigned flags, CUstream h)
{
	struct sim_stream *s;
	CUresult r = flags ? CUDA_ERROR_INVALID_VALUE : sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (s->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sim_host_cost(sim_cfg.launch_ns);
	return prefetch_on(c, s, d, n, l);
}

static CUresult prefetch_v1(struct sim_call *c, CUdeviceptr d, size_t n, CUdevice dev, CUstream h)
{
	CUmemLocation l = of_device(dev);
	return prefetch(c, d, n, &l, 0, h);
}

static CUresult prefetch_v2(struct sim_call *c, CUdeviceptr d, size_t n, CUmemLocation l,
			    unsigned flags, CUstream h)
{
	return prefetch(c, d, n, &l, flags, h);
}

struct prefetch_batch {
	CUdeviceptr *d;
	size_t *sizes, n;
	CUmemLocation *locations; /* NULL: no prefetch */
	size_t *first, nlocations;
	uint64_t flags;
	bool discard;
};

static CUresult check_batch(const struct prefetch_batch *b)
{
	if (!b->d || !b->sizes || !b->n || b->flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!b->locations)
		return b->nlocations ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (!b->first || !b->nlocations || b->nlocations > b->n || b->first[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 1; i < b->nlocations; i++)
		if (b->first[i] <= b->first[i - 1] || b->first[i] >= b->n)
			return CUDA_ERROR_INVALID_VALUE;
	struct pages g;
	int place;
	for (size_t i = 0; i < b->n; i++)
		if (find_pages(b->d[i], b->sizes[i], &g))
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < b->nlocations; i++)
		if (place_of(&b->locations[i], &place))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult discard(struct sim_call *c, CUdeviceptr d, size_t n)
{
	struct pages g;
	CUresult r = find_pages(d, n, &g);
	if (r)
		return r;
	pthread_mutex_lock(&mu);
	for (size_t i = 0; i < g.n; i++)
		g.p[i].at = PLACE_NONE;
	pthread_mutex_unlock(&mu);
	c->bytes += n;
	return CUDA_SUCCESS;
}

static CUresult run_batch(struct sim_call *c, const struct prefetch_batch *b, CUstream h)
{
	struct sim_stream *s;
	CUresult r = check_batch(b);
	if (!r)
		r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (s->legacy)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sim_host_cost(sim_cfg.launch_ns);
	for (size_t i = 0, l = 0; i < b->n && !r; i++) {
		if (l + 1 < b->nlocations && b->first[l + 1] == i)
			l++;
		if (b->discard)
			r = discard(c, b->d[i], b->sizes[i]);
		if (!r && b->locations)
			r = prefetch_on(c, s, b->d[i], b->sizes[i], &b->locations[l]);
	}
	return r;
}

static CUresult prefetch_batch(struct sim_call *c, CUdeviceptr *d, size_t *sizes, size_t n,
			       CUmemLocation *l, size_t *first, size_t nl, uint64_t flags,
			       CUstream h)
{
	struct prefetch_batch b = {d, sizes, n, l, first, nl, flags, false};
	return l ? run_batch(c, &b, h) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult discard_prefetch_batch(struct sim_call *c, CUdeviceptr *d, size_t *sizes, size_t n,
				       CUmemLocation *l, size_t *first, size_t nl, uint64_t flags,
				       CUstream h)
{
	struct prefetch_batch b = {d, sizes, n, l, first, nl, flags, true};
	return l ? run_batch(c, &b, h) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult discard_batch(struct sim_call *c, CUdeviceptr *d, size_t *sizes, size_t n,
			      uint64_t flags, CUstream h)
{
	struct prefetch_batch b = {d, sizes, n, NULL, NULL, 0, flags, true};
	return run_batch(c, &b, h);
}

/* ---- advice ---- */
enum {
	SET_READ_MOSTLY = 1,
	UNSET_READ_MOSTLY,
	SET_PREFERRED,
	UNSET_PREFERRED,
	SET_ACCESSED,
	UNSET_ACCESSED
};

static CUresult advise(struct sim_call *c, CUdeviceptr d, size_t n, int advice,
		       const CUmemLocation *l)
{
	struct pages g;
	int place = PLACE_NONE;
	CUresult r = find_pages(d, n, &g);
	if (!r && (advice < SET_READ_MOSTLY || advice > UNSET_ACCESSED))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && (advice == SET_PREFERRED || advice >= SET_ACCESSED))
		r = place_of(l, &place);
	if (!r && advice >= SET_ACCESSED && place < PLACE_HOST)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	c->bytes = n;
	unsigned bit = 1u << (place >= 0 ? place : CPU_BIT);
	pthread_mutex_lock(&mu);
	for (struct page *p = g.p; p < g.p + g.n; p++) {
		if (advice <= UNSET_READ_MOSTLY)
			p->read_mostly = advice == SET_READ_MOSTLY;
		else if (advice <= UNSET_PREFERRED)
			p->preferred = (int16_t)place;
		else if (advice == SET_ACCESSED)
			p->accessed |= (uint16_t)bit;
		else
			p->accessed &= (uint16_t)~bit;
	}
	pthread_mutex_unlock(&mu);
	return CUDA_SUCCESS;
}

static CUresult advise_v1(struct sim_call *c, CUdeviceptr d, size_t n, int advice, CUdevice dev)
{
	CUmemLocation l = of_device(dev);
	return advise(c, d, n, advice, &l);
}

static CUresult advise_v2(struct sim_call *c, CUdeviceptr d, size_t n, int advice, CUmemLocation l)
{
	return advise(c, d, n, advice, &l);
}

/* ---- queries ---- */
enum {
	READ_MOSTLY = 1,
	PREFERRED,
	ACCESSED_BY,
	LAST_PREFETCH,
	PREFERRED_TYPE,
	PREFERRED_ID,
	LAST_PREFETCH_TYPE,
	LAST_PREFETCH_ID
};

/* The value common to all pages, otherwise PLACE_NONE. */
static int common(const struct pages *g, bool preferred)
{
	int first = preferred ? g->p[0].preferred : g->p[0].prefetched;
	for (size_t i = 1; i < g->n; i++)
		if ((preferred ? g->p[i].preferred : g->p[i].prefetched) != first)
			return PLACE_NONE;
	return first;
}

static int type_of(int place)
{
	return place >= 0	     ? SIM_LOC_DEVICE
	       : place == PLACE_HOST ? SIM_LOC_HOST
	       : place <= PLACE_NUMA ? SIM_LOC_NUMA
				     : 0;
}

static void accessors(const struct pages *g, int *out, size_t n)
{
	unsigned all = ~0u;
	for (size_t i = 0; i < g->n; i++)
		all &= g->p[i].accessed;
	for (int d = 0; d < SIM_MAX_DEVICES && n; d++) {
		if (all >> d & 1) {
			*out++ = d;
			n--;
		}
	}
	if (n && all >> CPU_BIT & 1) {
		*out++ = PLACE_HOST;
		n--;
	}
	while (n--)
		*out++ = PLACE_NONE;
}

static CUresult get_one(int *out, size_t size, int what, const struct pages *g)
{
	bool preferred = what == PREFERRED || what == PREFERRED_TYPE || what == PREFERRED_ID;
	if (!out || what < READ_MOSTLY || what > LAST_PREFETCH_ID || !size || size % sizeof(int) ||
	    (what != ACCESSED_BY && size != sizeof(int)))
		return CUDA_ERROR_INVALID_VALUE;
	int place = common(g, preferred);
	if (what == READ_MOSTLY) {
		*out = 1;
		for (size_t i = 0; i < g->n; i++)
			*out &= g->p[i].read_mostly;
	} else if (what == ACCESSED_BY) {
		accessors(g, out, size / sizeof(int));
	} else if (what == PREFERRED_TYPE || what == LAST_PREFETCH_TYPE) {
		*out = type_of(place);
	} else {
		*out = place <= PLACE_NUMA && what >= PREFERRED_TYPE ? PLACE_NUMA - place : place;
	}
	return CUDA_SUCCESS;
}

static CUresult get_attribute(struct sim_call *c, void *out, size_t size, int what, CUdeviceptr d,
			      size_t n)
{
	struct pages g;
	(void)c;
	CUresult r = find_pages(d, n, &g);
	if (r)
		return r;
	pthread_mutex_lock(&mu);
	r = get_one(out, size, what, &g);
	pthread_mutex_unlock(&mu);
	return r;
}

static CUresult get_attributes(struct sim_call *c, void **out, const size_t *sizes, const int *what,
			       size_t count, CUdeviceptr d, size_t n)
{
	CUresult r = out && sizes && what && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !r; i++)
		r = get_attribute(c, out[i], sizes[i], what[i], d, n);
	return r;
}

/* The attachment of managed memory has no observable effect here. */
static CUresult attach(struct sim_call *c, CUstream h, CUdeviceptr d, size_t n, unsigned flags)
{
	enum { GLOBAL = 1, HOST = 2, SINGLE = 4 };
	struct sim_stream *s;
	struct sim_range r;
	CUresult result = sim_stream_get(c, h, &s);
	if (result)
		return result;
	if ((flags != GLOBAL && flags != HOST && flags != SINGLE) ||
	    (flags == SINGLE && s->legacy) || !sim_mem_find((void *)(uintptr_t)d, &r) ||
	    r.kind != SIM_M_MANAGED || (uintptr_t)r.p != d || (n && n != r.n))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

#define BATCH_PARAMS                                                                               \
	(CUdeviceptr * d, size_t * sizes, size_t n, CUmemLocation * l, size_t * first, size_t nl,  \
	 unsigned long long flags, CUstream s)

SIM_API_PT(cuMemPrefetchAsync, _ptsz, SIM_NEED_INIT, prefetch_v1,
	   (CUdeviceptr d, size_t n, CUdevice to, CUstream s), (d, n, to, s))
SIM_API_PT(cuMemPrefetchAsync_v2, _ptsz, SIM_NEED_INIT, prefetch_v2,
	   (CUdeviceptr d, size_t n, CUmemLocation l, unsigned flags, CUstream s),
	   (d, n, l, flags, s))
SIM_API_PT(cuMemPrefetchBatchAsync, _ptsz, SIM_NEED_INIT, prefetch_batch, BATCH_PARAMS,
	   (d, sizes, n, l, first, nl, flags, s))
SIM_API_PT(cuMemDiscardAndPrefetchBatchAsync, _ptsz, SIM_NEED_INIT, discard_prefetch_batch,
	   BATCH_PARAMS, (d, sizes, n, l, first, nl, flags, s))
SIM_API_PT(cuMemDiscardBatchAsync, _ptsz, SIM_NEED_INIT, discard_batch,
	   (CUdeviceptr * d, size_t *sizes, size_t n, unsigned long long flags, CUstream s),
	   (d, sizes, n, flags, s))
SIM_API(cuMemAdvise, SIM_NEED_INIT, advise_v1, (CUdeviceptr d, size_t n, int advice, CUdevice dev),
	(d, n, advice, dev))
SIM_API(cuMemAdvise_v2, SIM_NEED_INIT, advise_v2,
	(CUdeviceptr d, size_t n, int advice, CUmemLocation l), (d, n, advice, l))
SIM_API(cuMemRangeGetAttribute, SIM_NEED_INIT, get_attribute,
	(void *out, size_t size, int what, CUdeviceptr d, size_t n), (out, size, what, d, n))
SIM_API(cuMemRangeGetAttributes, SIM_NEED_INIT, get_attributes,
	(void **out, const size_t *sizes, const int *what, size_t count, CUdeviceptr d, size_t n),
	(out, sizes, what, count, d, n))
SIM_API_PT(cuStreamAttachMemAsync, _ptsz, SIM_NEED_INIT, attach,
	   (CUstream s, CUdeviceptr d, size_t n, unsigned flags), (s, d, n, flags))
