/*
 * Stream memory operations: a stream writes a value, or waits until memory holds one. Any thread or
 * process may write that memory, so it is polled: by a thread, or by the virtual clock.
 */
#include "sim/gpu/api.h"
#include "sim/gpu/engine/engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { WAIT32 = 1, WRITE32 = 2, FLUSH = 3, WAIT64 = 4, WRITE64 = 5, BARRIER = 6 };
enum { GEQ, EQ, AND, NOR, COMPARISON = 3, FLUSH_FLAG = 1 << 30 };
enum { POLL_US = 20, MAX_OPS = 256 };

static struct sim_op *waiting; /* linked by qnext */
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;

static bool is_wait(int what)
{
	return what == WAIT32 || what == WAIT64;
}

static bool wide(int what)
{
	return what == WAIT64 || what == WRITE64;
}

static bool holds(const struct sim_value *v)
{
	uint64_t now;
	const void *p = (const void *)(uintptr_t)v->address;
	if (wide(v->what)) {
		now = __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
		switch (v->flags & COMPARISON) {
		case GEQ:
			return (int64_t)(now - v->value) >= 0;
		case NOR:
			return ~(now | v->value) != 0;
		}
	} else {
		now = __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);
		switch (v->flags & COMPARISON) {
		case GEQ:
			return (int32_t)((uint32_t)now - (uint32_t)v->value) >= 0;
		case NOR:
			return ~((uint32_t)now | (uint32_t)v->value) != 0;
		}
	}
	return (v->flags & COMPARISON) == EQ ? now == v->value : (now & v->value) != 0;
}

bool sim_values_try(struct sim_values *s)
{
	for (; s->at < s->n; s->at++) {
		const struct sim_value *v = &s->v[s->at];
		void *p = (void *)(uintptr_t)v->address;
		struct sim_range r;
		/* The client may have freed the memory meanwhile. */
		if (v->what == FLUSH || v->what == BARRIER || !sim_mem_find(p, &r))
			continue;
		if (is_wait(v->what) && !holds(v))
			return false;
		if (v->what == WRITE32)
			__atomic_store_n((uint32_t *)p, (uint32_t)v->value, __ATOMIC_RELEASE);
		else if (v->what == WRITE64)
			__atomic_store_n((uint64_t *)p, v->value, __ATOMIC_RELEASE);
	}
	return true;
}

void sim_values_wait(struct sim_op *op)
{
	op->start = op->ready;
	op->qnext = waiting;
	waiting = op;
	pthread_cond_signal(&some);
}

bool sim_values_poll(void)
{
	for (struct sim_op **at = &waiting; *at;) {
		struct sim_op *op = *at;
		if (!sim_values_try(&op->work.values)) {
			at = &op->qnext;
			continue;
		}
		*at = op->qnext;
		op->end = sim_now() > op->start ? sim_now() : op->start;
		sim_op_complete(op);
		at = &waiting; /* a write may have released others */
	}
	return waiting != NULL;
}

static void *run(void *unused)
{
	(void)unused;
	prctl(PR_SET_TIMERSLACK, 1000UL);
	prctl(PR_SET_NAME, "simgpu");
	pthread_mutex_lock(&sim_mu);
	for (;;) {
		if (!sim_values_poll()) {
			pthread_cond_wait(&some, &sim_mu);
			continue;
		}
		pthread_mutex_unlock(&sim_mu);
		usleep(POLL_US);
		pthread_mutex_lock(&sim_mu);
	}
	return NULL;
}

bool sim_values_start(void)
{
	static bool started;
	if (!started && !sim_cfg.virtual_time)
		started = sim_thread(run, NULL);
	return started || sim_cfg.virtual_time;
}

/* ---- from the interface ---- */
static bool good(const struct sim_value *v, bool first_version)
{
	struct sim_range r;
	if (v->what == FLUSH)
		return !v->flags;
	if (v->what == BARRIER)
		return !first_version && v->flags <= 1;
	if (v->what < WAIT32 || v->what > WRITE64 || v->address & (wide(v->what) ? 7 : 3))
		return false;
	if (is_wait(v->what) ? (v->flags & ~(unsigned)FLUSH_FLAG) > NOR : v->flags > 1)
		return false;
	return sim_mem_find((void *)(uintptr_t)v->address, &r);
}

