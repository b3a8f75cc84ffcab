/* Runs decoded kernels: groups of whole blocks, all their threads as lanes of one frame. */
#include "sim/gpu/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

/* Lanes of a group of small blocks: enough to amortise decoding, few enough for the cache. */
enum { LANES = 128, ALIGN = 64, EXITED = -1 };
#define NOWHERE UINT32_MAX

const struct ptx_table *ptx_lanes(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return &ptx_lanes_avx2;
#endif
	return &ptx_lanes_base;
}

struct ptx_run {
	struct ptx_frame f;
	const struct ptx_prog *prog;
	const char *args;
	size_t nargs;
	unsigned cap;		/* lanes for which registers have room */
	uint8_t *active, *gate; /* masks */
	uint32_t *place;	/* where a waiting lane continues, NOWHERE if it has returned */
	void *scratch;
	bool full;	  /* all lanes active */
	uint32_t waiting; /* lowest place of a waiting lane */
};

bool ptx_check(struct ptx_frame *f, const uint64_t *addr, int64_t off, unsigned bytes)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	unsigned n = f->n;
	if (f->mask) {
		for (unsigned k = 0; k < n; k++) {
			if (f->mask[k]) {
				lo = addr[k] < lo ? addr[k] : lo;
				hi = addr[k] > hi ? addr[k] : hi;
			}
		}
	} else {
		for (unsigned k = 0; k < n; k++) {
			lo = addr[k] < lo ? addr[k] : lo;
			hi = addr[k] > hi ? addr[k] : hi;
		}
	}
	lo += (uint64_t)off;
	hi += (uint64_t)off + bytes;
	if (lo >= f->lo && hi <= f->hi && lo < hi)
		return true;
	for (unsigned k = 0; k < n; k++) {
		struct sim_range r;
		uint64_t a = addr[k] + (uint64_t)off;
		if ((f->mask && !f->mask[k]) || (a >= f->lo && a + bytes <= f->hi))
			continue;
		if (!sim_mem_find((void *)(uintptr_t)a, &r) || a + bytes > (uintptr_t)r.p + r.n ||
		    !r.access) {
			f->wild = true;
			return false;
		}
		f->lo = (uintptr_t)r.p;
		f->hi = f->lo + r.n;
	}
	return true;
}

/* Shared addresses are offsets into the block's own memory. */
static bool check_shared(struct ptx_run *r, const struct ptx_ins *i)
{
	const uint64_t *a = r->f.reg[i->s[0]];
	uint64_t size = (uint64_t)i->nvec * i->mem;
	for (unsigned k = 0; k < r->f.n; k++) {
		uint64_t at = a[k] + (uint64_t)i->off;
		if ((!r->f.mask || r->f.mask[k]) && (at > r->f.nshared || at + size > r->f.nshared))
			return false;
	}
	return true;
}

static void fill(void *dst, uint64_t bits, unsigned width, unsigned n)
{
	switch (width) {
	case 1:
		memset(dst, (int)bits, n);
		break;
	case 2:
		for (unsigned k = 0; k < n; k++)
			((uint16_t *)dst)[k] = (uint16_t)bits;
		break;
	case 4:
		for (unsigned k = 0; k < n; k++)
			((uint32_t *)dst)[k] = (uint32_t)bits;
		break;
	default:
		for (unsigned k = 0; k < n; k++)
			((uint64_t *)dst)[k] = bits;
	}
}

static void blend(void *dst, const void *src, const uint8_t *mask, unsigned width, unsigned n)
{
#define BLEND(type)                                                                                \
	for (unsigned k = 0; k < n; k++)                                                           \
		((type *)dst)[k] = mask[k] ? ((const type *)src)[k] : ((type *)dst)[k];            \
	break
	switch (width) {
	case 1:
		BLEND(uint8_t);
	case 2:
		BLEND(uint16_t);
	case 4:
		BLEND(uint32_t);
	default:
		BLEND(uint64_t);
	}
#undef BLEND
}

static unsigned count(const uint8_t *mask, unsigned n)
{
	unsigned c = 0;
	for (unsigned k = 0; k < n; k++)
		c += mask[k];
	return c;
}

