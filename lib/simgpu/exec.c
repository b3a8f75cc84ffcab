/* Executable graphs: instantiate, change, launch. */
#include "simgpu/api.h"
#include "simgpu/tools.h"

#include <stdlib.h>
#include <string.h>

struct item {
	struct sim_work work;
	size_t *deps; /* indices of items */
	size_t ndeps;
	bool used, enabled, leaf;
};

struct sim_exec {
	int magic;
	uint32_t id;
	struct sim_ctx *ctx;
	unsigned long long flags;
	struct item *items; /* same indices as the nodes of the graph */
	size_t n;
};

static bool is_exec(const struct sim_exec *e)
{
	return e && e->magic == SIM_MAGIC_EXEC;
}

uint32_t sim_exec_id(CUgraphExec e)
{
	return is_exec(e) ? e->id : 0;
}

static CUresult build(struct sim_call *c, CUgraphExec *out, CUgraph g, unsigned long long flags)
{
	(void)c;
	if (!out || !g || g->magic != SIM_MAGIC_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_exec *e = calloc(1, sizeof(*e));
	e->magic = SIM_MAGIC_EXEC;
	e->id = (uint32_t)sim_new_id();
	e->ctx = sim_ctx_current();
	e->flags = flags;
	e->n = g->n;
	e->items = calloc(g->n + 1, sizeof(*e->items));
	for (size_t i = 0; i < g->n; i++)
		if (g->nodes[i])
			e->items[i].leaf = true;
	for (size_t i = 0; i < g->n; i++) {
		struct sim_node *n = g->nodes[i];
		struct item *it = &e->items[i];
		if (!n)
			continue;
		it->used = it->enabled = true;
		it->work = sim_work_dup(&n->work);
		it->ndeps = n->ndeps;
		it->deps = calloc(n->ndeps + 1, sizeof(*it->deps));
		for (size_t j = 0; j < n->ndeps; j++) {
			it->deps[j] = n->deps[j]->index;
			e->items[it->deps[j]].leaf = false;
		}
	}
	*out = e;
	return CUDA_SUCCESS;
}

static CUresult build_v1(struct sim_call *c, CUgraphExec *out, CUgraph g, CUgraphNode *error,
			 char *log, size_t n)
{
	if (error)
		*error = NULL;
	if (log && n)
		*log = 0;
	return build(c, out, g, 0);
}

static CUresult build_params(struct sim_call *c, CUgraphExec *out, CUgraph g,
			     CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	p->hErrNode_out = NULL;
	p->result_out = 0;
	return build(c, out, g, p->flags);
}

static CUresult destroy(struct sim_call *c, CUgraphExec e)
{
	(void)c;
	if (!is_exec(e))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < e->n; i++) {
		if (e->items[i].used)
			sim_work_release(&e->items[i].work);
		free(e->items[i].deps);
	}
	e->magic = 0;
	free(e->items);
	free(e);
	return CUDA_SUCCESS;
}

