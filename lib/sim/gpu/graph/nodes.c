/* Adds nodes of all types to a graph. */
#include "sim/gpu/graph/graph.h"

#include <stdlib.h>
#include <string.h>

void sim_node_kernel_v1(CUgraphNodeParams *out, const CUDA_KERNEL_NODE_PARAMS *p)
{
	memset(out, 0, sizeof(*out));
	out->type = SIM_NODE_KERNEL;
	if (p)
		memcpy(&out->kernel, p, offsetof(CUDA_KERNEL_NODE_PARAMS, kern));
}

static CUresult kernel_work(struct sim_work *w, const CUDA_KERNEL_NODE_PARAMS *p,
			    struct sim_ctx *ctx)
{
	CUDA_KERNEL_NODE_PARAMS q = *p;
	if (!q.func) { /* a CUkernel, which is the same here */
		q.func = q.kern;
		ctx = q.ctx ? q.ctx : ctx;
	}
	return sim_launch_set(w, ctx, &q);
}

static CUresult set_work(struct sim_work *w, const CUDA_MEMSET_NODE_PARAMS *p, struct sim_ctx *ctx)
{
	if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_set_fill(w, p->dst, p->pitch, p->value, p->elementSize, p->width, p->height,
			    ctx);
}

static CUresult plain(struct sim_work *w, enum sim_kind kind, struct sim_ctx *ctx)
{
	*w = (struct sim_work){.kind = kind, .engine = SIM_ENG_NONE, .dev = ctx->dev};
	return CUDA_SUCCESS;
}

