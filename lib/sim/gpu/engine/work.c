/* Effect and duration of operations: copies, memsets, kernels, host functions. */
#include "sim/gpu/sim.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

size_t sim_copy_bytes(const struct sim_copy *c)
{
	return c->width * c->height * c->depth;
}

struct sim_work sim_work_dup(const struct sim_work *w)
{
	struct sim_work d = *w;
	if (w->kind == SIM_K_KERNEL && w->launch.args) {
		d.launch.args = malloc(w->launch.nargs);
		memcpy(d.launch.args, w->launch.args, w->launch.nargs);
	}
	if (w->kind == SIM_K_VALUE) {
		d.values.v = malloc((w->values.n + 1) * sizeof(*d.values.v));
		memcpy(d.values.v, w->values.v, w->values.n * sizeof(*d.values.v));
	}
	return d;
}

void sim_work_release(struct sim_work *w)
{
	if (w->kind == SIM_K_KERNEL) {
		free(w->launch.args);
		w->launch.args = NULL;
	}
	if (w->kind == SIM_K_VALUE) {
		free(w->values.v);
		w->values.v = NULL;
	}
	if (w->kind == SIM_K_COPY) {
		free(w->copy.staged);
		w->copy.staged = NULL;
	}
}

static uint64_t copy_ns(const struct sim_copy *c)
{
	double gbps[] = {sim_cfg.h2d_gbps, sim_cfg.d2h_gbps, sim_cfg.d2d_gbps, sim_cfg.p2p_gbps,
			 sim_cfg.h2d_gbps};
	double rate = gbps[c->dir] * (c->pageable ? sim_cfg.pageable_factor : 1);
	return sim_cfg.copy_latency_ns + (uint64_t)((double)sim_copy_bytes(c) / rate);
}

/* Duration by the first matching rule; a rule without a grid is looked up only once per kernel. */
static bool by_rule(struct sim_func *f, const unsigned *grid, uint64_t *ns)
{
	int found = __atomic_load_n(&f->rule, __ATOMIC_RELAXED);
	if (found == -2) {
		bool always = true;
		for (int i = 0; i < sim_cfg.nrules; i++) {
			const struct sim_rule *r = &sim_cfg.rules[i];
			if (fnmatch(r->glob, f->name, 0))
				continue;
			if (!r->ngrid) {
				if (always)
					__atomic_store_n(&f->rule, i, __ATOMIC_RELAXED);
				*ns = r->ns;
				return true;
			}
			always = false;
			if (!memcmp(r->grid, grid, (size_t)r->ngrid * sizeof(unsigned))) {
				*ns = r->ns;
				return true;
			}
		}
		if (always)
			__atomic_store_n(&f->rule, -1, __ATOMIC_RELAXED);
		return false;
	}
	if (found >= 0)
		*ns = sim_cfg.rules[found].ns;
	return found >= 0;
}

/* Whether a kernel is named spin*(u64 ns): a convention that the same PTX follows on a real GPU. */
static bool spins(const struct sim_func *f)
{
	return !strncmp(f->name, "spin", 4) && f->nparams >= 1 && f->params[0].size == 8;
}

static uint64_t kernel_ns(const struct sim_launch *l)
{
	static uint64_t launched;
	uint64_t ns;
	if (sim_cfg.hang_after &&
	    __atomic_add_fetch(&launched, 1, __ATOMIC_RELAXED) == sim_cfg.hang_after) {
		sim_truth_note("kernel %s hangs", l->func->name);
		return SIM_NEVER;
	}
	if (by_rule(l->func, l->grid, &ns))
		return ns;
	if (spins(l->func) && l->args) {
		memcpy(&ns, l->args, 8);
		return ns;
	}
	double threads = (double)l->grid[0] * l->grid[1] * l->grid[2] * l->block[0] * l->block[1] *
			 l->block[2];
	return sim_cfg.kernel_ns + (uint64_t)(threads * sim_cfg.kernel_thread_ns);
}