/* With place[] set for every lane: activates the lanes at the lowest position and returns it. */
static uint32_t schedule(struct ptx_run *r)
{
	uint32_t lowest = NOWHERE;
	unsigned n = r->f.n, on = 0;
	for (unsigned k = 0; k < n; k++)
		lowest = r->place[k] < lowest ? r->place[k] : lowest;
	r->waiting = NOWHERE;
	for (unsigned k = 0; k < n; k++) {
		r->active[k] = r->place[k] == lowest;
		on += r->active[k];
		if (!r->active[k] && r->place[k] < r->waiting)
			r->waiting = r->place[k];
	}
	r->full = on == n;
	return lowest;
}

static void park(struct ptx_run *r, const uint8_t *mask, uint32_t at)
{
	for (unsigned k = 0; k < r->f.n; k++)
		if (!mask || mask[k])
			r->place[k] = at;
}

static void memory(struct ptx_run *r, const struct ptx_ins *i, const uint8_t *mask)
{
	r->f.mask = mask;
	if (i->shared) {
		if (!check_shared(r, i)) {
			r->f.wild = true;
			return;
		}
		/* The access' own range check is for global memory. */
		r->f.lo = 0;
		r->f.hi = UINT64_MAX;
		i->fn(&r->f, i);
		r->f.lo = r->f.hi = 0;
		return;
	}
	i->fn(&r->f, i);
}

static void param(struct ptx_run *r, const struct ptx_ins *i)
{
	uint64_t bits = 0;
	if ((size_t)i->off + i->mem > r->nargs) {
		r->f.wild = true;
		return;
	}
	memcpy(&bits, r->args + i->off, i->mem);
	fill(r->f.dst, bits, i->width, r->f.n);
}

/* Narrows the mask of active lanes (NULL: all) to those whose guard holds; false if none. */
static bool guarded(struct ptx_run *r, const struct ptx_ins *i, const uint8_t **mask)
{
	struct ptx_frame *f = &r->f;

	f->dst = r->gate;
	f->mask = *mask;
	ptx_lanes()->guard(f, i);
	unsigned on = count(r->gate, f->n);
	*mask = on == f->n ? NULL : r->gate;
	return on != 0;
}

/* Runs the lanes of one group until all have returned. */
static void group(struct ptx_run *r)
{
	struct ptx_frame *f = &r->f;
	uint32_t pc = 0;
	r->full = true;
	r->waiting = NOWHERE;
	memset(r->active, 1, f->n);
	while (!f->wild) {
		if (pc >= r->waiting) {
			park(r, r->active, pc);
			pc = schedule(r);
		}
		const struct ptx_ins *i = &r->prog->code[pc];
		const uint8_t *mask = r->full ? NULL : r->active;
		if (i->guard != PTX_NONE && !guarded(r, i, &mask)) {
			pc++;
			continue;
		}
		switch (i->kind) {
		case PTX_ALU:
		case PTX_PARAM:
			f->dst = mask ? r->scratch : f->reg[i->d[0]];
			if (i->kind == PTX_ALU)
				i->fn(f, i);
			else
				param(r, i);
			if (mask)
				blend(f->reg[i->d[0]], r->scratch, mask, i->width, f->n);
			pc++;
			break;
		case PTX_LOAD:
		case PTX_STORE:
			memory(r, i, mask);
			pc++;
			break;
		case PTX_BRANCH:
		case PTX_RETURN: {
			uint32_t to = i->kind == PTX_BRANCH ? i->target : NOWHERE;
			if (!mask || (!r->full && i->guard == PTX_NONE)) {
				if (to == NOWHERE && r->full)
					return;
				pc = to;
				break;
			}
			park(r, r->full ? NULL : r->active, pc + 1);
			park(r, mask, to);
			pc = schedule(r);
			break;
		}
		default:
			pc++;
		}
		if (pc == NOWHERE) {
			park(r, r->active, NOWHERE);
			pc = schedule(r);
			if (pc == NOWHERE)
				return;
		}
	}
}

/* One workspace per engine thread, grown as needed. */
static void *workspace(size_t n)
{
	static __thread char *mem;
	static __thread size_t size;
	if (n > size) {
		free(mem);
		mem = aligned_alloc(ALIGN, (n + ALIGN - 1) / ALIGN * ALIGN);
		size = mem ? n : 0;
	}
	return mem;
}

