/* Stream capture: calls on a capturing stream become nodes of a graph. */
#include "sim/gpu/graph/graph.h"

#include <stdlib.h>
#include <string.h>

enum { GLOBAL, THREAD_LOCAL, RELAXED };

/* Never freed: events may refer to a finished capture. */
struct sim_capture {
	struct sim_graph *graph;
	struct sim_stream *origin;
	struct sim_stream **streams; /* all participating streams, the origin first */
	size_t nstreams;
	uint64_t id;
	int mode;
	long tid;
	bool invalid, over, to_graph;
	struct sim_capture *next; /* in the list of captures in progress */
};

unsigned sim_captures;
static struct sim_capture *active;
static __thread int exchange_mode; /* GLOBAL */

/* edges may be NULL. */
static void add_deps(struct sim_stream *s, struct sim_node *const *deps,
		     const CUgraphEdgeData *edges, size_t n)
{
	size_t total = s->ncap_deps + n;
	s->cap_deps = realloc(s->cap_deps, (total + 1) * sizeof(*s->cap_deps));
	s->cap_edges = realloc(s->cap_edges, (total + 1) * sizeof(*s->cap_edges));
	for (size_t i = 0; i < n; i++) {
		s->cap_deps[s->ncap_deps + i] = deps[i];
		s->cap_edges[s->ncap_deps + i] = edges ? edges[i] : (CUgraphEdgeData){0};
	}
	s->ncap_deps = total;
}

static void set_deps(struct sim_stream *s, struct sim_node *const *deps,
		     const CUgraphEdgeData *edges, size_t n)
{
	s->ncap_deps = 0;
	add_deps(s, deps, edges, n);
}

static void join(struct sim_capture *k, struct sim_stream *s)
{
	k->streams = realloc(k->streams, (k->nstreams + 1) * sizeof(struct sim_stream *));
	k->streams[k->nstreams++] = s;
	s->capture = k;
	s->ncap_deps = 0;
}

/* The next node of s. */
static struct sim_node *append(struct sim_stream *s, int type, const struct sim_work *w)
{
	struct sim_node *n = sim_graph_add(s->capture->graph, type, w, NULL, 0);
	for (size_t i = 0; i < s->ncap_deps; i++)
		sim_node_depend(n, s->cap_deps[i], &s->cap_edges[i]);
	set_deps(s, &n, NULL, 1);
	return n;
}

CUresult sim_capture_work(struct sim_stream *s, struct sim_work *w)
{
	static const int types[] = {[SIM_K_KERNEL] = SIM_NODE_KERNEL,
				    [SIM_K_COPY] = SIM_NODE_MEMCPY,
				    [SIM_K_MEMSET] = SIM_NODE_MEMSET,
				    [SIM_K_HOST] = SIM_NODE_HOST,
				    [SIM_K_EVENT] = -1,
				    [SIM_K_MARK] = -1,
				    [SIM_K_FREE] = SIM_NODE_FREE,
				    [SIM_K_ALLOC] = -1,
				    [SIM_K_VALUE] = SIM_NODE_MEMOP};
	if (s->capture->invalid || types[w->kind] < 0) {
		sim_work_release(w);
		return s->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
					   : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	append(s, types[w->kind], w);
	return CUDA_SUCCESS;
}

CUresult sim_capture_alloc(struct sim_stream *s, struct sim_device *dev, size_t n, CUdeviceptr *out)
{
	struct sim_work w = {.kind = SIM_K_ALLOC, .engine = SIM_ENG_NONE, .dev = dev};
	CUresult r = CUDA_SUCCESS;
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	w.reserve = sim_reserve_new(dev, n);
	if (!w.reserve)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim_mu);
	if (!s->capture || s->capture->invalid)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else
		append(s, SIM_NODE_ALLOC, &w);
	pthread_mutex_unlock(&sim_mu);
	if (r)
		sim_reserve_unref(w.reserve);
	else
		*out = sim_reserve_address(w.reserve);
	return r;
}