static CUresult get_flags(struct sim_call *c, CUgraphExec e, unsigned long long *flags)
{
	(void)c;
	if (!is_exec(e) || !flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = e->flags;
	return CUDA_SUCCESS;
}

/* With sim_mu. The launch is one entry of the stream's queue; its nodes hang between two marks. */
static void submit(struct sim_call *c, struct sim_exec *e, struct sim_stream *s)
{
	struct sim_work mark = {.kind = SIM_K_MARK, .engine = SIM_ENG_NONE, .dev = e->ctx->dev};
	struct sim_op *first = sim_op_new(&mark, c->no, c->stream);
	struct sim_op *last = sim_op_new(&mark, c->no, c->stream);
	last->graph = e->id;
	last->node = SIM_NODE_ALL;
	struct sim_op **ops = calloc(e->n + 1, sizeof(*ops));
	sim_stream_order(s, first);
	for (size_t i = 0; i < e->n; i++) {
		if (!e->items[i].used)
			continue;
		struct sim_work w = e->items[i].enabled ? sim_work_dup(&e->items[i].work) : mark;
		ops[i] = sim_op_new(&w, c->no, c->stream);
		ops[i]->graph = e->id;
		ops[i]->node = (uint64_t)e->id << 32 | i;
	}
	for (size_t i = 0; i < e->n; i++) {
		if (!ops[i])
			continue;
		if (!e->items[i].ndeps)
			sim_op_depend(ops[i], first);
		for (size_t j = 0; j < e->items[i].ndeps; j++)
			sim_op_depend(ops[i], ops[e->items[i].deps[j]]);
		if (e->items[i].leaf)
			sim_op_depend(last, ops[i]);
	}
	sim_stream_order(s, last);
	last->stream = s;
	s->pending++;
	sim_op_commit(first);
	sim_op_unref(first);
	for (size_t i = 0; i < e->n; i++) {
		if (ops[i]) {
			sim_op_commit(ops[i]);
			sim_op_unref(ops[i]);
		}
	}
	sim_op_commit(last);
	sim_op_unref(last);
	free(ops);
}

static bool engines_run(const struct sim_exec *e)
{
	for (size_t i = 0; i < e->n; i++) {
		const struct sim_work *w = &e->items[i].work;
		if (e->items[i].used && !sim_engine_start(w->dev, w->engine))
			return false;
	}
	return true;
}

static CUresult launch(struct sim_call *c, CUgraphExec e, CUstream h)
{
	struct sim_stream *s;
	if (!is_exec(e))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (s->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sim_host_cost(sim_cfg.launch_ns);
	pthread_mutex_lock(&sim_mu);
	sim_wait_room(s);
	if (engines_run(e))
		submit(c, e, s);
	else
		r = CUDA_ERROR_OPERATING_SYSTEM;
	pthread_mutex_unlock(&sim_mu);
	return r;
}

static CUresult upload(struct sim_call *c, CUgraphExec e, CUstream h)
{
	struct sim_stream *s;
	return is_exec(e) ? sim_stream_get(c, h, &s) : CUDA_ERROR_INVALID_VALUE;
}

/* The item of a node; NULL unless it is of this type. */
static struct item *item_of(CUgraphExec e, CUgraphNode n, int type)
{
	if (!is_exec(e) || !n || n->magic != SIM_MAGIC_NODE || n->index >= e->n ||
	    (type >= 0 && n->type != type))
		return NULL;
	return e->items[n->index].used ? &e->items[n->index] : NULL;
}

static CUresult change(struct item *it, CUresult r, struct sim_work *w)
{
	if (r)
		return r;
	sim_work_release(&it->work);
	it->work = *w;
	return CUDA_SUCCESS;
}

static CUresult set_kernel(struct sim_call *c, CUgraphExec e, CUgraphNode n,
			   const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct item *it = item_of(e, n, SIM_NODE_KERNEL);
	struct sim_work w;
	(void)c;
	if (!it || !p)
		return CUDA_ERROR_INVALID_VALUE;
	return change(it, sim_launch_set(&w, it->work.launch.ctx, p), &w);
}

static CUresult set_kernel2(struct sim_call *c, CUgraphExec e, CUgraphNode n,
			    const CUDA_KERNEL_NODE_PARAMS *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_KERNEL_NODE_PARAMS q = *p;
	if (!q.func)
		q.func = q.kern;
	return set_kernel(c, e, n, &q);
}

static CUresult set_copy(struct sim_call *c, CUgraphExec e, CUgraphNode n, const CUDA_MEMCPY3D *p,
			 CUcontext ctx)
{
	struct item *it = item_of(e, n, SIM_NODE_MEMCPY);
	struct sim_work w;
	(void)c;
	if (!it || !p)
		return CUDA_ERROR_INVALID_VALUE;
	return change(it, sim_copy_from_3d(&w, p, ctx ? ctx : e->ctx), &w);
}

static CUresult set_memset(struct sim_call *c, CUgraphExec e, CUgraphNode n,
			   const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
	struct item *it = item_of(e, n, SIM_NODE_MEMSET);
	struct sim_work w;
	(void)c;
	if (!it || !p || !p->elementSize)
		return CUDA_ERROR_INVALID_VALUE;
	return change(it,
		      sim_set_fill(&w, p->dst, p->pitch, p->value, p->elementSize, p->width,
				   p->height, ctx ? ctx : e->ctx),
		      &w);
}

static CUresult set_host(struct sim_call *c, CUgraphExec e, CUgraphNode n,
			 const CUDA_HOST_NODE_PARAMS *p)
{
	struct item *it = item_of(e, n, SIM_NODE_HOST);
	(void)c;
	if (!it || !p || !p->fn)
		return CUDA_ERROR_INVALID_VALUE;
	it->work.host.fn = p->fn;
	it->work.host.arg = p->userData;
	return CUDA_SUCCESS;
}

static CUresult set_any(struct sim_call *c, CUgraphExec e, CUgraphNode n,
			const CUgraphNodeParams *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	switch (p->type) {
	case SIM_NODE_KERNEL:
		return set_kernel2(c, e, n, &p->kernel);
	case SIM_NODE_MEMCPY:
		return set_copy(c, e, n, &p->memcpy.copyParams, p->memcpy.copyCtx);
	case SIM_NODE_MEMSET:
		return set_memset(c, e, n, &p->memset, NULL);
	case SIM_NODE_HOST:
		return set_host(c, e, n, &p->host);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static CUresult set_enabled(struct sim_call *c, CUgraphExec e, CUgraphNode n, unsigned on)
{
	struct item *it = item_of(e, n, -1);
	(void)c;
	if (!it)
		return CUDA_ERROR_INVALID_VALUE;
	it->enabled = on != 0;
	return CUDA_SUCCESS;
}

static CUresult get_enabled(struct sim_call *c, CUgraphExec e, CUgraphNode n, unsigned *on)
{
	struct item *it = item_of(e, n, -1);
	(void)c;
	if (!it || !on)
		return CUDA_ERROR_INVALID_VALUE;
	*on = it->enabled;
	return CUDA_SUCCESS;
}

/* A graph of the same shape may replace the work of all nodes. */
static bool update(struct sim_exec *e, struct sim_graph *g)
{
	if (g->n != e->n)
		return false;
	for (size_t i = 0; i < e->n; i++) {
		struct sim_node *n = g->nodes[i];
		struct item *it = &e->items[i];
		if (!n != !it->used ||
		    (n && (n->work.kind != it->work.kind || n->ndeps != it->ndeps)))
			return false;
		for (size_t j = 0; n && j < n->ndeps; j++)
			if (n->deps[j]->index != it->deps[j])
				return false;
	}
	for (size_t i = 0; i < e->n; i++) {
		if (!e->items[i].used)
			continue;
		sim_work_release(&e->items[i].work);
		e->items[i].work = sim_work_dup(&g->nodes[i]->work);
	}
	return true;
}

static CUresult exec_update(struct sim_call *c, CUgraphExec e, CUgraph g, CUgraphNode *error,
			    int *result)
{
	enum { TOPOLOGY_CHANGED = 2 };
	(void)c;
	if (!is_exec(e) || !g || g->magic != SIM_MAGIC_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	bool ok = update(e, g);
	if (error)
		*error = NULL;
	if (result)
		*result = ok ? 0 : TOPOLOGY_CHANGED;
	return ok ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult exec_update2(struct sim_call *c, CUgraphExec e, CUgraph g,
			     CUgraphExecUpdateResultInfo *info)
{
	if (info)
		info->errorFromNode = NULL;
	return exec_update(c, e, g, info ? &info->errorNode : NULL, info ? &info->result : NULL);
}

SIM_API(cuGraphInstantiate, SIM_NEED_CTX, build_v1,
	(CUgraphExec * e, CUgraph g, CUgraphNode *error, char *log, size_t n),
	(e, g, error, log, n))
SIM_API(cuGraphInstantiate_v2, SIM_NEED_CTX, build_v1,
	(CUgraphExec * e, CUgraph g, CUgraphNode *error, char *log, size_t n),
	(e, g, error, log, n))
SIM_API(cuGraphInstantiateWithFlags, SIM_NEED_CTX, build,
	(CUgraphExec * e, CUgraph g, unsigned long long flags), (e, g, flags))
SIM_API_PT(cuGraphInstantiateWithParams, _ptsz, SIM_NEED_CTX, build_params,
	   (CUgraphExec * e, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p), (e, g, p))
SIM_API(cuGraphExecDestroy, SIM_NEED_INIT, destroy, (CUgraphExec e), (e))
SIM_API(cuGraphExecGetFlags, SIM_NEED_INIT, get_flags, (CUgraphExec e, unsigned long long *flags),
	(e, flags))
SIM_API_PT(cuGraphLaunch, _ptsz, SIM_NEED_INIT, launch, (CUgraphExec e, CUstream s), (e, s))
SIM_API_PT(cuGraphUpload, _ptsz, SIM_NEED_INIT, upload, (CUgraphExec e, CUstream s), (e, s))
SIM_API(cuGraphExecKernelNodeSetParams, SIM_NEED_CTX, set_kernel,
	(CUgraphExec e, CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p), (e, n, p))
SIM_API(cuGraphExecKernelNodeSetParams_v2, SIM_NEED_CTX, set_kernel2,
	(CUgraphExec e, CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p), (e, n, p))
SIM_API(cuGraphExecMemcpyNodeSetParams, SIM_NEED_CTX, set_copy,
	(CUgraphExec e, CUgraphNode n, const CUDA_MEMCPY3D *p, CUcontext ctx), (e, n, p, ctx))
SIM_API(cuGraphExecMemsetNodeSetParams, SIM_NEED_CTX, set_memset,
	(CUgraphExec e, CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx),
	(e, n, p, ctx))
SIM_API(cuGraphExecHostNodeSetParams, SIM_NEED_CTX, set_host,
	(CUgraphExec e, CUgraphNode n, const CUDA_HOST_NODE_PARAMS *p), (e, n, p))
SIM_API(cuGraphExecNodeSetParams, SIM_NEED_CTX, set_any,
	(CUgraphExec e, CUgraphNode n, const CUgraphNodeParams *p), (e, n, p))
SIM_API(cuGraphNodeSetEnabled, SIM_NEED_INIT, set_enabled,
	(CUgraphExec e, CUgraphNode n, unsigned on), (e, n, on))
SIM_API(cuGraphNodeGetEnabled, SIM_NEED_INIT, get_enabled,
	(CUgraphExec e, CUgraphNode n, unsigned *on), (e, n, on))
SIM_API(cuGraphExecUpdate, SIM_NEED_INIT, exec_update,
	(CUgraphExec e, CUgraph g, CUgraphNode *error, int *result), (e, g, error, result))
SIM_API(cuGraphExecUpdate_v2, SIM_NEED_INIT, exec_update2,
	(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info), (e, g, info))