static size_t up(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static char *take(char **at, size_t n)
{
	char *p = *at;
	*at += up(n);
	return p;
}

/* Lays out registers and masks for cap lanes. */
static bool lay_out(struct ptx_run *r, unsigned blocks, unsigned dyn_shared)
{
	const struct ptx_prog *p = r->prog;
	unsigned shared = (p->shared + dyn_shared + 15) & ~15u;
	size_t need = up(p->nreg * sizeof(void *)) + up((size_t)shared * blocks) +
		      up(r->cap * 4u) * 2 + up(r->cap) * 2 + up(r->cap * 8u);
	for (uint32_t i = 0; i < p->nreg; i++)
		need += up((size_t)p->width[i] * r->cap);
	char *at = workspace(need);
	if (!at)
		return false;
	r->f.reg = (void **)take(&at, p->nreg * sizeof(void *));
	r->f.shared = take(&at, (size_t)shared * blocks);
	r->f.nshared = shared;
	r->f.shared_off = (uint32_t *)take(&at, r->cap * 4u);
	r->place = (uint32_t *)take(&at, r->cap * 4u);
	r->active = (uint8_t *)take(&at, r->cap);
	r->gate = (uint8_t *)take(&at, r->cap);
	r->scratch = take(&at, r->cap * 8u);
	for (uint32_t i = 0; i < p->nreg; i++)
		r->f.reg[i] = take(&at, (size_t)p->width[i] * r->cap);
	for (uint32_t i = 0; i < p->nconst; i++)
		fill(r->f.reg[p->consts[i].reg], p->consts[i].bits, p->width[p->consts[i].reg],
		     r->cap);
	return true;
}

/* Thread numbers, the same in every group. */
static void place_lanes(struct ptx_run *r, const unsigned *grid, const unsigned *block,
			unsigned threads)
{
	for (unsigned k = 0; k < r->cap; k++) {
		unsigned t = k % threads;
		((uint32_t *)r->f.reg[R_TID])[k] = t % block[0];
		((uint32_t *)r->f.reg[R_TID + 1])[k] = t / block[0] % block[1];
		((uint32_t *)r->f.reg[R_TID + 2])[k] = t / block[0] / block[1];
		((uint32_t *)r->f.shared_off)[k] = k / threads * r->f.nshared;
	}
	for (unsigned a = 0; a < 3; a++) {
		fill(r->f.reg[R_NTID + a], block[a], 4, r->cap);
		fill(r->f.reg[R_NCTAID + a], grid[a], 4, r->cap);
	}
}

static void place_blocks(struct ptx_run *r, const unsigned *grid, uint64_t first, unsigned threads)
{
	uint32_t *x = r->f.reg[R_CTAID], *y = r->f.reg[R_CTAID + 1], *z = r->f.reg[R_CTAID + 2];
	for (unsigned k = 0; k < r->f.n; k += threads) {
		uint64_t b = first + k / threads;
		fill(x + k, b % grid[0], 4, threads);
		fill(y + k, b / grid[0] % grid[1], 4, threads);
		fill(z + k, b / grid[0] / grid[1], 4, threads);
	}
}

CUresult ptx_run(struct ptx_prog *p, const unsigned *grid, const unsigned *block,
		 unsigned dyn_shared, const char *args, size_t nargs)
{
	unsigned threads = block[0] * block[1] * block[2];
	uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
	uint64_t each = threads >= LANES ? 1 : LANES / threads;
	if (each > blocks)
		each = blocks;
	struct ptx_run r = {
		.prog = p, .args = args, .nargs = nargs, .cap = (unsigned)each * threads};
	if (!lay_out(&r, (unsigned)each, dyn_shared))
		return CUDA_ERROR_OUT_OF_MEMORY;
	place_lanes(&r, grid, block, threads);
	for (uint64_t b = 0; b < blocks && !r.f.wild; b += each) {
		uint64_t n = blocks - b < each ? blocks - b : each;
		r.f.n = (unsigned)n * threads;
		place_blocks(&r, grid, b, threads);
		group(&r);
	}
	return r.f.wild ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}
