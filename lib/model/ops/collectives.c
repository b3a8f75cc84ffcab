#include "base/bisect.h"
#include "model/ops/collectives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/opened.h"

#define CALLS_MOST (1u << 20)
#define THREADS 64u /* threads whose groups of calls are tracked; one per device is usual */

/* A collective: kernels launched on `thread` from t0 to t1 belong to it. */
struct collective_call {
	uint32_t thread;
	int64_t t0, t1;
	uint64_t id;
};

struct nccl_group {
	uint32_t thread, depth;
	bool any; /* it holds collectives */
	uint64_t id;
};

struct tfh_collectives {
	struct collective_call *call;
	uint32_t n, cap;
	struct nccl_group group[THREADS];
	uint32_t n_group;
	bool sorted;
};

struct tfh_collectives *tfh_collectives_new(void)
{
	return calloc(1, sizeof(struct tfh_collectives));
}

void tfh_collectives_free(struct tfh_collectives *c)
{
	if (c)
		free(c->call);
	free(c);
}

static struct nccl_group *group_of(struct tfh_collectives *c, uint32_t thread)
{
	for (uint32_t i = 0; i < c->n_group; i++)
		if (c->group[i].thread == thread)
			return &c->group[i];
	if (c->n_group == THREADS)
		return NULL;
	c->group[c->n_group] = (struct nccl_group){.thread = thread};
	return &c->group[c->n_group++];
}

static int keep(struct tfh_collectives *c, const struct tfh_event *ev, uint64_t id)
{
	if (c->n == CALLS_MOST)
		return 0;
	if (tfh_room_for((void **)&c->call, &c->cap, c->n, sizeof(*c->call)))
		return -ENOMEM;
	c->call[c->n++] = (struct collective_call){ev->thread, ev->t0, ev->t1, id};
	c->sorted = false;
	return 0;
}

/* At the end of the outermost group, NCCL launches everything in the group. */
static int end_group(struct tfh_collectives *c, const struct tfh_event *ev, struct nccl_group *g)
{
	if (!g || !g->depth || --g->depth || !g->any)
		return 0;
	g->any = false;
	return keep(c, ev, g->id);
}

int tfh_collectives_add(struct tfh_collectives *c, const struct tfh_event *ev)
{
	const char *name = ev->fn->name;
	struct nccl_group *g;

	if (ev->fn->family != TFH_FAM_COMMUNICATION || ev->kind != TFT_CALL)
		return 0;
	g = group_of(c, ev->thread);
	if (!strcmp(name, "ncclGroupStart") && g)
		g->depth++;
	if (!strcmp(name, "ncclGroupEnd"))
		return end_group(c, ev, g);
	/* Point-to-point messages have numbers of their own, which cannot be matched between two
	 * ranks. */
	if (ev->fn->args != TFH_ARGS_COLLECTIVE || !strcmp(name, "ncclSend") ||
	    !strcmp(name, "ncclRecv") || !ev->w[1] || !(uint32_t)ev->w[2])
		return 0;
	uint64_t id = tfh_hash_add(ev->w[1], (uint32_t)ev->w[2]) | 1;
	if (!g || !g->depth)
		return keep(c, ev, id);
	if (!g->any)
		g->id = id;
	g->any = true;
	return 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct collective_call *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

uint64_t tfh_collective_at(struct tfh_collectives *c, uint32_t thread, int64_t issued)
{
	const struct collective_call *v = c->call;

	if (!c->sorted && c->n)
		qsort(c->call, c->n, sizeof(*c->call), by_begin);
	c->sorted = true;
	size_t n = TFH_BISECT(i, 0, c->n,
			      v[i].thread < thread || (v[i].thread == thread && v[i].t0 <= issued));
	return n && v[n - 1].thread == thread && issued <= v[n - 1].t1 ? v[n - 1].id : 0;
}
