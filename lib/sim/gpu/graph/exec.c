/* Executable graphs: instantiate, launch, update. */
#include "sim/gpu/graph/graph.h"
#include "sim/gpu/tools.h"

#include <stdlib.h>
#include <string.h>

enum { AUTO_FREE = 1, UPLOAD = 2, DEVICE_LAUNCH = 4, ALL_FLAGS = 15 };
enum { OK, ERROR, BAD_STRUCTURE, NOT_SUPPORTED, SEVERAL_CONTEXTS, HANDLE_UNUSED };

static bool is_exec(const struct sim_exec *e)
{
	return e && e->magic == SIM_MAGIC_EXEC;
}

uint32_t sim_exec_id(CUgraphExec e)
{
	return is_exec(e) ? e->id : 0;
}

struct sim_node *sim_exec_find(CUgraphExec e, CUgraphNode n, int type)
{
	if (!is_exec(e) || !sim_node_is(n) || (type >= 0 && n->type != type))
		return NULL;
	return sim_graph_find(e->g, n);
}

/* ---- instantiate ---- */
/* A node on a cycle, or NULL. Removes nodes without pending dependencies until none is left. */
static struct sim_node *cycle(const struct sim_graph *g)
{
	size_t *waits = calloc(g->n + 1, sizeof(*waits)), left = 0;
	struct sim_node *found = NULL;
	bool more = true;
	for (size_t i = 0; i < g->n; i++) {
		waits[i] = g->nodes[i] ? g->nodes[i]->ndeps + 1 : 0;
		left += g->nodes[i] != NULL;
	}
	while (left && more) {
		more = false;
		for (size_t i = 0; i < g->n; i++) {
			if (!waits[i])
				continue;
			bool ready = true;
			for (size_t j = 0; j < g->nodes[i]->ndeps; j++)
				ready &= !waits[g->nodes[i]->deps[j]->index];
			if (!ready)
				continue;
			waits[i] = 0;
			left--;
			more = true;
		}
	}
	for (size_t i = 0; left && i < g->n && !found; i++)
		if (waits[i])
			found = g->nodes[i];
	free(waits);
	return found;
}

static int check(const struct sim_graph *g, unsigned long long flags, CUgraphNode *bad)
{
	*bad = cycle(g);
	if (*bad)
		return BAD_STRUCTURE;
	if (g->conditions)
		return HANDLE_UNUSED;
	for (size_t i = 0; i < g->n; i++) {
		struct sim_node *n = g->nodes[i];
		bool hard = n && (n->type == SIM_NODE_HOST || n->type == SIM_NODE_ALLOC ||
				  n->type == SIM_NODE_FREE || n->type == SIM_NODE_CONDITIONAL);
		if (hard && flags & DEVICE_LAUNCH) {
			*bad = n;
			return NOT_SUPPORTED;
		}
		for (size_t j = 0; n && j < n->nbodies; j++) {
			int r = check(n->bodies[j], flags, bad);
			if (r)
				return r;
		}
	}
	return OK;
}

/* Numbers the nodes below, starting at *next, and marks leaves. */
static void prepare(struct sim_graph *g, uint32_t *next)
{
	for (size_t i = 0; i < g->n; i++) {
		if (!g->nodes[i])
			continue;
		g->nodes[i]->leaf = true;
		g->nodes[i]->number = g->owner ? (*next)++ : (uint32_t)i;
	}
	for (size_t i = 0; i < g->n; i++) {
		struct sim_node *n = g->nodes[i];
		for (size_t j = 0; n && j < n->ndeps; j++)
			n->deps[j]->leaf = false;
		for (size_t j = 0; n && j < n->nbodies; j++)
			prepare(n->bodies[j], next);
	}
}

static CUresult build(CUgraphExec *out, CUgraph g, unsigned long long flags, int *result,
		      CUgraphNode *bad)
{
	*result = ERROR;
	*bad = NULL;
	if (!out || !sim_graph_is(g) || flags & ~(unsigned long long)ALL_FLAGS ||
	    (flags & AUTO_FREE && flags & DEVICE_LAUNCH))
		return CUDA_ERROR_INVALID_VALUE;
	*result = check(g, flags, bad);
	if (*result)
		return *result == NOT_SUPPORTED ? CUDA_ERROR_NOT_SUPPORTED
						: CUDA_ERROR_INVALID_VALUE;
	struct sim_exec *e = calloc(1, sizeof(*e));
	e->magic = SIM_MAGIC_EXEC;
	e->id = (uint32_t)sim_new_id();
	e->ctx = sim_ctx_current();
	e->flags = flags;
	e->g = sim_graph_copy(g);
	uint32_t next = (uint32_t)e->g->n;
	prepare(e->g, &next);
	*out = e;
	return CUDA_SUCCESS;
}

