/* Streams: order of work, default streams, synchronisation, host callbacks. */
#include "sim/gpu/api.h"

#include <stdlib.h>
#include <string.h>

enum { ID_LEGACY = 1 };

void sim_stream_init(struct sim_stream *s, struct sim_ctx *ctx, unsigned flags)
{
	memset(s, 0, sizeof(*s));
	s->magic = SIM_MAGIC_STREAM;
	s->ctx = ctx;
	s->flags = flags;
	s->id = sim_new_id();
}

static struct sim_stream *add(struct sim_ctx *ctx, unsigned flags, long tid)
{
	struct sim_stream *s = malloc(sizeof(*s));
	sim_stream_init(s, ctx, flags);
	s->tid = tid;
	pthread_mutex_lock(&sim_mu);
	s->next = ctx->streams;
	ctx->streams = s;
	pthread_mutex_unlock(&sim_mu);
	return s;
}

static struct sim_stream *per_thread(struct sim_ctx *ctx)
{
	static __thread struct sim_stream *last;
	static __thread uint64_t last_ctx;
	if (last && last_ctx == ctx->id)
		return last;
	pthread_mutex_lock(&sim_mu);
	struct sim_stream *s = ctx->streams;
	while (s && s->tid != sim_tid())
		s = s->next;
	pthread_mutex_unlock(&sim_mu);
	last = s ? s : add(ctx, 0, sim_tid());
	last_ctx = ctx->id;
	return last;
}

