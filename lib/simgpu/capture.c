/* Stream capture: calls on a capturing stream become nodes of a graph. */
#include "simgpu/api.h"

#include <stdlib.h>
#include <string.h>

/* Never freed: events may name a capture that is over. */
struct sim_capture {
	struct sim_graph *graph;
	struct sim_stream *origin;
	uint64_t id;
	bool invalid, over, to_graph;
};

static __thread int exchange_mode;

static void set_deps(struct sim_stream *s, struct sim_node *const *deps, size_t n)
{
	struct sim_node **copy = malloc((n + 1) * sizeof(*copy));
	if (n)
		memcpy(copy, deps, n * sizeof(*copy));
	free(s->cap_deps);
	s->cap_deps = copy;
	s->ncap_deps = n;
}

static void add_deps(struct sim_stream *s, struct sim_node *const *deps, size_t n)
{
	s->cap_deps = realloc(s->cap_deps, (s->ncap_deps + n + 1) * sizeof(*s->cap_deps));
	memcpy(s->cap_deps + s->ncap_deps, deps, n * sizeof(*deps));
	s->ncap_deps += n;
}

CUresult sim_capture_work(struct sim_stream *s, struct sim_work *w)
{
	static const int types[] = {[SIM_K_KERNEL] = SIM_NODE_KERNEL,
				    [SIM_K_COPY] = SIM_NODE_MEMCPY,
				    [SIM_K_MEMSET] = SIM_NODE_MEMSET,
				    [SIM_K_HOST] = SIM_NODE_HOST};
	if (s->capture->invalid || w->kind > SIM_K_HOST) {
		sim_work_release(w);
		return s->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
					   : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	struct sim_node *n =
		sim_graph_add(s->capture->graph, types[w->kind], w, s->cap_deps, s->ncap_deps);
	set_deps(s, &n, 1);
	return CUDA_SUCCESS;
}

CUresult sim_capture_record(struct sim_stream *s, struct sim_event *e)
{
	free(e->nodes);
	e->nodes = malloc((s->ncap_deps + 1) * sizeof(*e->nodes));
	if (s->ncap_deps)
		memcpy(e->nodes, s->cap_deps, s->ncap_deps * sizeof(*e->nodes));
	e->nnodes = s->ncap_deps;
	e->capture = s->capture;
	return CUDA_SUCCESS;
}

bool sim_capture_wait(struct sim_stream *s, struct sim_event *e, CUresult *r)
{
	*r = CUDA_SUCCESS;
	if (e->capture && !e->capture->over) {
		if (s->legacy) {
			*r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		} else if (s->capture && s->capture != e->capture) {
			*r = CUDA_ERROR_STREAM_CAPTURE_MERGE;
		} else {
			if (!s->capture) {
				s->capture = e->capture;
				set_deps(s, NULL, 0);
			}
			add_deps(s, e->nodes, e->nnodes);
		}
		return true;
	}
	if (s->capture) {
		s->capture->invalid = true;
		*r = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
		return true;
	}
	return false;
}

CUresult sim_capture_forbid(struct sim_stream *s)
{
	if (s->capture) {
		s->capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	for (struct sim_stream *o = s->legacy ? s->ctx->streams : NULL; o; o = o->next) {
		if (o->capture && !(o->flags & SIM_STREAM_NON_BLOCKING)) {
			o->capture->invalid = true;
			return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult start(struct sim_call *c, CUstream h, struct sim_graph *g, const CUgraphNode *deps,
		      size_t ndeps, int mode)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (mode < 0 || mode > 2)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	pthread_mutex_lock(&sim_mu);
	if (s->capture) {
		r = CUDA_ERROR_ILLEGAL_STATE;
	} else {
		struct sim_capture *k = calloc(1, sizeof(*k));
		k->graph = g ? g : sim_graph_new();
		k->to_graph = g != NULL;
		k->origin = s;
		k->id = sim_new_id();
		s->capture = k;
		set_deps(s, deps, ndeps);
	}
	pthread_mutex_unlock(&sim_mu);
	return r;
}

static CUresult begin(struct sim_call *c, CUstream h, int mode)
{
	return start(c, h, NULL, NULL, 0, mode);
}

static CUresult begin_v1(struct sim_call *c, CUstream h)
{
	return begin(c, h, 0);
}

static CUresult begin_to(struct sim_call *c, CUstream h, CUgraph g, const CUgraphNode *deps,
			 const void *edges, size_t ndeps, int mode)
{
	(void)edges;
	if (!g || g->magic != SIM_MAGIC_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	return start(c, h, g, deps, ndeps, mode);
}

/* Is n one of the nodes at the end of s, or before one of them? */
static bool reaches(struct sim_node *const *ends, size_t nends, const struct sim_node *n)
{
	for (size_t i = 0; i < nends; i++)
		if (ends[i] == n || reaches(ends[i]->deps, ends[i]->ndeps, n))
			return true;
	return false;
}

static bool joined(const struct sim_stream *origin, const struct sim_stream *s)
{
	for (size_t i = 0; i < s->ncap_deps; i++)
		if (!reaches(origin->cap_deps, origin->ncap_deps, s->cap_deps[i]))
			return false;
	return true;
}

static CUresult end(struct sim_call *c, CUstream h, CUgraph *out)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	pthread_mutex_lock(&sim_mu);
	struct sim_capture *k = s->capture;
	if (!k) {
		r = CUDA_ERROR_ILLEGAL_STATE;
	} else if (k->origin != s) {
		k->invalid = true;
		r = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	} else {
		for (struct sim_stream *o = s->ctx->streams; o; o = o->next) {
			if (o == s || o->capture != k)
				continue;
			if (!joined(s, o))
				r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
			o->capture = NULL;
		}
		if (k->invalid)
			r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		s->capture = NULL;
		k->over = true;
		if (!r)
			*out = k->graph;
		else if (!k->to_graph)
			sim_graph_free(k->graph);
	}
	pthread_mutex_unlock(&sim_mu);
	return r;
}

static CUresult info3(struct sim_call *c, CUstream h, int *status, uint64_t *id, CUgraph *g,
		      CUgraphNode **deps, void **edges, size_t *ndeps)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_capture *k = s->capture;
	*status = !k ? SIM_CAPTURE_NONE : k->invalid ? SIM_CAPTURE_INVALIDATED : SIM_CAPTURE_ACTIVE;
	if (id)
		*id = k ? k->id : 0;
	if (g)
		*g = k ? k->graph : NULL;
	if (deps)
		*deps = k ? s->cap_deps : NULL;
	if (edges)
		*edges = NULL;
	if (ndeps)
		*ndeps = k ? s->ncap_deps : 0;
	return CUDA_SUCCESS;
}

static CUresult info2(struct sim_call *c, CUstream h, int *status, uint64_t *id, CUgraph *g,
		      CUgraphNode **deps, size_t *ndeps)
{
	return info3(c, h, status, id, g, deps, NULL, ndeps);
}

static CUresult info1(struct sim_call *c, CUstream h, int *status, uint64_t *id)
{
	return info3(c, h, status, id, NULL, NULL, NULL, NULL);
}

static CUresult is_capturing(struct sim_call *c, CUstream h, int *status)
{
	return info1(c, h, status, NULL);
}

static CUresult update(struct sim_call *c, CUstream h, CUgraphNode *deps, size_t n, unsigned flags)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	pthread_mutex_lock(&sim_mu);
	if (!s->capture)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else if (flags)
		set_deps(s, deps, n);
	else
		add_deps(s, deps, n);
	pthread_mutex_unlock(&sim_mu);
	return r;
}

static CUresult update2(struct sim_call *c, CUstream h, CUgraphNode *deps, const void *edges,
			size_t n, unsigned flags)
{
	(void)edges;
	return update(c, h, deps, n, flags);
}

static CUresult exchange(struct sim_call *c, int *mode)
{
	(void)c;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	int old = exchange_mode;
	exchange_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

SIM_API_PT(cuStreamBeginCapture, _ptsz, SIM_NEED_CTX, begin_v1, (CUstream s), (s))
SIM_API_PT(cuStreamBeginCapture_v2, _ptsz, SIM_NEED_CTX, begin, (CUstream s, int mode), (s, mode))
SIM_API_PT(cuStreamBeginCaptureToGraph, _ptsz, SIM_NEED_CTX, begin_to,
	   (CUstream s, CUgraph g, const CUgraphNode *d, const void *e, size_t n, int mode),
	   (s, g, d, e, n, mode))
SIM_API_PT(cuStreamEndCapture, _ptsz, SIM_NEED_CTX, end, (CUstream s, CUgraph *g), (s, g))
SIM_API_PT(cuStreamIsCapturing, _ptsz, SIM_NEED_CTX, is_capturing, (CUstream s, int *status),
	   (s, status))
SIM_API_PT(cuStreamGetCaptureInfo, _ptsz, SIM_NEED_CTX, info1,
	   (CUstream s, int *status, uint64_t *id), (s, status, id))
SIM_API_PT(cuStreamGetCaptureInfo_v2, _ptsz, SIM_NEED_CTX, info2,
	   (CUstream s, int *status, uint64_t *id, CUgraph *g, CUgraphNode **d, size_t *n),
	   (s, status, id, g, d, n))
SIM_API_PT(cuStreamGetCaptureInfo_v3, _ptsz, SIM_NEED_CTX, info3,
	   (CUstream s, int *status, uint64_t *id, CUgraph *g, CUgraphNode **d, void **e,
	    size_t *n),
	   (s, status, id, g, d, e, n))
SIM_API_PT(cuStreamUpdateCaptureDependencies, _ptsz, SIM_NEED_CTX, update,
	   (CUstream s, CUgraphNode *d, size_t n, unsigned flags), (s, d, n, flags))
SIM_API_PT(cuStreamUpdateCaptureDependencies_v2, _ptsz, SIM_NEED_CTX, update2,
	   (CUstream s, CUgraphNode *d, const void *e, size_t n, unsigned flags),
	   (s, d, e, n, flags))
SIM_API(cuThreadExchangeStreamCaptureMode, SIM_NEED_NONE, exchange, (int *mode), (mode))