CUresult sim_node_work(struct sim_work *w, const CUgraphNodeParams *p, struct sim_ctx *ctx)
{
	struct sim_range r;
	switch (p->type) {
	case SIM_NODE_KERNEL:
		return kernel_work(w, &p->kernel, ctx);
	case SIM_NODE_MEMCPY:
		return sim_copy_from_3d(w, &p->memcpy.copyParams,
					p->memcpy.copyCtx ? p->memcpy.copyCtx : ctx);
	case SIM_NODE_MEMSET:
		return set_work(w, &p->memset, ctx);
	case SIM_NODE_HOST:
		if (!p->host.fn)
			return CUDA_ERROR_INVALID_VALUE;
		*w = (struct sim_work){.kind = SIM_K_HOST,
				       .engine = SIM_ENG_HOST,
				       .dev = ctx->dev,
				       .host = {.fn = p->host.fn, .arg = p->host.userData}};
		return CUDA_SUCCESS;
	case SIM_NODE_EMPTY:
		return plain(w, SIM_K_MARK, ctx);
	case SIM_NODE_WAIT_EVENT:
	case SIM_NODE_RECORD_EVENT:
		if (!p->event || p->event->magic != SIM_MAGIC_EVENT)
			return CUDA_ERROR_INVALID_VALUE;
		plain(w, SIM_K_EVENT, ctx);
		w->event = p->event;
		return CUDA_SUCCESS;
	case SIM_NODE_FREE:
		if (!sim_mem_find((void *)(uintptr_t)p->free, &r))
			return CUDA_ERROR_INVALID_VALUE;
		plain(w, SIM_K_FREE, ctx);
		w->free = p->free;
		return CUDA_SUCCESS;
	case SIM_NODE_MEMOP:
		if (p->memOp.flags)
			return CUDA_ERROR_INVALID_VALUE;
		return sim_values_from(w, p->memOp.ctx ? p->memOp.ctx : ctx, p->memOp.paramArray,
				       p->memOp.count, false);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static CUresult alloc_work(struct sim_work *w, CUDA_MEM_ALLOC_NODE_PARAMS *p, struct sim_ctx *ctx)
{
	enum { PINNED = 1, ON_DEVICE = 1 };
	if (p->poolProps.allocType != PINNED || p->poolProps.handleTypes ||
	    p->poolProps.locationType != ON_DEVICE || p->poolProps.locationId < 0 ||
	    p->poolProps.locationId >= sim_cfg.devices || !p->bytesize)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_reserve *r = sim_reserve_new(&sim_dev[p->poolProps.locationId], p->bytesize);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->dptr = sim_reserve_address(r);
	plain(w, SIM_K_ALLOC, ctx);
	w->reserve = r;
	return CUDA_SUCCESS;
}

/* A graph with memory of its own or with conditions can only be moved below a node, not copied. */
static CUresult child_fits(const struct sim_graph *child, const struct sim_graph *g, bool move)
{
	if (!sim_graph_is(child) || child == g || child->owner)
		return CUDA_ERROR_INVALID_VALUE;
	if (!move && (sim_graph_has(child, SIM_NODE_ALLOC) || sim_graph_has(child, SIM_NODE_FREE) ||
		      sim_graph_has(child, SIM_NODE_CONDITIONAL)))
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

static void put_below(struct sim_node *n, CUgraphNodeParams *p)
{
	enum { MOVE = 1 };
	if (p->type == SIM_NODE_GRAPH) {
		n->bodies = calloc(1, sizeof(*n->bodies));
		n->nbodies = 1;
		n->bodies[0] = p->graph.ownership == MOVE ? p->graph.graph
							  : sim_graph_copy(p->graph.graph);
		n->bodies[0]->owner = n;
	} else {
		sim_node_bodies(n, p->conditional.size);
		n->condition = (struct sim_condition *)(uintptr_t)p->conditional.handle;
		n->condition_type = p->conditional.type;
		p->conditional.phGraph_out = n->bodies;
	}
}

struct deps {
	const CUgraphNode *nodes;
	const CUgraphEdgeData *edges;
	size_t n;
};

static bool fits(const struct sim_graph *g, const struct deps *d)
{
	bool ok = sim_graph_is(g) && (!d->n || d->nodes);
	for (size_t i = 0; ok && i < d->n; i++)
		ok = sim_node_is(d->nodes[i]) && d->nodes[i]->graph == g;
	return ok;
}

/* Allowed below a conditional node. */
static bool in_body(int type)
{
	return type == SIM_NODE_KERNEL || type == SIM_NODE_EMPTY || type == SIM_NODE_GRAPH ||
	       type == SIM_NODE_MEMSET || type == SIM_NODE_MEMCPY || type == SIM_NODE_CONDITIONAL;
}

static CUresult add(CUgraphNode *out, CUgraph g, const struct deps *d, CUgraphNodeParams *p)
{
	struct sim_ctx *ctx = sim_ctx_current();
	struct sim_work w;
	CUresult r;
	if (!out || !p || !fits(g, d))
		return CUDA_ERROR_INVALID_VALUE;
	if (g->owner && g->owner->type == SIM_NODE_CONDITIONAL && !in_body(p->type))
		return CUDA_ERROR_NOT_SUPPORTED;
	switch (p->type) {
	case SIM_NODE_GRAPH:
		r = child_fits(p->graph.graph, g, p->graph.ownership == 1);
		plain(&w, SIM_K_MARK, ctx);
		break;
	case SIM_NODE_CONDITIONAL:
		r = sim_condition_use(&p->conditional, g);
		plain(&w, SIM_K_MARK, ctx);
		break;
	case SIM_NODE_ALLOC:
		r = alloc_work(&w, &p->alloc, ctx);
		break;
	default:
		r = sim_node_work(&w, p, ctx);
	}
	if (r)
		return r;
	struct sim_node *n = sim_graph_add(g, p->type, &w, NULL, 0);
	for (size_t i = 0; i < d->n; i++)
		sim_node_depend(n, d->nodes[i], d->edges ? &d->edges[i] : NULL);
	if (p->type == SIM_NODE_GRAPH || p->type == SIM_NODE_CONDITIONAL)
		put_below(n, p);
	*out = n;
	return CUDA_SUCCESS;
}

static CUresult add_any2(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			 const CUgraphEdgeData *edges, size_t ndeps, CUgraphNodeParams *p)
{
	struct deps d = {deps, edges, ndeps};
	(void)c;
	return add(out, g, &d, p);
}

static CUresult add_any(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			size_t ndeps, CUgraphNodeParams *p)
{
	return add_any2(c, out, g, deps, NULL, ndeps, p);
}

/* One function per type: its parameters are converted to the generic ones. */
#define ADDER(name, params, setup)                                                                 \
	static CUresult name(struct sim_call *c, CUgraphNode *out, CUgraph g,                      \
			     const CUgraphNode *deps, size_t ndeps, params)                        \
	{                                                                                          \
		CUgraphNodeParams q = {0};                                                         \
		setup;                                                                             \
		return add_any(c, out, g, deps, ndeps, &q);                                        \
	}
#define COMMA ,
#define GIVEN(p)                                                                                   \
	if (!(p))                                                                                  \
	return CUDA_ERROR_INVALID_VALUE
ADDER(add_kernel, const CUDA_KERNEL_NODE_PARAMS *p, GIVEN(p); sim_node_kernel_v1(&q, p))
ADDER(add_kernel2, const CUDA_KERNEL_NODE_PARAMS *p, GIVEN(p); q.type = SIM_NODE_KERNEL;
      q.kernel = *p)
ADDER(add_copy, const CUDA_MEMCPY3D *p COMMA CUcontext ctx, GIVEN(p); q.type = SIM_NODE_MEMCPY;
      q.memcpy.copyParams = *p; q.memcpy.copyCtx = ctx)
ADDER(add_set, const CUDA_MEMSET_NODE_PARAMS *p, GIVEN(p); q.type = SIM_NODE_MEMSET; q.memset = *p)
ADDER(add_host, const CUDA_HOST_NODE_PARAMS *p, GIVEN(p); q.type = SIM_NODE_HOST; q.host = *p)
ADDER(add_graph, CUgraph child, q.type = SIM_NODE_GRAPH; q.graph.graph = child)
ADDER(add_record, CUevent e, q.type = SIM_NODE_RECORD_EVENT; q.event = e)
ADDER(add_wait, CUevent e, q.type = SIM_NODE_WAIT_EVENT; q.event = e)
ADDER(add_free, CUdeviceptr d, q.type = SIM_NODE_FREE; q.free = d)
ADDER(add_memop, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, GIVEN(p); q.type = SIM_NODE_MEMOP;
      q.memOp = *p)

static CUresult add_empty(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			  size_t ndeps)
{
	CUgraphNodeParams q = {.type = SIM_NODE_EMPTY};
	return add_any(c, out, g, deps, ndeps, &q);
}

static CUresult add_set_in(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			   size_t ndeps, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
	(void)ctx;
	return add_set(c, out, g, deps, ndeps, p);
}

static CUresult add_alloc(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			  size_t ndeps, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	CUgraphNodeParams q = {.type = SIM_NODE_ALLOC};
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	q.alloc = *p;
	CUresult r = add_any(c, out, g, deps, ndeps, &q);
	if (!r)
		p->dptr = q.alloc.dptr;
	return r;
}

#define DEPS CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd
SIM_API(cuGraphAddKernelNode, SIM_NEED_CTX, add_kernel, (DEPS, const CUDA_KERNEL_NODE_PARAMS *p),
	(n, g, d, nd, p))
SIM_API(cuGraphAddKernelNode_v2, SIM_NEED_CTX, add_kernel2,
	(DEPS, const CUDA_KERNEL_NODE_PARAMS *p), (n, g, d, nd, p))
SIM_API(cuGraphAddMemcpyNode, SIM_NEED_CTX, add_copy, (DEPS, const CUDA_MEMCPY3D *p, CUcontext ctx),
	(n, g, d, nd, p, ctx))
SIM_API(cuGraphAddMemsetNode, SIM_NEED_CTX, add_set_in,
	(DEPS, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx), (n, g, d, nd, p, ctx))
SIM_API(cuGraphAddHostNode, SIM_NEED_CTX, add_host, (DEPS, const CUDA_HOST_NODE_PARAMS *p),
	(n, g, d, nd, p))
SIM_API(cuGraphAddEmptyNode, SIM_NEED_CTX, add_empty, (DEPS), (n, g, d, nd))
SIM_API(cuGraphAddChildGraphNode, SIM_NEED_CTX, add_graph, (DEPS, CUgraph child),
	(n, g, d, nd, child))
SIM_API(cuGraphAddEventRecordNode, SIM_NEED_CTX, add_record, (DEPS, CUevent e), (n, g, d, nd, e))
SIM_API(cuGraphAddEventWaitNode, SIM_NEED_CTX, add_wait, (DEPS, CUevent e), (n, g, d, nd, e))
SIM_API(cuGraphAddMemAllocNode, SIM_NEED_CTX, add_alloc, (DEPS, CUDA_MEM_ALLOC_NODE_PARAMS *p),
	(n, g, d, nd, p))
SIM_API(cuGraphAddMemFreeNode, SIM_NEED_CTX, add_free, (DEPS, CUdeviceptr p), (n, g, d, nd, p))
SIM_API(cuGraphAddBatchMemOpNode, SIM_NEED_CTX, add_memop,
	(DEPS, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p), (n, g, d, nd, p))
SIM_API(cuGraphAddNode, SIM_NEED_CTX, add_any, (DEPS, CUgraphNodeParams *p), (n, g, d, nd, p))
SIM_API(cuGraphAddNode_v2, SIM_NEED_CTX, add_any2,
	(CUgraphNode * n, CUgraph g, const CUgraphNode *d, const CUgraphEdgeData *e, size_t nd,
	 CUgraphNodeParams *p),
	(n, g, d, e, nd, p))
