/* Graphs: building and reading them. Launching is in exec.c. */
#include "simgpu/api.h"

#include <stdlib.h>
#include <string.h>

static bool is_graph(const struct sim_graph *g)
{
	return g && g->magic == SIM_MAGIC_GRAPH;
}

static bool is_node(const struct sim_node *n)
{
	return n && n->magic == SIM_MAGIC_NODE;
}

struct sim_graph *sim_graph_new(void)
{
	struct sim_graph *g = calloc(1, sizeof(*g));
	g->magic = SIM_MAGIC_GRAPH;
	g->id = (uint32_t)sim_new_id();
	return g;
}

static void depend(struct sim_node *n, struct sim_node *on)
{
	for (size_t i = 0; i < n->ndeps; i++)
		if (n->deps[i] == on)
			return;
	n->deps = realloc(n->deps, (n->ndeps + 1) * sizeof(*n->deps));
	n->deps[n->ndeps++] = on;
}

struct sim_node *sim_graph_add(struct sim_graph *g, int type, const struct sim_work *w,
			       struct sim_node *const *deps, size_t ndeps)
{
	struct sim_node *n = calloc(1, sizeof(*n));
	n->magic = SIM_MAGIC_NODE;
	n->type = type;
	n->graph = g;
	n->index = g->n;
	n->work = *w;
	for (size_t i = 0; i < ndeps; i++)
		depend(n, deps[i]);
	if (!(g->n & (g->n + 1))) /* full at each power of two less one */
		g->nodes = realloc(g->nodes, (g->n * 2 + 2) * sizeof(*g->nodes));
	g->nodes[g->n++] = n;
	return n;
}

static void free_node(struct sim_node *n)
{
	sim_work_release(&n->work);
	n->magic = 0;
	free(n->params);
	free(n->deps);
	free(n);
}

void sim_graph_free(struct sim_graph *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->nodes[i])
			free_node(g->nodes[i]);
	g->magic = 0;
	free(g->nodes);
	free(g);
}

static CUresult create(struct sim_call *c, CUgraph *out, unsigned flags)
{
	(void)c;
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*out = sim_graph_new();
	return CUDA_SUCCESS;
}

static CUresult destroy(struct sim_call *c, CUgraph g)
{
	(void)c;
	if (!is_graph(g))
		return CUDA_ERROR_INVALID_VALUE;
	sim_graph_free(g);
	return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *out, CUgraph g, int type, struct sim_work *w,
		    const CUgraphNode *deps, size_t ndeps)
{
	bool ok = out && is_graph(g) && (!ndeps || deps);
	for (size_t i = 0; ok && i < ndeps; i++)
		ok = is_node(deps[i]) && deps[i]->graph == g;
	if (!ok) {
		sim_work_release(w);
		return CUDA_ERROR_INVALID_VALUE;
	}
	*out = sim_graph_add(g, type, w, deps, ndeps);
	return CUDA_SUCCESS;
}

static CUresult add_kernel(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			   size_t ndeps, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct sim_work w;
	(void)c;
	CUresult r = p ? sim_launch_set(&w, sim_ctx_current(), p) : CUDA_ERROR_INVALID_VALUE;
	return r ? r : add(out, g, SIM_NODE_KERNEL, &w, deps, ndeps);
}

/* Version 2 may name a CUkernel instead of a function; here they are one. */
static CUresult add_kernel2(struct sim_call *c, CUgraphNode *out, CUgraph g,
			    const CUgraphNode *deps, size_t ndeps, const CUDA_KERNEL_NODE_PARAMS *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_KERNEL_NODE_PARAMS q = *p;
	if (!q.func)
		q.func = q.kern;
	return add_kernel(c, out, g, deps, ndeps, &q);
}

static CUresult add_copy(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			 size_t ndeps, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
	struct sim_work w;
	(void)c;
	CUresult r = p ? sim_copy_from_3d(&w, p, ctx ? ctx : sim_ctx_current())
		       : CUDA_ERROR_INVALID_VALUE;
	return r ? r : add(out, g, SIM_NODE_MEMCPY, &w, deps, ndeps);
}

static CUresult fill_set(struct sim_work *w, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
	if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
		return CUDA_ERROR_INVALID_VALUE;
	return sim_set_fill(w, p->dst, p->pitch, p->value, p->elementSize, p->width, p->height,
			    ctx ? ctx : sim_ctx_current());
}

static CUresult add_set(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			size_t ndeps, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
	struct sim_work w;
	(void)c;
	CUresult r = fill_set(&w, p, ctx);
	return r ? r : add(out, g, SIM_NODE_MEMSET, &w, deps, ndeps);
}

