/* Attributes of kernel nodes and streams: stored and returned; only the priority of streams has an
 * effect. */
#include "sim/gpu/graph/graph.h"

#include <stdlib.h>
#include <string.h>

enum { KINDS = 17, SIZE = 64 };
enum { POLICY_WINDOW = 1, SYNC_POLICY = 3, PRIORITY = 8, DOMAIN_MAP = 9, DOMAIN_ID = 10 };

struct sim_attributes {
	char v[KINDS][SIZE];
};

struct sim_attributes *sim_attributes_copy(const struct sim_attributes *a)
{
	struct sim_attributes *k = a ? malloc(sizeof(*k)) : NULL;
	if (k)
		*k = *a;
	return k;
}

static bool of_stream(int what)
{
	return what == POLICY_WINDOW || what == SYNC_POLICY || what == PRIORITY ||
	       what == DOMAIN_MAP || what == DOMAIN_ID;
}

static CUresult get(const struct sim_attributes *a, int what, void *v)
{
	if (!v || what < 1 || what >= KINDS)
		return CUDA_ERROR_INVALID_VALUE;
	if (a)
		memcpy(v, a->v[what], SIZE);
	else
		memset(v, 0, SIZE);
	return CUDA_SUCCESS;
}

static CUresult set(struct sim_attributes **a, int what, const void *v)
{
	if (!v || what < 1 || what >= KINDS)
		return CUDA_ERROR_INVALID_VALUE;
	if (!*a)
		*a = calloc(1, sizeof(**a));
	memcpy((*a)->v[what], v, SIZE);
	return CUDA_SUCCESS;
}

static bool is_kernel(const struct sim_node *n)
{
	return sim_node_is(n) && n->type == SIM_NODE_KERNEL;
}

static CUresult node_get(struct sim_call *c, CUgraphNode n, int what, void *v)
{
	(void)c;
	return is_kernel(n) ? get(n->attributes, what, v) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult node_set(struct sim_call *c, CUgraphNode n, int what, const void *v)
{
	(void)c;
	return is_kernel(n) ? set(&n->attributes, what, v) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult node_copy(struct sim_call *c, CUgraphNode to, CUgraphNode from)
{
	(void)c;
	if (!is_kernel(to) || !is_kernel(from))
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_attributes *a = sim_attributes_copy(from->attributes);
	free(to->attributes);
	to->attributes = a;
	return CUDA_SUCCESS;
}

static CUresult stream_get(struct sim_call *c, CUstream h, int what, void *v)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (!of_stream(what))
		return CUDA_ERROR_INVALID_VALUE;
	r = get(s->attributes, what, v);
	if (!r && what == PRIORITY)
		memcpy(v, &s->prio, sizeof(s->prio));
	return r;
}

static CUresult stream_set(struct sim_call *c, CUstream h, int what, const void *v)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (!of_stream(what))
		return CUDA_ERROR_INVALID_VALUE;
	r = set(&s->attributes, what, v);
	if (!r && what == PRIORITY)
		memcpy(&s->prio, v, sizeof(s->prio));
	return r;
}

static CUresult stream_copy(struct sim_call *c, CUstream to, CUstream from)
{
	struct sim_stream *s, *t;
	CUresult r = sim_stream_get(c, from, &s);
	if (!r)
		r = sim_stream_get(c, to, &t);
	if (r)
		return r;
	struct sim_attributes *a = sim_attributes_copy(s->attributes);
	free(t->attributes);
	t->attributes = a;
	t->prio = s->prio;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeGetAttribute, SIM_NEED_INIT, node_get, (CUgraphNode n, int what, void *v),
	(n, what, v))
SIM_API(cuGraphKernelNodeSetAttribute, SIM_NEED_INIT, node_set,
	(CUgraphNode n, int what, const void *v), (n, what, v))
SIM_API(cuGraphKernelNodeCopyAttributes, SIM_NEED_INIT, node_copy,
	(CUgraphNode to, CUgraphNode from), (to, from))
SIM_API_PT(cuStreamGetAttribute, _ptsz, SIM_NEED_INIT, stream_get, (CUstream s, int what, void *v),
	   (s, what, v))
SIM_API_PT(cuStreamSetAttribute, _ptsz, SIM_NEED_INIT, stream_set,
	   (CUstream s, int what, const void *v), (s, what, v))
SIM_API_PT(cuStreamCopyAttributes, _ptsz, SIM_NEED_INIT, stream_copy, (CUstream to, CUstream from),
	   (to, from))
