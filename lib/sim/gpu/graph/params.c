/* Reads and changes parameters of nodes, in graphs and executable graphs. */
#include "sim/gpu/graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* A pointer into the packed arguments for each parameter; NULL if their layout is unknown. */
static void **pointers(struct sim_node *n)
{
	const struct sim_launch *l = &n->work.launch;
	if (!n->params && l->func->nparams > 0 && l->args) {
		n->params = calloc((size_t)l->func->nparams, sizeof(void *));
		for (int i = 0; i < l->func->nparams; i++)
			n->params[i] = l->args + l->func->params[i].off;
	}
	return n->params;
}

static bool is(const struct sim_node *n, int type, const void *out)
{
	return sim_node_is(n) && n->type == type && out;
}

static CUresult get_kernel2(struct sim_call *c, CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p)
{
	(void)c;
	if (!is(n, SIM_NODE_KERNEL, p))
		return CUDA_ERROR_INVALID_VALUE;
	const struct sim_launch *l = &n->work.launch;
	*p = (CUDA_KERNEL_NODE_PARAMS){.func = l->func,
				       .gridDimX = l->grid[0],
				       .gridDimY = l->grid[1],
				       .gridDimZ = l->grid[2],
				       .blockDimX = l->block[0],
				       .blockDimY = l->block[1],
				       .blockDimZ = l->block[2],
				       .sharedMemBytes = l->shared,
				       .kernelParams = pointers(n),
				       .ctx = l->ctx};
	return CUDA_SUCCESS;
}

/* Fills the fields of the first version. */
static CUresult get_kernel(struct sim_call *c, CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p)
{
	CUDA_KERNEL_NODE_PARAMS q;
	CUresult r = p ? get_kernel2(c, n, &q) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		memcpy(p, &q, offsetof(CUDA_KERNEL_NODE_PARAMS, kern));
	return r;
}

