/*
 * Device memory that the job requested from the driver: use over time, the peak, and failed
 * requests with the requests just before them. Frameworks have memory pools of their own; memory in
 * a pool counts as used here.
 */
#include <stdlib.h>

#include "base/hash.h"

#include "base/text.h"
#include "judge/facts/survey.h"

enum { OUT_OF_MEMORY = 2 }; /* CUDA_ERROR_OUT_OF_MEMORY */

struct block {
	uint64_t address, bytes; /* address 0: free slot, 1: deleted */
};

struct tfh_heap {
	struct block *slot;
	size_t cap, used, live;
	struct tfh_heap_sum s;
	struct tfh_allocation last[TFH_HEAP_LAST]; /* ring */
	uint64_t before;			   /* in use after the last call */
	uint64_t n;
};

struct tfh_heap *tfh_heap_new(void)
{
	return calloc(1, sizeof(struct tfh_heap));
}

void tfh_heap_free(struct tfh_heap *h)
{
	if (h)
		free(h->slot);
	free(h);
}

/* Whether a function allocates or frees device memory itself, not only addresses or handles. */
static bool of_device(const char *name)
{
	static const char *const takes[] = {"cuMemAlloc",
					    "cuMemCreate",
					    "cuArrayCreate",
					    "cuArray3DCreate",
					    "cuMipmappedArrayCreate",
					    "cuMemFree",
					    "cuMemRelease",
					    "cuArrayDestroy",
					    "cuMipmappedArrayDestroy"};

	if (tfh_starts_with(name, "cuMemAllocHost") || tfh_starts_with(name, "cuMemFreeHost"))
		return false;
	for (size_t i = 0; i < sizeof(takes) / sizeof(*takes); i++)
		if (tfh_starts_with(name, takes[i]))
			return true;
	return false;
}

static struct block *find(struct tfh_heap *h, uint64_t address)
{
	for (size_t i = tfh_hash_add(0, address); h->cap; i++) {
		struct block *b = &h->slot[i & (h->cap - 1)];
		if (b->address == address || !b->address)
			return b;
	}
	return NULL;
}

static int grow(struct tfh_heap *h)
{
	struct block *old = h->slot;
	size_t n = h->cap;

	/* Growing also removes slots of freed blocks. */
	h->cap = h->live * 4 > 1024 ? h->cap * (h->live * 4 > h->cap ? 2 : 1) : 1024;
	h->slot = calloc(h->cap, sizeof(*h->slot));
	if (!h->slot) {
		h->slot = old;
		h->cap = n;
		return -ENOMEM;
	}
	h->used = h->live;
	for (size_t i = 0; i < n; i++)
		if (old[i].address > 1)
			*find(h, old[i].address) = old[i];
	free(old);
	return 0;
}

static int take(struct tfh_heap *h, uint64_t address, uint64_t bytes)
{
	if (address <= 1 || h->live >= TFH_FACTS_LIVE_BLOCKS)
		return 0;
	if ((h->used + 1) * 2 > h->cap && grow(h))
		return -ENOMEM;
	struct block *b = find(h, address);
	if (b->address == address)
		h->s.in_use -= b->bytes;
	else
		h->used++, h->live++;
	*b = (struct block){address, bytes};
	h->s.in_use += bytes;
	return 0;
}

static void give_back(struct tfh_heap *h, uint64_t address)
{
	struct block *b = find(h, address);

	if (!b || b->address != address || address <= 1)
		return;
	h->s.in_use -= b->bytes;
	b->address = 1;
	b->bytes = 0;
	h->live--;
}

static void fail(struct tfh_heap *h, const struct tfh_event *ev)
{
	struct tfh_failure *f;

	h->s.failed++;
	if (h->s.n_failure == TFH_HEAP_FAILURES)
		return;
	f = &h->s.failure[h->s.n_failure++];
	f->at = (struct tfh_allocation){ev->fn->name, ev->t1, ev->w[0]};
	f->in_use = h->s.in_use;
	for (uint64_t i = 0; i < TFH_HEAP_LAST && i < h->n; i++)
		f->before[f->n_before++] = h->last[(h->n - 1 - i) % TFH_HEAP_LAST];
}

/* Updates the maximum use in each of a fixed number of intervals of the run. */
static void draw(struct tfh_heap *h, int64_t t, int64_t wall)
{
	int64_t part = wall > 0 ? t * TFH_HEAP_POINTS / wall : 0;

	if (h->s.in_use > h->s.peak) {
		h->s.peak = h->s.in_use;
		h->s.peak_t = t;
	}
	if (part < 0 || part >= TFH_HEAP_POINTS)
		part = part < 0 ? 0 : TFH_HEAP_POINTS - 1;
	/* Intervals without a call keep the previous use. */
	for (; h->s.drawn < (uint32_t)part + 1; h->s.drawn++)
		h->s.line[h->s.drawn] = h->before;
	if (h->s.in_use > h->s.line[part])
		h->s.line[part] = h->s.in_use;
	h->before = h->s.in_use;
}

int tfh_heap_event(struct tfh_heap *h, const struct tfh_event *ev, int64_t wall)
{
	int rc = 0;

	if (ev->kind != TFT_ALLOC || !of_device(ev->fn->name))
		return 0;
	if (ev->fn->args == TFH_ARGS_ALLOC && ev->result == OUT_OF_MEMORY) {
		fail(h, ev);
	} else if (!ev->result && ev->fn->args == TFH_ARGS_ALLOC) {
		h->s.allocations++;
		h->last[h->n++ % TFH_HEAP_LAST] =
			(struct tfh_allocation){ev->fn->name, ev->t1, ev->w[0]};
		rc = take(h, ev->w[1], ev->w[0]);
	} else if (!ev->result && ev->fn->args == TFH_ARGS_FREE) {
		give_back(h, ev->w[1]);
	}
	draw(h, ev->t1, wall);
	return rc;
}

const struct tfh_heap_sum *tfh_heap_end(struct tfh_heap *h)
{
	for (; h->s.drawn && h->s.drawn < TFH_HEAP_POINTS; h->s.drawn++)
		h->s.line[h->s.drawn] = h->before;
	return &h->s;
}