CUresult sim_capture_graph(struct sim_stream *s, const struct sim_graph *g)
{
	struct sim_work w = {.kind = SIM_K_MARK, .engine = SIM_ENG_NONE, .dev = s->ctx->dev};
	if (s->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (sim_graph_has(g, SIM_NODE_ALLOC) || sim_graph_has(g, SIM_NODE_FREE))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	struct sim_node *n = append(s, SIM_NODE_GRAPH, &w);
	n->bodies = calloc(1, sizeof(*n->bodies));
	n->nbodies = 1;
	n->bodies[0] = sim_graph_copy(g);
	n->bodies[0]->owner = n;
	return CUDA_SUCCESS;
}

static void event_node(struct sim_stream *s, struct sim_event *e, int type)
{
	struct sim_work w = {.kind = SIM_K_EVENT, .engine = SIM_ENG_NONE, .dev = s->ctx->dev};
	w.event = e;
	append(s, type, &w);
}

CUresult sim_capture_record(struct sim_stream *s, struct sim_event *e, bool external)
{
	if (s->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (external) {
		event_node(s, e, SIM_NODE_RECORD_EVENT);
		return CUDA_SUCCESS;
	}
	free(e->nodes);
	e->nodes = malloc((s->ncap_deps + 1) * sizeof(*e->nodes));
	if (s->ncap_deps)
		memcpy(e->nodes, s->cap_deps, s->ncap_deps * sizeof(*e->nodes));
	e->nnodes = s->ncap_deps;
	e->capture = s->capture;
	return CUDA_SUCCESS;
}

/* Another stream waits for an event of a capture, and joins it. */
static CUresult wait_inside(struct sim_stream *s, struct sim_event *e)
{
	struct sim_capture *k = e->capture;
	if (s->legacy) {
		k->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (s->capture && s->capture != k) {
		k->invalid = s->capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (k->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!s->capture)
		join(k, s);
	add_deps(s, e->nodes, NULL, e->nnodes);
	return CUDA_SUCCESS;
}

bool sim_capture_wait(struct sim_stream *s, struct sim_event *e, bool external, CUresult *r)
{
	*r = CUDA_SUCCESS;
	if (s->capture && external) {
		if (s->capture->invalid)
			*r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		else
			event_node(s, e, SIM_NODE_WAIT_EVENT);
		return true;
	}
	if (e->capture && !e->capture->over) {
		*r = wait_inside(s, e);
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

/* Removes it from the list of captures in progress and releases its streams. */
static void finish(struct sim_capture *k)
{
	struct sim_capture **at = &active;
	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	__atomic_sub_fetch(&sim_captures, 1, __ATOMIC_RELAXED);
	k->over = true;
	for (size_t i = 0; i < k->nstreams; i++)
		k->streams[i]->capture = NULL;
	free(k->streams);
	k->streams = NULL;
	k->nstreams = 0;
}

void sim_capture_leave(struct sim_stream *s)
{
	struct sim_capture *k = s->capture;
	free(s->cap_deps);
	free(s->cap_edges);
	s->cap_deps = NULL;
	s->cap_edges = NULL;
	if (!k)
		return;
	k->invalid = true;
	for (size_t i = 0; i < k->nstreams; i++)
		if (k->streams[i] == s)
			k->streams[i] = k->streams[--k->nstreams];
	s->capture = NULL;
	if (k->origin == s)
		finish(k); /* nobody can end it any more */
}

/* Whether k forbids unsafe calls to this thread. */
static bool forbids(const struct sim_capture *k)
{
	if (exchange_mode == RELAXED)
		return false;
	if (k->tid == sim_tid())
		return k->mode != RELAXED;
	return k->mode == GLOBAL && exchange_mode == GLOBAL;
}

CUresult sim_capture_unsafe(void)
{
	CUresult r = CUDA_SUCCESS;
	for (struct sim_capture *k = active; k; k = k->next) {
		if (forbids(k)) {
			k->invalid = true;
			r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	return r;
}

/* Calls that may wait for the device, whatever their arguments. */
static const char *const unsafe[] = {
	"cuArray3DCreate",     "cuArray3DCreate_v2", "cuArrayCreate",	    "cuArrayCreate_v2",
	"cuArrayDestroy",      "cuCtxSynchronize",   "cuCtxSynchronize_v2", "cuMemAlloc",
	"cuMemAllocHost",      "cuMemAllocHost_v2",  "cuMemAllocManaged",   "cuMemAllocPitch",
	"cuMemAllocPitch_v2",  "cuMemAlloc_v2",	     "cuMemFree",	    "cuMemFreeHost",
	"cuMemFree_v2",	       "cuMemHostAlloc",     "cuMemHostRegister",   "cuMemHostRegister_v2",
	"cuMemHostUnregister", "cuMemMap",	     "cuMemPoolTrimTo",	    "cuMemUnmap",
};

CUresult sim_capture_check(const char *name)
{
	CUresult r = CUDA_SUCCESS;
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++) {
		if (strcmp(unsafe[i], name))
			continue;
		pthread_mutex_lock(&sim_mu);
		r = sim_capture_unsafe();
		pthread_mutex_unlock(&sim_mu);
	}
	return r;
}

static CUresult start(struct sim_call *c, CUstream h, struct sim_graph *g, const CUgraphNode *deps,
		      const CUgraphEdgeData *edges, size_t ndeps, int mode)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (mode < GLOBAL || mode > RELAXED || (ndeps && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < ndeps; i++)
		if (!sim_node_is(deps[i]) || deps[i]->graph != g)
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
		k->mode = mode;
		k->tid = sim_tid();
		k->next = active;
		active = k;
		__atomic_add_fetch(&sim_captures, 1, __ATOMIC_RELAXED);
		join(k, s);
		add_deps(s, deps, edges, ndeps);
	}
	pthread_mutex_unlock(&sim_mu);
	return r;
}

static CUresult begin(struct sim_call *c, CUstream h, int mode)
{
	return start(c, h, NULL, NULL, NULL, 0, mode);
}

static CUresult begin_v1(struct sim_call *c, CUstream h)
{
	return begin(c, h, GLOBAL);
}

static CUresult begin_to(struct sim_call *c, CUstream h, CUgraph g, const CUgraphNode *deps,
			 const CUgraphEdgeData *edges, size_t ndeps, int mode)
{
	return sim_graph_is(g) ? start(c, h, g, deps, edges, ndeps, mode)
			       : CUDA_ERROR_INVALID_VALUE;
}

/* Marks the nodes that precede the ends of s, and those ends. */
static bool *before(const struct sim_stream *s, const struct sim_graph *g)
{
	bool *seen = calloc(g->n + 1, sizeof(*seen));
	struct sim_node **stack = calloc(g->n + 1, sizeof(struct sim_node *));
	size_t n = 0;
	struct sim_node *const *next = s->cap_deps;
	size_t nnext = s->ncap_deps;
	for (;;) {
		for (size_t i = 0; i < nnext; i++) {
			if (seen[next[i]->index])
				continue;
			seen[next[i]->index] = true;
			stack[n++] = next[i];
		}
		if (!n)
			break;
		n--;
		next = stack[n]->deps;
		nnext = stack[n]->ndeps;
	}
	free(stack);
	return seen;
}

/* Whether all joined streams end in the origin. */
static bool joined(const struct sim_capture *k)
{
	bool *seen = before(k->origin, k->graph), all = true;
	for (size_t i = 0; i < k->nstreams; i++)
		for (size_t j = 0; j < k->streams[i]->ncap_deps; j++)
			all &= seen[k->streams[i]->cap_deps[j]->index];
	free(seen);
	return all;
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
	} else if (k->mode != RELAXED && k->tid != sim_tid()) {
		k->invalid = true;
		r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	} else {
		r = k->invalid	 ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
		    : !joined(k) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
				 : CUDA_SUCCESS;
		finish(k);
		if (!r)
			*out = k->graph;
		else if (!k->to_graph)
			sim_graph_free(k->graph);
	}
	pthread_mutex_unlock(&sim_mu);
	return r;
}

/* Whether a query of the legacy stream is ambiguous. */
static bool captured_around(const struct sim_ctx *ctx)
{
	for (const struct sim_stream *o = ctx->streams; o; o = o->next)
		if (o->capture && !(o->flags & SIM_STREAM_NON_BLOCKING))
			return true;
	return false;
}

static CUresult info3(struct sim_call *c, CUstream h, int *status, uint64_t *id, CUgraph *g,
		      CUgraphNode **deps, CUgraphEdgeData **edges, size_t *ndeps)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->legacy && captured_around(s->ctx))
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	struct sim_capture *k = s->capture;
	*status = !k ? SIM_CAPTURE_NONE : k->invalid ? SIM_CAPTURE_INVALIDATED : SIM_CAPTURE_ACTIVE;
	if (id)
		*id = k ? k->id : 0;
	if (g)
		*g = k ? k->graph : NULL;
	if (deps)
		*deps = k ? s->cap_deps : NULL;
	if (edges)
		*edges = k ? s->cap_edges : NULL;
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

static CUresult update2(struct sim_call *c, CUstream h, CUgraphNode *deps,
			const CUgraphEdgeData *edges, size_t n, unsigned flags)
{
	enum { ADD, SET };
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (flags > SET || (n && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_mu);
	if (!s->capture)
		r = CUDA_ERROR_ILLEGAL_STATE;
	for (size_t i = 0; !r && i < n; i++)
		if (!sim_node_is(deps[i]) || deps[i]->graph != s->capture->graph)
			r = CUDA_ERROR_INVALID_VALUE;
	if (!r && flags == SET)
		set_deps(s, deps, edges, n);
	else if (!r)
		add_deps(s, deps, edges, n);
	pthread_mutex_unlock(&sim_mu);
	return r;
}

static CUresult update(struct sim_call *c, CUstream h, CUgraphNode *deps, size_t n, unsigned flags)
{
	return update2(c, h, deps, NULL, n, flags);
}

static CUresult exchange(struct sim_call *c, int *mode)
{
	(void)c;
	if (!mode || *mode < GLOBAL || *mode > RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	int old = exchange_mode;
	exchange_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

SIM_API_PT(cuStreamBeginCapture, _ptsz, SIM_NEED_CTX, begin_v1, (CUstream s), (s))
SIM_API_PT(cuStreamBeginCapture_v2, _ptsz, SIM_NEED_CTX, begin, (CUstream s, int mode), (s, mode))
SIM_API_PT(cuStreamBeginCaptureToGraph, _ptsz, SIM_NEED_CTX, begin_to,
	   (CUstream s, CUgraph g, const CUgraphNode *d, const CUgraphEdgeData *e, size_t n,
	    int mode),
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
	   (CUstream s, int *status, uint64_t *id, CUgraph *g, CUgraphNode **d, CUgraphEdgeData **e,
	    size_t *n),
	   (s, status, id, g, d, e, n))
SIM_API_PT(cuStreamUpdateCaptureDependencies, _ptsz, SIM_NEED_CTX, update,
	   (CUstream s, CUgraphNode *d, size_t n, unsigned flags), (s, d, n, flags))
SIM_API_PT(cuStreamUpdateCaptureDependencies_v2, _ptsz, SIM_NEED_CTX, update2,
	   (CUstream s, CUgraphNode *d, const CUgraphEdgeData *e, size_t n, unsigned flags),
	   (s, d, e, n, flags))
SIM_API(cuThreadExchangeStreamCaptureMode, SIM_NEED_NONE, exchange, (int *mode), (mode))