CUresult sim_stream_get(struct sim_call *c, CUstream h, struct sim_stream **out)
{
	struct sim_ctx *ctx = sim_ctx_current();
	if (!ctx && (uintptr_t)h <= (uintptr_t)SIM_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (h == SIM_STREAM_PER_THREAD || (!h && c->per_thread)) {
		*out = per_thread(ctx);
	} else if (!h || h == SIM_STREAM_LEGACY) {
		*out = &ctx->legacy;
	} else {
		if (h->magic != SIM_MAGIC_STREAM)
			return CUDA_ERROR_INVALID_HANDLE;
		*out = h;
	}
	c->stream = (*out)->legacy ? ID_LEGACY : (*out)->id;
	return (*out)->ctx->sticky;
}

void sim_stream_leave(struct sim_stream *s)
{
	if (--s->pending || !s->dead)
		return;
	sim_op_unref(s->tail);
	free(s->attributes);
	free(s);
}

static bool blocking(const struct sim_stream *s)
{
	return !(s->flags & SIM_STREAM_NON_BLOCKING);
}

void sim_stream_order(struct sim_stream *s, struct sim_op *op)
{
	sim_op_depend(op, s->tail);
	if (s->legacy) {
		for (struct sim_stream *o = s->ctx->streams; o; o = o->next)
			if (blocking(o))
				sim_op_depend(op, o->tail);
	} else if (blocking(s)) {
		sim_op_depend(op, s->ctx->legacy.tail);
	}
	sim_op_unref(s->tail);
	sim_op_ref(op);
	s->tail = op;
}

static bool captures(const struct sim_ctx *ctx)
{
	for (const struct sim_stream *s = ctx->streams; s; s = s->next)
		if (s->capture && blocking(s))
			return true;
	return false;
}

CUresult sim_submit(struct sim_call *c, struct sim_stream *s, struct sim_work *w,
		    struct sim_op **out)
{
	CUresult r = CUDA_SUCCESS;
	if (out)
		*out = NULL;
	pthread_mutex_lock(&sim_mu);
	if (s->capture) {
		r = sim_capture_work(s, w);
		c->captured = true;
	} else if (s->legacy && captures(s->ctx)) {
		sim_work_release(w);
		r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	} else if (!sim_engine_start(w->dev, w->engine)) {
		sim_work_release(w);
		r = CUDA_ERROR_OPERATING_SYSTEM;
	} else {
		sim_wait_room(s);
		struct sim_op *op = sim_op_new(w, c->no, c->stream);
		op->work.ctx = s->ctx;
		op->stream = s;
		op->prio = s->prio;
		s->pending++;
		sim_stream_order(s, op);
		sim_op_commit(op);
		if (out)
			*out = op;
		else
			sim_op_unref(op);
	}
	pthread_mutex_unlock(&sim_mu);
	return r;
}

/* Reference to the last operation of s, for waiting. */
static struct sim_op *tail_of(struct sim_stream *s)
{
	struct sim_op *op = sim_op_done(s->tail) ? NULL : s->tail;
	if (op)
		sim_op_ref(op);
	return op;
}

/* Waits for the tails of all streams of ctx for which want() holds. */
static void drain(struct sim_ctx *ctx, bool only_blocking)
{
	struct sim_op *op;
	do {
		pthread_mutex_lock(&sim_mu);
		op = tail_of(&ctx->legacy);
		for (struct sim_stream *s = ctx->streams; s && !op; s = s->next)
			if (!only_blocking || blocking(s))
				op = tail_of(s);
		pthread_mutex_unlock(&sim_mu);
		sim_op_wait(op);
	} while (op);
}

void sim_stream_drain(struct sim_stream *s)
{
	if (s->legacy) {
		drain(s->ctx, true);
		return;
	}
	pthread_mutex_lock(&sim_mu);
	struct sim_op *op = tail_of(s);
	pthread_mutex_unlock(&sim_mu);
	sim_op_wait(op);
}

void sim_ctx_drain(struct sim_ctx *ctx)
{
	drain(ctx, false);
}

void sim_streams_free(struct sim_ctx *ctx)
{
	pthread_mutex_lock(&sim_mu);
	for (struct sim_stream *s = ctx->streams, *next; s; s = next) {
		next = s->next;
		sim_op_unref(s->tail);
		s->magic = 0;
		free(s);
	}
	ctx->streams = NULL;
	sim_op_unref(ctx->legacy.tail);
	ctx->legacy.tail = NULL;
	pthread_mutex_unlock(&sim_mu);
}

struct sim_stream *sim_stream_new(struct sim_ctx *ctx, unsigned flags, int prio)
{
	struct sim_stream *s = add(ctx, flags, 0);
	s->prio = prio > 0 ? 0 : prio < -5 ? -5 : prio;
	return s;
}

static CUresult create_prio(struct sim_call *c, CUstream *out, unsigned flags, int prio)
{
	if (!out || flags & ~SIM_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	*out = sim_stream_new(sim_ctx_current(), flags, prio);
	c->stream = (*out)->id;
	return CUDA_SUCCESS;
}

static CUresult create(struct sim_call *c, CUstream *out, unsigned flags)
{
	return create_prio(c, out, flags, 0);
}

static CUresult destroy(struct sim_call *c, CUstream s)
{
	if (!s || (uintptr_t)s <= 2 || s->magic != SIM_MAGIC_STREAM)
		return CUDA_ERROR_INVALID_HANDLE;
	c->stream = s->id;
	pthread_mutex_lock(&sim_mu);
	struct sim_stream **p = &s->ctx->streams;
	while (*p && *p != s)
		p = &(*p)->next;
	if (*p)
		*p = s->next;
	sim_capture_leave(s);
	s->magic = 0;
	s->dead = true;
	s->pending++;
	sim_stream_leave(s);
	pthread_mutex_unlock(&sim_mu);
	return CUDA_SUCCESS;
}

static CUresult synchronize(struct sim_call *c, CUstream h)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	pthread_mutex_lock(&sim_mu);
	r = sim_capture_forbid(s);
	if (!r)
		r = sim_capture_unsafe();
	pthread_mutex_unlock(&sim_mu);
	if (r)
		return r;
	sim_stream_drain(s);
	return s->ctx->sticky;
}

static CUresult query(struct sim_call *c, CUstream h)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	sim_poll_cost();
	pthread_mutex_lock(&sim_mu);
	r = sim_capture_forbid(s);
	if (!r)
		r = sim_capture_unsafe();
	if (!r && !sim_op_done(s->tail))
		r = CUDA_ERROR_NOT_READY;
	for (struct sim_stream *o = s->ctx->streams; o && !r && s->legacy; o = o->next)
		if (blocking(o) && !sim_op_done(o->tail))
			r = CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&sim_mu);
	return r;
}

static CUresult host_work(struct sim_call *c, CUstream h, struct sim_work *w)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	w->kind = SIM_K_HOST;
	w->engine = SIM_ENG_HOST;
	w->dev = s->ctx->dev;
	w->host.stream = h;
	return sim_submit(c, s, w, NULL);
}