static CUresult add_host(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			 size_t ndeps, const CUDA_HOST_NODE_PARAMS *p)
{
	(void)c;
	if (!p || !p->fn)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_work w = {.kind = SIM_K_HOST,
			     .engine = SIM_ENG_HOST,
			     .dev = sim_ctx_current()->dev,
			     .host = {.fn = p->fn, .arg = p->userData}};
	return add(out, g, SIM_NODE_HOST, &w, deps, ndeps);
}

static CUresult add_empty(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			  size_t ndeps)
{
	(void)c;
	struct sim_work w = {
		.kind = SIM_K_MARK, .engine = SIM_ENG_NONE, .dev = sim_ctx_current()->dev};
	return add(out, g, SIM_NODE_EMPTY, &w, deps, ndeps);
}

static CUresult add_any(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			size_t ndeps, const CUgraphNodeParams *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	switch (p->type) {
	case SIM_NODE_KERNEL:
		return add_kernel2(c, out, g, deps, ndeps, &p->kernel);
	case SIM_NODE_MEMCPY:
		return add_copy(c, out, g, deps, ndeps, &p->memcpy.copyParams, p->memcpy.copyCtx);
	case SIM_NODE_MEMSET:
		return add_set(c, out, g, deps, ndeps, &p->memset, NULL);
	case SIM_NODE_HOST:
		return add_host(c, out, g, deps, ndeps, &p->host);
	case SIM_NODE_EMPTY:
		return add_empty(c, out, g, deps, ndeps);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static CUresult add_any2(struct sim_call *c, CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
			 const void *edges, size_t ndeps, const CUgraphNodeParams *p)
{
	(void)edges;
	return add_any(c, out, g, deps, ndeps, p);
}

static CUresult add_deps(struct sim_call *c, CUgraph g, const CUgraphNode *from,
			 const CUgraphNode *to, size_t n)
{
	(void)c;
	if (!is_graph(g))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (!is_node(from[i]) || !is_node(to[i]))
			return CUDA_ERROR_INVALID_VALUE;
		depend(to[i], from[i]);
	}
	return CUDA_SUCCESS;
}

static CUresult add_deps2(struct sim_call *c, CUgraph g, const CUgraphNode *from,
			  const CUgraphNode *to, const void *edges, size_t n)
{
	(void)edges;
	return add_deps(c, g, from, to, n);
}

static CUresult copy_graph(struct sim_call *c, CUgraph *out, CUgraph g)
{
	(void)c;
	if (!out || !is_graph(g))
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_graph *k = sim_graph_new();
	for (size_t i = 0; i < g->n; i++) {
		struct sim_work w = {.kind = SIM_K_MARK, .engine = SIM_ENG_NONE};
		if (g->nodes[i])
			w = sim_work_dup(&g->nodes[i]->work);
		sim_graph_add(k, g->nodes[i] ? g->nodes[i]->type : SIM_NODE_EMPTY, &w, NULL, 0);
	}
	for (size_t i = 0; i < g->n; i++)
		for (size_t j = 0; g->nodes[i] && j < g->nodes[i]->ndeps; j++)
			depend(k->nodes[i], k->nodes[g->nodes[i]->deps[j]->index]);
	*out = k;
	return CUDA_SUCCESS;
}

static CUresult destroy_node(struct sim_call *c, CUgraphNode n)
{
	(void)c;
	if (!is_node(n))
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_graph *g = n->graph;
	g->nodes[n->index] = NULL;
	for (size_t i = 0; i < g->n; i++) {
		struct sim_node *o = g->nodes[i];
		for (size_t j = 0; o && j < o->ndeps; j++)
			if (o->deps[j] == n)
				o->deps[j--] = o->deps[--o->ndeps];
	}
	free_node(n);
	return CUDA_SUCCESS;
}

/* ---- reading ---- */
/* Gives up to *n nodes for which want() holds; with out NULL only their number. */
static CUresult list(CUgraph g, CUgraphNode *out, size_t *n, bool roots)
{
	size_t k = 0;
	if (!is_graph(g) || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < g->n; i++) {
		if (!g->nodes[i] || (roots && g->nodes[i]->ndeps))
			continue;
		if (out && k < *n)
			out[k] = g->nodes[i];
		k++;
	}
	*n = out && k > *n ? *n : k;
	return CUDA_SUCCESS;
}

static CUresult get_nodes(struct sim_call *c, CUgraph g, CUgraphNode *out, size_t *n)
{
	(void)c;
	return list(g, out, n, false);
}

static CUresult get_roots(struct sim_call *c, CUgraph g, CUgraphNode *out, size_t *n)
{
	(void)c;
	return list(g, out, n, true);
}

static CUresult get_edges(struct sim_call *c, CUgraph g, CUgraphNode *from, CUgraphNode *to,
			  size_t *n)
{
	size_t k = 0;
	(void)c;
	if (!is_graph(g) || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < g->n; i++) {
		for (size_t j = 0; g->nodes[i] && j < g->nodes[i]->ndeps; j++, k++) {
			if (from && to && k < *n) {
				from[k] = g->nodes[i]->deps[j];
				to[k] = g->nodes[i];
			}
		}
	}
	*n = from && k > *n ? *n : k;
	return CUDA_SUCCESS;
}

static CUresult get_edges2(struct sim_call *c, CUgraph g, CUgraphNode *from, CUgraphNode *to,
			   void *edges, size_t *n)
{
	enum { EDGE = 8 };
	CUresult r = get_edges(c, g, from, to, n);
	if (!r && edges)
		memset(edges, 0, *n * EDGE);
	return r;
}

static CUresult get_deps(struct sim_call *c, CUgraphNode n, CUgraphNode *out, size_t *count)
{
	(void)c;
	if (!is_node(n) || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; out && i < n->ndeps && i < *count; i++)
		out[i] = n->deps[i];
	*count = out && n->ndeps > *count ? *count : n->ndeps;
	return CUDA_SUCCESS;
}

static CUresult get_type(struct sim_call *c, CUgraphNode n, int *type)
{
	(void)c;
	if (!is_node(n) || !type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = n->type;
	return CUDA_SUCCESS;
}

/* Fills the part that all versions have. */
static CUresult kernel_params(struct sim_call *c, CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p)
{
	(void)c;
	if (!is_node(n) || n->type != SIM_NODE_KERNEL || !p)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_launch *l = &n->work.launch;
	p->func = l->func;
	p->gridDimX = l->grid[0];
	p->gridDimY = l->grid[1];
	p->gridDimZ = l->grid[2];
	p->blockDimX = l->block[0];
	p->blockDimY = l->block[1];
	p->blockDimZ = l->block[2];
	p->sharedMemBytes = l->shared;
	if (!n->params && l->func->nparams > 0 && l->args) {
		n->params = calloc((size_t)l->func->nparams, sizeof(void *));
		for (int i = 0; i < l->func->nparams; i++)
			n->params[i] = l->args + l->func->params[i].off;
	}
	p->kernelParams = n->params;
	p->extra = NULL;
	return CUDA_SUCCESS;
}

static CUresult kernel_params2(struct sim_call *c, CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p)
{
	CUresult r = kernel_params(c, n, p);
	if (!r) {
		p->kern = NULL;
		p->ctx = n->work.launch.ctx;
	}
	return r;
}

static CUresult copy_params(struct sim_call *c, CUgraphNode n, CUDA_MEMCPY3D *p)
{
	(void)c;
	if (!is_node(n) || n->type != SIM_NODE_MEMCPY || !p)
		return CUDA_ERROR_INVALID_VALUE;
	const struct sim_copy *k = &n->work.copy;
	bool hsrc = k->dir == SIM_H2D || k->dir == SIM_H2H,
	     hdst = k->dir == SIM_D2H || k->dir == SIM_H2H;
	*p = (CUDA_MEMCPY3D){.srcMemoryType = hsrc ? SIM_MEM_HOST : SIM_MEM_DEVICE,
			     .dstMemoryType = hdst ? SIM_MEM_HOST : SIM_MEM_DEVICE,
			     .srcHost = hsrc ? k->src : NULL,
			     .srcDevice = hsrc ? 0 : (uintptr_t)k->src,
			     .dstHost = hdst ? k->dst : NULL,
			     .dstDevice = hdst ? 0 : (uintptr_t)k->dst,
			     .srcPitch = k->spitch ? k->spitch : k->width,
			     .dstPitch = k->dpitch ? k->dpitch : k->width,
			     .srcHeight = k->height,
			     .dstHeight = k->height,
			     .WidthInBytes = k->width,
			     .Height = k->height,
			     .Depth = k->depth};
	return CUDA_SUCCESS;
}

static CUresult set_params(struct sim_call *c, CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *p)
{
	(void)c;
	if (!is_node(n) || n->type != SIM_NODE_MEMSET || !p)
		return CUDA_ERROR_INVALID_VALUE;
	const struct sim_set *s = &n->work.set;
	*p = (CUDA_MEMSET_NODE_PARAMS){(uintptr_t)s->dst, s->pitch, s->value,
				       s->elem,		  s->width, s->height};
	return CUDA_SUCCESS;
}

static CUresult host_params(struct sim_call *c, CUgraphNode n, CUDA_HOST_NODE_PARAMS *p)
{
	(void)c;
	if (!is_node(n) || n->type != SIM_NODE_HOST || !p)
		return CUDA_ERROR_INVALID_VALUE;
	*p = (CUDA_HOST_NODE_PARAMS){n->work.host.fn, n->work.host.arg};
	return CUDA_SUCCESS;
}

#define DEPS CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd
SIM_API(cuGraphCreate, SIM_NEED_INIT, create, (CUgraph * g, unsigned flags), (g, flags))
SIM_API(cuGraphDestroy, SIM_NEED_INIT, destroy, (CUgraph g), (g))
SIM_API(cuGraphAddKernelNode, SIM_NEED_CTX, add_kernel, (DEPS, const CUDA_KERNEL_NODE_PARAMS *p),
	(n, g, d, nd, p))
SIM_API(cuGraphAddKernelNode_v2, SIM_NEED_CTX, add_kernel2,
	(DEPS, const CUDA_KERNEL_NODE_PARAMS *p), (n, g, d, nd, p))
SIM_API(cuGraphAddMemcpyNode, SIM_NEED_CTX, add_copy, (DEPS, const CUDA_MEMCPY3D *p, CUcontext ctx),
	(n, g, d, nd, p, ctx))
SIM_API(cuGraphAddMemsetNode, SIM_NEED_CTX, add_set,
	(DEPS, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx), (n, g, d, nd, p, ctx))
SIM_API(cuGraphAddHostNode, SIM_NEED_CTX, add_host, (DEPS, const CUDA_HOST_NODE_PARAMS *p),
	(n, g, d, nd, p))
SIM_API(cuGraphAddEmptyNode, SIM_NEED_CTX, add_empty, (DEPS), (n, g, d, nd))
SIM_API(cuGraphAddNode, SIM_NEED_CTX, add_any, (DEPS, const CUgraphNodeParams *p), (n, g, d, nd, p))
SIM_API(cuGraphAddNode_v2, SIM_NEED_CTX, add_any2,
	(CUgraphNode * n, CUgraph g, const CUgraphNode *d, const void *e, size_t nd,
	 const CUgraphNodeParams *p),
	(n, g, d, e, nd, p))
SIM_API(cuGraphAddDependencies, SIM_NEED_INIT, add_deps,
	(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n), (g, from, to, n))
SIM_API(cuGraphAddDependencies_v2, SIM_NEED_INIT, add_deps2,
	(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const void *e, size_t n),
	(g, from, to, e, n))
SIM_API(cuGraphClone, SIM_NEED_INIT, copy_graph, (CUgraph * out, CUgraph g), (out, g))
SIM_API(cuGraphDestroyNode, SIM_NEED_INIT, destroy_node, (CUgraphNode n), (n))
SIM_API(cuGraphGetNodes, SIM_NEED_INIT, get_nodes, (CUgraph g, CUgraphNode *out, size_t *n),
	(g, out, n))
SIM_API(cuGraphGetRootNodes, SIM_NEED_INIT, get_roots, (CUgraph g, CUgraphNode *out, size_t *n),
	(g, out, n))
SIM_API(cuGraphGetEdges, SIM_NEED_INIT, get_edges,
	(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n), (g, from, to, n))
SIM_API(cuGraphGetEdges_v2, SIM_NEED_INIT, get_edges2,
	(CUgraph g, CUgraphNode *from, CUgraphNode *to, void *e, size_t *n), (g, from, to, e, n))
SIM_API(cuGraphNodeGetDependencies, SIM_NEED_INIT, get_deps,
	(CUgraphNode n, CUgraphNode *out, size_t *k), (n, out, k))
SIM_API(cuGraphNodeGetType, SIM_NEED_INIT, get_type, (CUgraphNode n, int *type), (n, type))
SIM_API(cuGraphKernelNodeGetParams, SIM_NEED_INIT, kernel_params,
	(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p), (n, p))
SIM_API(cuGraphKernelNodeGetParams_v2, SIM_NEED_INIT, kernel_params2,
	(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p), (n, p))
SIM_API(cuGraphMemcpyNodeGetParams, SIM_NEED_INIT, copy_params, (CUgraphNode n, CUDA_MEMCPY3D *p),
	(n, p))
SIM_API(cuGraphMemsetNodeGetParams, SIM_NEED_INIT, set_params,
	(CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *p), (n, p))
SIM_API(cuGraphHostNodeGetParams, SIM_NEED_INIT, host_params,
	(CUgraphNode n, CUDA_HOST_NODE_PARAMS *p), (n, p))