uint64_t sim_work_ns(const struct sim_work *w)
{
	switch (w->kind) {
	case SIM_K_KERNEL:
		return kernel_ns(&w->launch);
	case SIM_K_COPY:
		return copy_ns(&w->copy);
	case SIM_K_MEMSET:
		return 2000 + (uint64_t)((double)(w->set.width * w->set.height * w->set.elem) /
					 sim_cfg.d2d_gbps);
	default:
		return 0;
	}
}

static bool known(const void *p)
{
	struct sim_range r;
	return sim_mem_find(p, &r);
}

/* Whether device memory was freed since the call. A device would report a fault; accessing it here
 * would end the process. */
static bool gone(const struct sim_work *w)
{
	const struct sim_copy *c = &w->copy;
	if (w->kind == SIM_K_MEMSET)
		return !known(w->set.dst);
	return (c->dir != SIM_H2D && c->dir != SIM_H2H && !known(c->src)) ||
	       (c->dir != SIM_D2H && c->dir != SIM_H2H && !known(c->dst));
}

static void fault(const struct sim_work *w)
{
	sim_truth_note("%s: its memory is freed", w->kind == SIM_K_COPY ? "copy" : "memset");
	if (w->ctx)
		w->ctx->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void copy(const struct sim_copy *c)
{
	if (c->dst == c->src) /* a prefetch */
		return;
	if (c->staged) {
		memcpy(c->dst, c->staged, c->width);
		return;
	}
	for (size_t z = 0; z < c->depth; z++)
		for (size_t y = 0; y < c->height; y++)
			memmove(c->dst + z * c->dslice + y * c->dpitch,
				c->src + z * c->sslice + y * c->spitch, c->width);
}

static void set(const struct sim_set *s)
{
	for (size_t y = 0; y < s->height; y++) {
		char *row = s->dst + y * s->pitch;
		if (s->elem == 1)
			memset(row, (int)s->value, s->width);
		else
			for (size_t x = 0; x < s->width; x++)
				memcpy(row + x * s->elem, &s->value, s->elem);
	}
}

static void interpret(const struct sim_launch *l)
{
	struct sim_func *f = l->func;
	char err[160] = "";
	if (!f->text || !l->args || spins(f))
		return;
	if (!f->decoded) {
		f->prog = ptx_decode(f, err, sizeof(err));
		f->decoded = true;
		if (!f->prog)
			sim_truth_note("not interpreted: %s: %s", f->name, err);
	}
	if (!f->prog)
		return;
	CUresult r = ptx_run(f->prog, l->grid, l->block, l->shared, l->args, l->nargs);
	if (r) {
		sim_truth_note("kernel %s: %s", f->name,
			       r == CUDA_ERROR_ILLEGAL_ADDRESS ? "wild access" : "no memory");
		l->ctx->sticky = r;
	}
}

static void call_host(const struct sim_work *w)
{
	static uint64_t called;
	if (sim_cfg.abort_after &&
	    __atomic_add_fetch(&called, 1, __ATOMIC_RELAXED) == sim_cfg.abort_after)
		abort();
	sim_in_callback = true;
	if (w->host.fn)
		w->host.fn(w->host.arg);
	else
		w->host.cb(w->host.stream, CUDA_SUCCESS, w->host.arg);
	sim_in_callback = false;
}

void sim_perform(const struct sim_work *w)
{
	switch (w->kind) {
	case SIM_K_COPY:
		if (gone(w))
			fault(w);
		else
			copy(&w->copy);
		break;
	case SIM_K_MEMSET:
		if (gone(w))
			fault(w);
		else
			set(&w->set);
		break;
	case SIM_K_KERNEL:
		if (sim_cfg.interp)
			interpret(&w->launch);
		break;
	case SIM_K_HOST:
		call_host(w);
		break;
	default:
		break;
	}
}
