/* Events: record, wait, query, elapsed time. */
#include "sim/gpu/stream/ipc_event.h"

#include <stdlib.h>
#include <string.h>

static bool is_event(CUevent e)
{
	return e && e->magic == SIM_MAGIC_EVENT;
}

static CUresult create(struct sim_call *c, CUevent *out, unsigned flags)
{
	(void)c;
	enum { KNOWN = 7 };
	bool shared = flags & SIM_EVENT_INTERPROCESS;
	if (!out || flags & ~(unsigned)KNOWN || (shared && !(flags & SIM_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_event *e = calloc(1, sizeof(*e));
	e->magic = SIM_MAGIC_EVENT;
	e->flags = flags;
	e->ctx = sim_ctx_current();
	CUresult r = shared ? sim_ipc_event_new(e) : CUDA_SUCCESS;
	if (r)
		free(e);
	else
		*out = e;
	return r;
}

static CUresult destroy(struct sim_call *c, CUevent e)
{
	(void)c;
	if (!is_event(e))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim_mu);
	sim_op_unref(e->op);
	e->magic = 0;
	pthread_mutex_unlock(&sim_mu);
	if (e->ipc)
		sim_ipc_event_free(e);
	free(e->nodes);
	free(e);
	return CUDA_SUCCESS;
}

enum { EXTERNAL = 1 }; /* a node of its own in a captured graph */

static CUresult record_flags(struct sim_call *c, CUevent e, CUstream h, unsigned flags)
{
	struct sim_stream *s;
	if (!is_event(e))
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags > EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	if (s->capture) {
		c->captured = true;
		pthread_mutex_lock(&sim_mu);
		r = sim_capture_record(s, e, flags & EXTERNAL);
		pthread_mutex_unlock(&sim_mu);
		return r;
	}
	struct sim_work w = {.kind = SIM_K_EVENT, .engine = SIM_ENG_NONE, .dev = s->ctx->dev};
	struct sim_op *op;
	r = sim_submit(c, s, &w, &op);
	if (r)
		return r;
	pthread_mutex_lock(&sim_mu);
	sim_op_unref(e->op);
	e->op = op;
	e->capture = NULL;
	pthread_mutex_unlock(&sim_mu);
	return e->ipc ? sim_ipc_event_record(c, s, e) : CUDA_SUCCESS;
}

CUresult sim_event_record(struct sim_call *c, CUevent e, CUstream h)
{
	return record_flags(c, e, h, 0);
}

static CUresult wait_event(struct sim_call *c, CUstream h, CUevent e, unsigned flags)
{
	struct sim_stream *s;
	CUresult r;
	if (!is_event(e))
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags > EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_get(c, h, &s);
	if (r)
		return r;
	pthread_mutex_lock(&sim_mu);
	if (sim_capture_wait(s, e, flags & EXTERNAL, &r)) {
		c->captured = true;
	} else if (!sim_op_done(e->op)) {
		struct sim_work w = {
			.kind = SIM_K_MARK, .engine = SIM_ENG_NONE, .dev = s->ctx->dev};
		struct sim_op *op = sim_op_new(&w, c->no, c->stream);
		sim_op_depend(op, e->op);
		sim_stream_order(s, op);
		sim_op_commit(op);
		sim_op_unref(op);
	}
	pthread_mutex_unlock(&sim_mu);
	return r || c->captured || !e->ipc ? r : sim_ipc_event_wait(c, s, e);
}

/* Whether the host may query e now. */
static CUresult look(CUevent e)
{
	if (!is_event(e))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim_mu);
	CUresult r = e->capture ? CUDA_ERROR_CAPTURED_EVENT : sim_capture_unsafe();
	pthread_mutex_unlock(&sim_mu);
	return r;
}

static CUresult synchronize(struct sim_call *c, CUevent e)
{
	(void)c;
	CUresult r = look(e);
	if (r)
		return r;
	pthread_mutex_lock(&sim_mu);
	struct sim_op *op = e->op;
	if (op)
		sim_op_ref(op);
	pthread_mutex_unlock(&sim_mu);
	sim_op_wait(op);
	if (e->ipc)
		sim_ipc_event_synchronize(e);
	return e->ctx->sticky;
}

static CUresult query(struct sim_call *c, CUevent e)
{
	(void)c;
	CUresult r = look(e);
	if (r)
		return r;
	sim_poll_cost();
	bool over = sim_op_done(e->op) && (!e->ipc || sim_ipc_event_done(e));
	return over ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult elapsed(struct sim_call *c, float *ms, CUevent a, CUevent b)
{
	(void)c;
	if (!ms || !is_event(a) || !is_event(b) || !a->op || !b->op ||
	    (a->flags | b->flags) & SIM_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!sim_op_done(a->op) || !sim_op_done(b->op)) {
		sim_poll_cost();
		return CUDA_ERROR_NOT_READY;
	}
	*ms = (float)(((double)b->op->end - (double)a->op->end) * 1e-6);
	return CUDA_SUCCESS;
}

SIM_API(cuEventCreate, SIM_NEED_CTX, create, (CUevent * e, unsigned flags), (e, flags))
SIM_API(cuEventDestroy, SIM_NEED_INIT, destroy, (CUevent e), (e))
SIM_API(cuEventDestroy_v2, SIM_NEED_INIT, destroy, (CUevent e), (e))
SIM_API_PT(cuEventRecord, _ptsz, SIM_NEED_INIT, sim_event_record, (CUevent e, CUstream s), (e, s))
SIM_API_PT(cuEventRecordWithFlags, _ptsz, SIM_NEED_INIT, record_flags,
	   (CUevent e, CUstream s, unsigned flags), (e, s, flags))
SIM_API_PT(cuStreamWaitEvent, _ptsz, SIM_NEED_INIT, wait_event,
	   (CUstream s, CUevent e, unsigned flags), (s, e, flags))
SIM_API(cuEventSynchronize, SIM_NEED_INIT, synchronize, (CUevent e), (e))
SIM_API(cuEventQuery, SIM_NEED_INIT, query, (CUevent e), (e))
SIM_API(cuEventElapsedTime, SIM_NEED_INIT, elapsed, (float *ms, CUevent a, CUevent b), (ms, a, b))
SIM_API(cuEventElapsedTime_v2, SIM_NEED_INIT, elapsed, (float *ms, CUevent a, CUevent b),
	(ms, a, b))