static CUresult build_flags(struct sim_call *c, CUgraphExec *out, CUgraph g,
			    unsigned long long flags)
{
	int result;
	CUgraphNode bad;
	(void)c;
	return build(out, g, flags, &result, &bad);
}

static CUresult build_v1(struct sim_call *c, CUgraphExec *out, CUgraph g, CUgraphNode *error,
			 char *log, size_t n)
{
	int result;
	CUgraphNode bad;
	(void)c;
	CUresult r = build(out, g, 0, &result, &bad);
	if (error)
		*error = bad;
	if (log && n)
		*log = 0;
	return r;
}

static CUresult build_params(struct sim_call *c, CUgraphExec *out, CUgraph g,
			     CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	struct sim_stream *s;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = p->flags & UPLOAD ? sim_stream_get(c, p->hUploadStream, &s) : CUDA_SUCCESS;
	return r ? r : build(out, g, p->flags, &p->result_out, &p->hErrNode_out);
}

static CUresult destroy(struct sim_call *c, CUgraphExec e)
{
	(void)c;
	if (!is_exec(e))
		return CUDA_ERROR_INVALID_VALUE;
	e->magic = 0;
	sim_graph_free(e->g);
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

/* ---- launch, with sim_mu ---- */
struct graph_run {
	uint64_t call, stream;
	struct sim_exec *e;
	struct sim_op **ops; /* in creation order */
	size_t n, capacity;
};

static struct sim_op *operation(struct graph_run *r, const struct sim_work *w, uint64_t node)
{
	struct sim_op *op = sim_op_new(w, r->call, r->stream);
	op->graph = r->e->id;
	op->node = (uint64_t)r->e->id << 32 | node;
	if (r->n == r->capacity) {
		r->capacity = r->capacity ? r->capacity * 2 : 64;
		r->ops = realloc(r->ops, r->capacity * sizeof(*r->ops));
	}
	r->ops[r->n++] = op;
	return op;
}

static struct sim_op *mark(struct graph_run *r, uint64_t node)
{
	struct sim_work w = {.kind = SIM_K_MARK, .engine = SIM_ENG_NONE, .dev = r->e->ctx->dev};
	return operation(r, &w, node);
}

static void unroll(struct graph_run *r, struct sim_graph *g, struct sim_op *first,
		   struct sim_op *last);

/* Launches the graphs below n: returns the first operation, and the last one in *end. */
static struct sim_op *below(struct graph_run *r, struct sim_node *n, struct sim_op **end)
{
	struct sim_op *begin = mark(r, n->number), *at = begin;
	unsigned times = 1;
	size_t body = n->type == SIM_NODE_CONDITIONAL ? sim_condition_choose(n, &times) : 0;
	for (unsigned i = 0; i < times; i++) {
		struct sim_op *next = mark(r, n->number);
		unroll(r, n->bodies[body], at, next);
		at = next;
	}
	*end = at;
	return begin;
}

static struct sim_op *single(struct graph_run *r, struct sim_node *n)
{
	if (n->disabled)
		return mark(r, n->number);
	struct sim_work w = sim_work_dup(&n->work);
	struct sim_op *op = operation(r, &w, n->number);
	if (n->type == SIM_NODE_WAIT_EVENT)
		sim_op_depend(op, w.event->op);
	if (n->type == SIM_NODE_RECORD_EVENT) {
		sim_op_ref(op);
		sim_op_unref(w.event->op);
		w.event->op = op;
		w.event->capture = NULL;
	}
	if (n->type == SIM_NODE_ALLOC)
		sim_reserve_take(w.reserve);
	if (n->type == SIM_NODE_FREE)
		sim_reserve_free((void *)(uintptr_t)w.free);
	return op;
}

static void unroll(struct graph_run *r, struct sim_graph *g, struct sim_op *first,
		   struct sim_op *last)
{
	struct sim_op **begin = calloc(g->n + 1, sizeof(struct sim_op *)),
		      **end = calloc(g->n + 1, sizeof(struct sim_op *));
	for (size_t i = 0; i < g->n; i++) {
		struct sim_node *n = g->nodes[i];
		if (n && n->nbodies && !n->disabled)
			begin[i] = below(r, n, &end[i]);
		else if (n)
			begin[i] = end[i] = single(r, n);
	}
	for (size_t i = 0; i < g->n; i++) {
		struct sim_node *n = g->nodes[i];
		if (!n)
			continue;
		if (!n->ndeps)
			sim_op_depend(begin[i], first);
		for (size_t j = 0; j < n->ndeps; j++)
			sim_op_depend(begin[i], end[n->deps[j]->index]);
		if (n->leaf)
			sim_op_depend(last, end[i]);
	}
	sim_op_depend(last, first);
	free(begin);
	free(end);
}

/* The launch is one entry in the stream's queue; its nodes run between two markers. */
static void submit(struct sim_call *c, struct sim_exec *e, struct sim_stream *s)
{
	struct graph_run r = {.call = c->no, .stream = c->stream, .e = e};
	struct sim_op *first = mark(&r, 0);
	sim_stream_order(s, first);
	struct sim_op *last = mark(&r, 0);
	last->node = SIM_NODE_ALL;
	unroll(&r, e->g, first, last);
	sim_stream_order(s, last);
	last->stream = s;
	s->pending++;
	for (size_t i = 0; i < r.n; i++) {
		r.ops[i]->prio = s->prio;
		r.ops[i]->work.ctx = s->ctx;
	}
	for (size_t i = 0; i < r.n; i++) {
		sim_op_commit(r.ops[i]);
		sim_op_unref(r.ops[i]);
	}
	free(r.ops);
}

/* Whether this can be launched. */
static CUresult ready(const struct sim_graph *g, unsigned long long flags)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct sim_node *n = g->nodes[i];
		if (!n)
			continue;
		if (n->type == SIM_NODE_ALLOC && !(flags & AUTO_FREE) &&
		    sim_reserve_taken(n->work.reserve))
			return CUDA_ERROR_INVALID_VALUE;
		if (!sim_engine_start(n->work.dev, n->work.engine))
			return CUDA_ERROR_OPERATING_SYSTEM;
		for (size_t j = 0; j < n->nbodies; j++) {
			CUresult r = ready(n->bodies[j], flags);
			if (r)
				return r;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult launch(struct sim_call *c, CUgraphExec e, CUstream h)
{
	struct sim_stream *s;
	if (!is_exec(e))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	sim_host_cost(sim_cfg.launch_ns);
	pthread_mutex_lock(&sim_mu);
	if (s->capture) {
		c->captured = true;
		r = sim_capture_graph(s, e->g);
	} else {
		sim_wait_room(s);
		r = ready(e->g, e->flags);
		if (!r)
			submit(c, e, s);
	}
	pthread_mutex_unlock(&sim_mu);
	return r;
}

static CUresult upload(struct sim_call *c, CUgraphExec e, CUstream h)
{
	struct sim_stream *s;
	return is_exec(e) ? sim_stream_get(c, h, &s) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_enabled(struct sim_call *c, CUgraphExec e, CUgraphNode n, unsigned on)
{
	struct sim_node *k = sim_exec_find(e, n, -1);
	(void)c;
	if (!k || (k->type != SIM_NODE_KERNEL && k->type != SIM_NODE_MEMCPY &&
		   k->type != SIM_NODE_MEMSET))
		return CUDA_ERROR_INVALID_VALUE;
	k->disabled = !on;
	return CUDA_SUCCESS;
}

static CUresult get_enabled(struct sim_call *c, CUgraphExec e, CUgraphNode n, unsigned *on)
{
	struct sim_node *k = sim_exec_find(e, n, -1);
	(void)c;
	if (!k || !on)
		return CUDA_ERROR_INVALID_VALUE;
	*on = !k->disabled;
	return CUDA_SUCCESS;
}

/* ---- update ---- */
enum {
	UPDATED,
	UPDATE_ERROR,
	TOPOLOGY_CHANGED,
	TYPE_CHANGED,
	PARAMETERS_CHANGED = 5,
	UPDATE_NOT_SUPPORTED = 6,
	FUNCTION_CHANGED = 7
};

/* Whether node k of the executable graph can be updated to n. */
static int compare_node(const struct sim_node *k, const struct sim_node *n)
{
	if (k->type != n->type)
		return TYPE_CHANGED;
	if (k->ndeps != n->ndeps || k->nbodies != n->nbodies)
		return TOPOLOGY_CHANGED;
	for (size_t j = 0; j < n->ndeps; j++)
		if (n->deps[j]->index != k->deps[j]->index ||
		    memcmp(&n->edges[j], &k->edges[j], sizeof(*n->edges)))
			return TOPOLOGY_CHANGED;
	switch (n->type) {
	case SIM_NODE_KERNEL:
		return n->work.launch.ctx == k->work.launch.ctx ? UPDATED : FUNCTION_CHANGED;
	case SIM_NODE_MEMCPY:
		return n->work.copy.dir == k->work.copy.dir ? UPDATED : PARAMETERS_CHANGED;
	case SIM_NODE_MEMSET:
		return (n->work.set.height > 1) == (k->work.set.height > 1) ? UPDATED
									    : PARAMETERS_CHANGED;
	case SIM_NODE_ALLOC:
		return n->work.reserve == k->work.reserve ? UPDATED : UPDATE_NOT_SUPPORTED;
	case SIM_NODE_CONDITIONAL:
		return n->condition_type == k->condition_type ? UPDATED : PARAMETERS_CHANGED;
	default:
		return UPDATED;
	}
}

static int compare(const struct sim_graph *to, const struct sim_graph *g,
		   CUgraphExecUpdateResultInfo *info)
{
	if (g->n != to->n)
		return TOPOLOGY_CHANGED;
	for (size_t i = 0; i < g->n; i++) {
		struct sim_node *n = g->nodes[i];
		const struct sim_node *k = to->nodes[i];
		int r = !n != !k ? TOPOLOGY_CHANGED : n ? compare_node(k, n) : UPDATED;
		for (size_t j = 0; n && !r && j < n->nbodies; j++) {
			r = compare(k->bodies[j], n->bodies[j], info);
			if (r && info->errorNode)
				return r;
		}
		if (r) {
			info->errorNode = n;
			return r;
		}
	}
	return UPDATED;
}

static void apply(struct sim_graph *to, const struct sim_graph *g)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct sim_node *n = g->nodes[i];
		struct sim_node *k = to->nodes[i];
		if (!n)
			continue;
		for (size_t j = 0; j < n->nbodies; j++)
			apply(k->bodies[j], n->bodies[j]);
		k->condition = n->condition;
		sim_work_release(&k->work);
		k->work = sim_work_dup(&n->work);
		free(k->params);
		k->params = NULL;
	}
}

bool sim_graph_update(struct sim_graph *to, const struct sim_graph *g,
		      CUgraphExecUpdateResultInfo *info)
{
	*info = (CUgraphExecUpdateResultInfo){0};
	info->result = compare(to, g, info);
	if (info->result == UPDATED)
		apply(to, g);
	return info->result == UPDATED;
}

static CUresult exec_update2(struct sim_call *c, CUgraphExec e, CUgraph g,
			     CUgraphExecUpdateResultInfo *info)
{
	CUgraphExecUpdateResultInfo unused;
	(void)c;
	if (!is_exec(e) || !sim_graph_is(g))
		return CUDA_ERROR_INVALID_VALUE;
	return sim_graph_update(e->g, g, info ? info : &unused)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult exec_update(struct sim_call *c, CUgraphExec e, CUgraph g, CUgraphNode *error,
			    int *result)
{
	CUgraphExecUpdateResultInfo info = {.result = UPDATE_ERROR};
	CUresult r = exec_update2(c, e, g, &info);
	if (error)
		*error = info.errorNode;
	if (result)
		*result = info.result;
	return r;
}

SIM_API(cuGraphInstantiate, SIM_NEED_CTX, build_v1,
	(CUgraphExec * e, CUgraph g, CUgraphNode *error, char *log, size_t n),
	(e, g, error, log, n))
SIM_API(cuGraphInstantiate_v2, SIM_NEED_CTX, build_v1,
	(CUgraphExec * e, CUgraph g, CUgraphNode *error, char *log, size_t n),
	(e, g, error, log, n))
SIM_API(cuGraphInstantiateWithFlags, SIM_NEED_CTX, build_flags,
	(CUgraphExec * e, CUgraph g, unsigned long long flags), (e, g, flags))
SIM_API_PT(cuGraphInstantiateWithParams, _ptsz, SIM_NEED_CTX, build_params,
	   (CUgraphExec * e, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p), (e, g, p))
SIM_API(cuGraphExecDestroy, SIM_NEED_INIT, destroy, (CUgraphExec e), (e))
SIM_API(cuGraphExecGetFlags, SIM_NEED_INIT, get_flags, (CUgraphExec e, unsigned long long *flags),
	(e, flags))
SIM_API_PT(cuGraphLaunch, _ptsz, SIM_NEED_INIT, launch, (CUgraphExec e, CUstream s), (e, s))
SIM_API_PT(cuGraphUpload, _ptsz, SIM_NEED_INIT, upload, (CUgraphExec e, CUstream s), (e, s))
SIM_API(cuGraphNodeSetEnabled, SIM_NEED_INIT, set_enabled,
	(CUgraphExec e, CUgraphNode n, unsigned on), (e, n, on))
SIM_API(cuGraphNodeGetEnabled, SIM_NEED_INIT, get_enabled,
	(CUgraphExec e, CUgraphNode n, unsigned *on), (e, n, on))
SIM_API(cuGraphExecUpdate, SIM_NEED_INIT, exec_update,
	(CUgraphExec e, CUgraph g, CUgraphNode *error, int *result), (e, g, error, result))
SIM_API(cuGraphExecUpdate_v2, SIM_NEED_INIT, exec_update2,
	(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info), (e, g, info))