static CUresult launch_host(struct sim_call *c, CUstream h, CUhostFn fn, void *arg)
{
	struct sim_work w = {.host = {.fn = fn, .arg = arg}};
	return fn ? host_work(c, h, &w) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_callback(struct sim_call *c, CUstream h, CUstreamCallback cb, void *arg,
			     unsigned flags)
{
	struct sim_work w = {.host = {.cb = cb, .arg = arg}};
	return cb && !flags ? host_work(c, h, &w) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult get_ctx(struct sim_call *c, CUstream h, CUcontext *out)
{
	struct sim_stream *s;
	CUresult r = out ? sim_stream_get(c, h, &s) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = s->ctx;
	return r;
}

static CUresult get_ctx2(struct sim_call *c, CUstream h, CUcontext *out, struct sim_green **green)
{
	CUresult r = get_ctx(c, h, out);
	if (!r && green)
		*green = (*out)->green;
	return r;
}

static CUresult get_device(struct sim_call *c, CUstream h, CUdevice *out)
{
	struct sim_stream *s;
	CUresult r = out ? sim_stream_get(c, h, &s) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = s->ctx->dev->index;
	return r;
}

static CUresult get_flags(struct sim_call *c, CUstream h, unsigned *out)
{
	struct sim_stream *s;
	CUresult r = out ? sim_stream_get(c, h, &s) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = s->flags;
	return r;
}

static CUresult get_priority(struct sim_call *c, CUstream h, int *out)
{
	struct sim_stream *s;
	CUresult r = out ? sim_stream_get(c, h, &s) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = s->prio;
	return r;
}

static CUresult get_id(struct sim_call *c, CUstream h, unsigned long long *out)
{
	struct sim_stream *s;
	CUresult r = out ? sim_stream_get(c, h, &s) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = c->stream;
	return r;
}

SIM_API(cuStreamCreate, SIM_NEED_CTX, create, (CUstream * s, unsigned flags), (s, flags))
SIM_API(cuStreamCreateWithPriority, SIM_NEED_CTX, create_prio,
	(CUstream * s, unsigned flags, int prio), (s, flags, prio))
SIM_API(cuStreamDestroy, SIM_NEED_INIT, destroy, (CUstream s), (s))
SIM_API(cuStreamDestroy_v2, SIM_NEED_INIT, destroy, (CUstream s), (s))
SIM_API_PT(cuStreamSynchronize, _ptsz, SIM_NEED_INIT, synchronize, (CUstream s), (s))
SIM_API_PT(cuStreamQuery, _ptsz, SIM_NEED_INIT, query, (CUstream s), (s))
SIM_API_PT(cuLaunchHostFunc, _ptsz, SIM_NEED_INIT, launch_host,
	   (CUstream s, CUhostFn fn, void *arg), (s, fn, arg))
SIM_API_PT(cuStreamAddCallback, _ptsz, SIM_NEED_INIT, add_callback,
	   (CUstream s, CUstreamCallback cb, void *arg, unsigned flags), (s, cb, arg, flags))
SIM_API_PT(cuStreamGetCtx, _ptsz, SIM_NEED_INIT, get_ctx, (CUstream s, CUcontext *ctx), (s, ctx))
SIM_API_PT(cuStreamGetCtx_v2, _ptsz, SIM_NEED_INIT, get_ctx2,
	   (CUstream s, CUcontext *ctx, struct sim_green **green), (s, ctx, green))
SIM_API_PT(cuStreamGetDevice, _ptsz, SIM_NEED_INIT, get_device, (CUstream s, CUdevice *d), (s, d))
SIM_API_PT(cuStreamGetFlags, _ptsz, SIM_NEED_INIT, get_flags, (CUstream s, unsigned *flags),
	   (s, flags))
SIM_API_PT(cuStreamGetPriority, _ptsz, SIM_NEED_INIT, get_priority, (CUstream s, int *prio),
	   (s, prio))
SIM_API_PT(cuStreamGetId, _ptsz, SIM_NEED_INIT, get_id, (CUstream s, unsigned long long *id),
	   (s, id))