static CUresult get_copy(struct sim_call *c, CUgraphNode n, CUDA_MEMCPY3D *p)
{
	(void)c;
	if (!is(n, SIM_NODE_MEMCPY, p))
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

static CUresult get_set(struct sim_call *c, CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *p)
{
	(void)c;
	if (!is(n, SIM_NODE_MEMSET, p))
		return CUDA_ERROR_INVALID_VALUE;
	const struct sim_set *s = &n->work.set;
	*p = (CUDA_MEMSET_NODE_PARAMS){(uintptr_t)s->dst, s->pitch, s->value,
				       s->elem,		  s->width, s->height};
	return CUDA_SUCCESS;
}

static CUresult get_host(struct sim_call *c, CUgraphNode n, CUDA_HOST_NODE_PARAMS *p)
{
	(void)c;
	if (!is(n, SIM_NODE_HOST, p))
		return CUDA_ERROR_INVALID_VALUE;
	*p = (CUDA_HOST_NODE_PARAMS){n->work.host.fn, n->work.host.arg};
	return CUDA_SUCCESS;
}

static CUresult get_graph(struct sim_call *c, CUgraphNode n, CUgraph *out)
{
	(void)c;
	if (!is(n, SIM_NODE_GRAPH, out))
		return CUDA_ERROR_INVALID_VALUE;
	*out = n->bodies[0];
	return CUDA_SUCCESS;
}

static CUresult get_event(CUgraphNode n, int type, CUevent *out)
{
	if (!is(n, type, out))
		return CUDA_ERROR_INVALID_VALUE;
	*out = n->work.event;
	return CUDA_SUCCESS;
}

static CUresult get_record(struct sim_call *c, CUgraphNode n, CUevent *out)
{
	(void)c;
	return get_event(n, SIM_NODE_RECORD_EVENT, out);
}

static CUresult get_wait(struct sim_call *c, CUgraphNode n, CUevent *out)
{
	(void)c;
	return get_event(n, SIM_NODE_WAIT_EVENT, out);
}

static CUresult get_alloc(struct sim_call *c, CUgraphNode n, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	(void)c;
	if (!is(n, SIM_NODE_ALLOC, p))
		return CUDA_ERROR_INVALID_VALUE;
	memset(p, 0, sizeof(*p));
	sim_reserve_describe(n->work.reserve, p);
	return CUDA_SUCCESS;
}

static CUresult get_free(struct sim_call *c, CUgraphNode n, CUdeviceptr *out)
{
	(void)c;
	if (!is(n, SIM_NODE_FREE, out))
		return CUDA_ERROR_INVALID_VALUE;
	*out = n->work.free;
	return CUDA_SUCCESS;
}

/* The array belongs to the node until its parameters are changed. */
static CUresult get_memop(struct sim_call *c, CUgraphNode n, CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	(void)c;
	if (!is(n, SIM_NODE_MEMOP, p))
		return CUDA_ERROR_INVALID_VALUE;
	const struct sim_values *s = &n->work.values;
	CUstreamBatchMemOpParams *a = calloc(s->n + 1, sizeof(*a));
	for (unsigned i = 0; i < s->n; i++)
		a[i].value = (struct sim_value_params){.operation = s->v[i].what,
						       .address = s->v[i].address,
						       .value64 = s->v[i].value,
						       .flags = s->v[i].flags};
	free(n->params);
	n->params = (void **)a;
	*p = (CUDA_BATCH_MEM_OP_NODE_PARAMS){
		.ctx = sim_ctx_current(), .count = s->n, .paramArray = a};
	return CUDA_SUCCESS;
}

/* ---- changing ---- */
/* Gives n the work described by p; running work has its own copy. */
static CUresult change(struct sim_node *n, const CUgraphNodeParams *p)
{
	struct sim_work w;
	struct sim_ctx *ctx = sim_ctx_current();
	if (!n || n->type != p->type)
		return CUDA_ERROR_INVALID_VALUE;
	if (n->type == SIM_NODE_KERNEL)
		ctx = n->work.launch.ctx;
	if (n->type == SIM_NODE_FREE)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult r = sim_node_work(&w, p, ctx);
	if (r)
		return r;
	sim_work_release(&n->work);
	n->work = w;
	free(n->params);
	n->params = NULL;
	return CUDA_SUCCESS;
}

/* Updates the graph of a child graph node: nodes keep their identity, so it must have the same
 * shape. */
static CUresult change_graph(struct sim_node *n, const struct sim_graph *g)
{
	CUgraphExecUpdateResultInfo info;
	if (!n || n->type != SIM_NODE_GRAPH || !sim_graph_is(g))
		return CUDA_ERROR_INVALID_VALUE;
	return sim_graph_update(n->bodies[0], g, &info) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult change_any(struct sim_node *n, const CUgraphNodeParams *p)
{
	if (!n || !p)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->type == SIM_NODE_GRAPH)
		return change_graph(n, p->graph.graph);
	if (p->type == SIM_NODE_ALLOC || p->type == SIM_NODE_CONDITIONAL)
		return CUDA_ERROR_NOT_SUPPORTED;
	return change(n, p);
}

static CUresult set_any(struct sim_call *c, CUgraphNode n, const CUgraphNodeParams *p)
{
	(void)c;
	return sim_node_is(n) ? change_any(n, p) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult exec_any(struct sim_call *c, CUgraphExec e, CUgraphNode n,
			 const CUgraphNodeParams *p)
{
	(void)c;
	return p ? change_any(sim_exec_find(e, n, p->type), p) : CUDA_ERROR_INVALID_VALUE;
}

/* One pair of functions per type, for a node and for a node of an executable graph. */
#define SETTER(name, params, setup)                                                                \
	static CUresult set_##name(struct sim_call *c, CUgraphNode n, params)                      \
	{                                                                                          \
		CUgraphNodeParams q = {0};                                                         \
		setup;                                                                             \
		return set_any(c, n, &q);                                                          \
	}                                                                                          \
	static CUresult exec_##name(struct sim_call *c, CUgraphExec e, CUgraphNode n, params)      \
	{                                                                                          \
		CUgraphNodeParams q = {0};                                                         \
		setup;                                                                             \
		return exec_any(c, e, n, &q);                                                      \
	}
#define COMMA ,
#define GIVEN(p)                                                                                   \
	if (!(p))                                                                                  \
	return CUDA_ERROR_INVALID_VALUE
SETTER(kernel, const CUDA_KERNEL_NODE_PARAMS *p, GIVEN(p); sim_node_kernel_v1(&q, p))
SETTER(kernel2, const CUDA_KERNEL_NODE_PARAMS *p, GIVEN(p); q.type = SIM_NODE_KERNEL; q.kernel = *p)
SETTER(host, const CUDA_HOST_NODE_PARAMS *p, GIVEN(p); q.type = SIM_NODE_HOST; q.host = *p)
SETTER(record, CUevent event, q.type = SIM_NODE_RECORD_EVENT; q.event = event)
SETTER(wait, CUevent event, q.type = SIM_NODE_WAIT_EVENT; q.event = event)
SETTER(memop, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, GIVEN(p); q.type = SIM_NODE_MEMOP;
       q.memOp = *p)
SETTER(copy, const CUDA_MEMCPY3D *p COMMA CUcontext ctx, GIVEN(p); q.type = SIM_NODE_MEMCPY;
       q.memcpy.copyParams = *p; q.memcpy.copyCtx = ctx)
SETTER(set, const CUDA_MEMSET_NODE_PARAMS *p COMMA CUcontext ctx, GIVEN(p); (void)ctx;
       q.type = SIM_NODE_MEMSET; q.memset = *p)

static CUresult exec_graph(struct sim_call *c, CUgraphExec e, CUgraphNode n, CUgraph child)
{
	(void)c;
	return change_graph(sim_exec_find(e, n, SIM_NODE_GRAPH), child);
}

static CUresult set_copy_here(struct sim_call *c, CUgraphNode n, const CUDA_MEMCPY3D *p)
{
	return set_copy(c, n, p, NULL);
}

static CUresult set_set_here(struct sim_call *c, CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p)
{
	return set_set(c, n, p, NULL);
}

#define GETTER(name, impl, type) SIM_API(name, SIM_NEED_INIT, impl, (CUgraphNode n, type p), (n, p))
#define NODE(name, impl, type) SIM_API(name, SIM_NEED_CTX, impl, (CUgraphNode n, type p), (n, p))
#define EXEC(name, impl, type)                                                                     \
	SIM_API(name, SIM_NEED_CTX, impl, (CUgraphExec e, CUgraphNode n, type p), (e, n, p))
GETTER(cuGraphKernelNodeGetParams, get_kernel, CUDA_KERNEL_NODE_PARAMS *)
GETTER(cuGraphKernelNodeGetParams_v2, get_kernel2, CUDA_KERNEL_NODE_PARAMS *)
GETTER(cuGraphMemcpyNodeGetParams, get_copy, CUDA_MEMCPY3D *)
GETTER(cuGraphMemsetNodeGetParams, get_set, CUDA_MEMSET_NODE_PARAMS *)
GETTER(cuGraphHostNodeGetParams, get_host, CUDA_HOST_NODE_PARAMS *)
GETTER(cuGraphChildGraphNodeGetGraph, get_graph, CUgraph *)
GETTER(cuGraphEventRecordNodeGetEvent, get_record, CUevent *)
GETTER(cuGraphEventWaitNodeGetEvent, get_wait, CUevent *)
GETTER(cuGraphMemAllocNodeGetParams, get_alloc, CUDA_MEM_ALLOC_NODE_PARAMS *)
GETTER(cuGraphMemFreeNodeGetParams, get_free, CUdeviceptr *)
GETTER(cuGraphBatchMemOpNodeGetParams, get_memop, CUDA_BATCH_MEM_OP_NODE_PARAMS *)
NODE(cuGraphKernelNodeSetParams, set_kernel, const CUDA_KERNEL_NODE_PARAMS *)
NODE(cuGraphKernelNodeSetParams_v2, set_kernel2, const CUDA_KERNEL_NODE_PARAMS *)
NODE(cuGraphMemcpyNodeSetParams, set_copy_here, const CUDA_MEMCPY3D *)
NODE(cuGraphMemsetNodeSetParams, set_set_here, const CUDA_MEMSET_NODE_PARAMS *)
NODE(cuGraphHostNodeSetParams, set_host, const CUDA_HOST_NODE_PARAMS *)
NODE(cuGraphEventRecordNodeSetEvent, set_record, CUevent)
NODE(cuGraphEventWaitNodeSetEvent, set_wait, CUevent)
NODE(cuGraphBatchMemOpNodeSetParams, set_memop, const CUDA_BATCH_MEM_OP_NODE_PARAMS *)
NODE(cuGraphNodeSetParams, set_any, const CUgraphNodeParams *)
EXEC(cuGraphExecKernelNodeSetParams, exec_kernel, const CUDA_KERNEL_NODE_PARAMS *)
EXEC(cuGraphExecKernelNodeSetParams_v2, exec_kernel2, const CUDA_KERNEL_NODE_PARAMS *)
EXEC(cuGraphExecHostNodeSetParams, exec_host, const CUDA_HOST_NODE_PARAMS *)
EXEC(cuGraphExecChildGraphNodeSetParams, exec_graph, CUgraph)
EXEC(cuGraphExecEventRecordNodeSetEvent, exec_record, CUevent)
EXEC(cuGraphExecEventWaitNodeSetEvent, exec_wait, CUevent)
EXEC(cuGraphExecBatchMemOpNodeSetParams, exec_memop, const CUDA_BATCH_MEM_OP_NODE_PARAMS *)
EXEC(cuGraphExecNodeSetParams, exec_any, const CUgraphNodeParams *)
SIM_API(cuGraphExecMemcpyNodeSetParams, SIM_NEED_CTX, exec_copy,
	(CUgraphExec e, CUgraphNode n, const CUDA_MEMCPY3D *p, CUcontext ctx), (e, n, p, ctx))
SIM_API(cuGraphExecMemsetNodeSetParams, SIM_NEED_CTX, exec_set,
	(CUgraphExec e, CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx),
	(e, n, p, ctx))