CUresult sim_values_from(struct sim_work *w, struct sim_ctx *ctx, const CUstreamBatchMemOpParams *p,
			 unsigned n, bool first_version)
{
	if ((n && !p) || n > MAX_OPS)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_value *v = calloc(n + 1, sizeof(*v));
	for (unsigned i = 0; i < n; i++) {
		v[i].what = p[i].operation;
		v[i].flags = p[i].flags.flags;
		if (v[i].what != FLUSH && v[i].what != BARRIER) {
			v[i].flags = p[i].value.flags;
			v[i].address = p[i].value.address;
			v[i].value = wide(v[i].what) ? p[i].value.value64 : p[i].value.value;
		}
		if (!good(&v[i], first_version)) {
			free(v);
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	*w = (struct sim_work){.kind = SIM_K_VALUE,
			       .engine = SIM_ENG_VALUE,
			       .dev = ctx->dev,
			       .values = {.v = v, .n = n}};
	return CUDA_SUCCESS;
}

static CUresult run_all(struct sim_call *c, CUstream h, unsigned n,
			const CUstreamBatchMemOpParams *p, bool first_version)
{
	struct sim_stream *s;
	struct sim_work w;
	CUresult r = sim_stream_get(c, h, &s);
	if (!r)
		r = sim_values_from(&w, s->ctx, p, n, first_version);
	if (r)
		return r;
	sim_host_cost(sim_cfg.launch_ns);
	return sim_submit(c, s, &w, NULL);
}

static CUresult batch(struct sim_call *c, CUstream h, unsigned n, CUstreamBatchMemOpParams *p,
		      unsigned flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : run_all(c, h, n, p, false);
}

static CUresult batch_v1(struct sim_call *c, CUstream h, unsigned n, CUstreamBatchMemOpParams *p,
			 unsigned flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : run_all(c, h, n, p, true);
}

static CUresult one(struct sim_call *c, int what, CUstream h, CUdeviceptr a, uint64_t v,
		    unsigned flags)
{
	CUstreamBatchMemOpParams p = {
		.value = {.operation = what, .address = a, .value64 = v, .flags = flags}};
	return run_all(c, h, 1, &p, false);
}

static CUresult wait32(struct sim_call *c, CUstream h, CUdeviceptr a, uint32_t v, unsigned flags)
{
	return one(c, WAIT32, h, a, v, flags);
}

static CUresult wait64(struct sim_call *c, CUstream h, CUdeviceptr a, uint64_t v, unsigned flags)
{
	return one(c, WAIT64, h, a, v, flags);
}

static CUresult write32(struct sim_call *c, CUstream h, CUdeviceptr a, uint32_t v, unsigned flags)
{
	return one(c, WRITE32, h, a, v, flags);
}

static CUresult write64(struct sim_call *c, CUstream h, CUdeviceptr a, uint64_t v, unsigned flags)
{
	return one(c, WRITE64, h, a, v, flags);
}

#define P32 (CUstream s, CUdeviceptr a, uint32_t v, unsigned flags), (s, a, v, flags)
#define P64 (CUstream s, CUdeviceptr a, uint64_t v, unsigned flags), (s, a, v, flags)
#define BATCH                                                                                      \
	(CUstream s, unsigned n, CUstreamBatchMemOpParams *p, unsigned flags), (s, n, p, flags)
#define BOTH(name, impl, ...) SIM_API_PT(name, _ptsz, SIM_NEED_INIT, impl, __VA_ARGS__)
BOTH(cuStreamWaitValue32, wait32, P32)
BOTH(cuStreamWaitValue32_v2, wait32, P32)
BOTH(cuStreamWaitValue64, wait64, P64)
BOTH(cuStreamWaitValue64_v2, wait64, P64)
BOTH(cuStreamWriteValue32, write32, P32)
BOTH(cuStreamWriteValue32_v2, write32, P32)
BOTH(cuStreamWriteValue64, write64, P64)
BOTH(cuStreamWriteValue64_v2, write64, P64)
BOTH(cuStreamBatchMemOp, batch_v1, BATCH)
BOTH(cuStreamBatchMemOp_v2, batch, BATCH)
