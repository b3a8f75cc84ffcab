/*
 * Green contexts: contexts with a share of the multiprocessors. The share is reported, but kernels
 * still take the time given by the settings. Also events of whole contexts.
 */
#include "sim/gpu/device/context.h"

#include <stdlib.h>
#include <string.h>

enum { TYPE_SM = 1, DEFAULT_STREAM = 1, IGNORE_COSCHEDULING = 1, MAX_CLUSTER = 2 };

/* Stored in the padding of a resource: its owner, and the split it came from. */
typedef struct {
	int type;
	int device;
	uint64_t split;
	unsigned char padding[80];
	struct {
		unsigned smCount, minSmPartitionSize, smCoscheduledAlignment;
		unsigned char rest[36];
	} sm;
} CUdevResource;
_Static_assert(sizeof(CUdevResource) == 144, "as the driver's");

struct desc {
	int magic, device;
	CUdevResource sm;
};

struct sim_green {
	int magic;
	struct sim_ctx *ctx;
	CUdevResource sm;
	struct sim_green *next;
};
typedef struct sim_green *CUgreenCtx;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct sim_green *greens;

static bool is_green(const struct sim_green *g)
{
	return g && g->magic == SIM_MAGIC_GREEN;
}

static void whole(CUdevResource *r, int device)
{
	/* Granularity by compute capability, as documented for 7.x, 8.x and 9.0. */
	unsigned least = sim_cfg.cc_major >= 9 ? 8 : sim_cfg.cc_major == 8 ? 4 : 2;
	memset(r, 0, sizeof(*r));
	r->type = TYPE_SM;
	r->device = device;
	r->sm.smCount = SIM_MULTIPROCESSORS;
	r->sm.minSmPartitionSize = least;
	r->sm.smCoscheduledAlignment = sim_cfg.cc_major >= 9 ? 8 : 2;
}

static CUresult check_type(const void *out, int type)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return type == TYPE_SM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

static CUresult device_resource(struct sim_call *c, CUdevice d, CUdevResource *out, int type)
{
	(void)c;
	CUresult r = sim_is_device(d) ? check_type(out, type) : CUDA_ERROR_INVALID_DEVICE;
	if (!r)
		whole(out, d);
	return r;
}

static CUresult green_resource(struct sim_call *c, CUgreenCtx g, CUdevResource *out, int type)
{
	(void)c;
	CUresult r = is_green(g) ? check_type(out, type) : CUDA_ERROR_INVALID_CONTEXT;
	if (!r)
		*out = g->sm;
	return r;
}

static CUresult ctx_resource(struct sim_call *c, CUcontext h, CUdevResource *out, int type)
{
	struct sim_ctx *ctx = sim_ctx_or_current(h);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	return ctx->green ? green_resource(c, ctx->green, out, type)
			  : device_resource(c, ctx->dev->index, out, type);
}

static CUresult split(struct sim_call *c, CUdevResource *out, unsigned *n, const CUdevResource *in,
		      CUdevResource *rest, unsigned flags, unsigned least)
{
	(void)c;
	if (!n || !in || flags & ~(unsigned)(IGNORE_COSCHEDULING | MAX_CLUSTER))
		return CUDA_ERROR_INVALID_VALUE;
	if (in->type != TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (least > in->sm.smCount || !in->sm.smCoscheduledAlignment || (out && !*n))
		return CUDA_ERROR_INVALID_VALUE;
	unsigned align = flags & IGNORE_COSCHEDULING ? 2 : in->sm.smCoscheduledAlignment;
	unsigned smallest = flags & IGNORE_COSCHEDULING ? 2 : in->sm.minSmPartitionSize;
	unsigned size = least < smallest ? smallest : (least + align - 1) / align * align;
	unsigned groups = in->sm.smCount / size;
	if (out && groups > *n)
		groups = *n;
	CUdevResource part = *in;
	part.split = sim_new_id();
	part.sm.smCount = size;
	for (unsigned i = 0; out && i < groups; i++)
		out[i] = part;
	if (rest) {
		*rest = part;
		rest->sm.smCount = in->sm.smCount - groups * size;
		rest->type = rest->sm.smCount ? TYPE_SM : 0;
	}
	*n = groups;
	return CUDA_SUCCESS;
}

/* Descriptors live until the process ends: no call frees one. */
static CUresult generate(struct sim_call *c, struct desc **out, const CUdevResource *r, unsigned n)
{
	(void)c;
	if (!out || !r || !n)
		return CUDA_ERROR_INVALID_VALUE;
	unsigned sum = 0;
	for (unsigned i = 0; i < n; i++) {
		if (r[i].type != TYPE_SM)
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
		if (r[i].device != r[0].device || r[i].split != r[0].split)
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		sum += r[i].sm.smCount;
	}
	if (sum > SIM_MULTIPROCESSORS)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	struct desc *d = malloc(sizeof(*d));
	*d = (struct desc){SIM_MAGIC_DESC, r[0].device, r[0]};
	d->sm.sm.smCount = sum;
	*out = d;
	return CUDA_SUCCESS;
}

static CUresult create(struct sim_call *c, CUgreenCtx *out, const struct desc *d, CUdevice dev,
		       unsigned flags)
{
	(void)c;
	if (!out || !d || d->magic != SIM_MAGIC_DESC || flags != DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(dev) || d->device != dev)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_primary_retain(&sim_dev[dev]);
	struct sim_green *g = malloc(sizeof(*g));
	*g = (struct sim_green){.magic = SIM_MAGIC_GREEN, .sm = d->sm};
	g->ctx = sim_ctx_new(&sim_dev[dev], 0);
	g->ctx->green = g;
	pthread_mutex_lock(&mu);
	g->next = greens;
	greens = g;
	pthread_mutex_unlock(&mu);
	*out = g;
	return CUDA_SUCCESS;
}

static CUresult destroy(struct sim_call *c, CUgreenCtx g)
{
	(void)c;
	if (!is_green(g))
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&mu);
	struct sim_green **at = &greens;
	while (*at && *at != g)
		at = &(*at)->next;
	if (*at)
		*at = g->next;
	pthread_mutex_unlock(&mu);
	g->magic = 0;
	sim_ctx_end(g->ctx); /* not freed: threads may still refer to it */
	sim_primary_release(g->ctx->dev);
	free(g);
	return CUDA_SUCCESS;
}

static CUresult to_ctx(struct sim_call *c, CUcontext *out, CUgreenCtx g)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_green(g))
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = g->ctx;
	return CUDA_SUCCESS;
}

static CUresult get_id(struct sim_call *c, CUgreenCtx g, unsigned long long *id)
{
	(void)c;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_green(g))
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = g->ctx->id;
	return CUDA_SUCCESS;
}

static CUresult stream_create(struct sim_call *c, CUstream *out, CUgreenCtx g, unsigned flags,
			      int prio)
{
	(void)c;
	if (!is_green(g))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!out || flags != SIM_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	*out = sim_stream_new(g->ctx, flags, prio);
	return CUDA_SUCCESS;
}

static CUresult stream_green(struct sim_call *c, CUstream h, CUgreenCtx *out)
{
	struct sim_stream *s;
	CUresult r = out ? sim_stream_get(c, h, &s) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = s->ctx->green;
	return r;
}

/* ---- events of contexts ---- */

/* Called with sim_mu: if a stream of ctx captures, invalidates the captures and returns true. */
static bool captures(struct sim_ctx *ctx)
{
	bool any = false;
	for (struct sim_stream *s = ctx->streams; s; s = s->next)
		any = sim_capture_forbid(s) || any;
	return any;
}

/* With sim_mu. */
static void depend_on_all(struct sim_op *op, struct sim_ctx *ctx)
{
	sim_op_depend(op, ctx->legacy.tail);
	for (struct sim_stream *s = ctx->streams; s; s = s->next)
		sim_op_depend(op, s->tail);
}

static struct sim_op *mark_new(const struct sim_call *c, struct sim_ctx *ctx)
{
	struct sim_work w = {.kind = SIM_K_MARK, .engine = SIM_ENG_NONE, .dev = ctx->dev};
	return sim_op_new(&w, c->no, 0);
}

static CUresult record(struct sim_call *c, struct sim_ctx *ctx, CUevent e)
{
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!e || e->magic != SIM_MAGIC_EVENT || e->ctx->dev != ctx->dev)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&mu);
	pthread_mutex_lock(&sim_mu);
	CUresult r = captures(ctx) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
	if (!r) {
		struct sim_op *op = mark_new(c, ctx);
		depend_on_all(op, ctx);
		/* The primary context's work includes that of its green contexts. */
		for (struct sim_green *g = ctx == ctx->dev->primary ? greens : NULL; g; g = g->next)
			if (g->ctx->dev == ctx->dev)
				depend_on_all(op, g->ctx);
		sim_op_commit(op);
		sim_op_unref(e->op);
		e->op = op;
		e->capture = NULL;
	}
	pthread_mutex_unlock(&sim_mu);
	pthread_mutex_unlock(&mu);
	return r;
}

/* With sim_mu: the next operation in s waits for `on`. */
static void hold(const struct sim_call *c, struct sim_stream *s, struct sim_op *on)
{
	struct sim_op *op = mark_new(c, s->ctx);
	sim_op_depend(op, on);
	sim_stream_order(s, op);
	sim_op_commit(op);
	sim_op_unref(op);
}

static CUresult wait_event(struct sim_call *c, struct sim_ctx *ctx, CUevent e)
{
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!e || e->magic != SIM_MAGIC_EVENT)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim_mu);
	CUresult r =
		captures(ctx) || e->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
	if (!r && !sim_op_done(e->op)) {
		hold(c, &ctx->legacy, e->op);
		for (struct sim_stream *s = ctx->streams; s; s = s->next)
			hold(c, s, e->op);
	}
	pthread_mutex_unlock(&sim_mu);
	return r;
}

static CUresult ctx_record(struct sim_call *c, CUcontext h, CUevent e)
{
	return record(c, sim_ctx_or_current(h), e);
}

static CUresult ctx_wait(struct sim_call *c, CUcontext h, CUevent e)
{
	return wait_event(c, sim_ctx_or_current(h), e);
}

static CUresult green_record(struct sim_call *c, CUgreenCtx g, CUevent e)
{
	return record(c, is_green(g) ? g->ctx : NULL, e);
}

static CUresult green_wait(struct sim_call *c, CUgreenCtx g, CUevent e)
{
	return wait_event(c, is_green(g) ? g->ctx : NULL, e);
}

SIM_API(cuDeviceGetDevResource, SIM_NEED_INIT, device_resource,
	(CUdevice d, CUdevResource *r, int type), (d, r, type))
SIM_API(cuCtxGetDevResource, SIM_NEED_INIT, ctx_resource,
	(CUcontext ctx, CUdevResource *r, int type), (ctx, r, type))
SIM_API(cuGreenCtxGetDevResource, SIM_NEED_INIT, green_resource,
	(CUgreenCtx g, CUdevResource *r, int type), (g, r, type))
SIM_API(cuDevSmResourceSplitByCount, SIM_NEED_INIT, split,
	(CUdevResource * out, unsigned *n, const CUdevResource *in, CUdevResource *rest,
	 unsigned flags, unsigned least),
	(out, n, in, rest, flags, least))
SIM_API(cuDevResourceGenerateDesc, SIM_NEED_INIT, generate,
	(struct desc * *d, const CUdevResource *r, unsigned n), (d, r, n))
SIM_API(cuGreenCtxCreate, SIM_NEED_INIT, create,
	(CUgreenCtx * g, const struct desc *d, CUdevice dev, unsigned flags), (g, d, dev, flags))
SIM_API(cuGreenCtxDestroy, SIM_NEED_INIT, destroy, (CUgreenCtx g), (g))
SIM_API(cuCtxFromGreenCtx, SIM_NEED_INIT, to_ctx, (CUcontext * ctx, CUgreenCtx g), (ctx, g))
SIM_API(cuGreenCtxGetId, SIM_NEED_INIT, get_id, (CUgreenCtx g, unsigned long long *id), (g, id))
SIM_API(cuGreenCtxStreamCreate, SIM_NEED_INIT, stream_create,
	(CUstream * s, CUgreenCtx g, unsigned flags, int prio), (s, g, flags, prio))
SIM_API(cuStreamGetGreenCtx, SIM_NEED_INIT, stream_green, (CUstream s, CUgreenCtx *g), (s, g))
SIM_API(cuCtxRecordEvent, SIM_NEED_INIT, ctx_record, (CUcontext ctx, CUevent e), (ctx, e))
SIM_API(cuCtxWaitEvent, SIM_NEED_INIT, ctx_wait, (CUcontext ctx, CUevent e), (ctx, e))
SIM_API(cuGreenCtxRecordEvent, SIM_NEED_INIT, green_record, (CUgreenCtx g, CUevent e), (g, e))
SIM_API(cuGreenCtxWaitEvent, SIM_NEED_INIT, green_wait, (CUgreenCtx g, CUevent e), (g, e))
