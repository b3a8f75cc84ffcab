/* Contexts: primary and created ones, the stack of each thread, limits, peers. */
#include "simgpu/api.h"

#include <stdlib.h>
#include <string.h>

enum { STACK = 256 };
static __thread struct sim_ctx *stack[STACK];
static __thread int depth;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

struct sim_ctx *sim_ctx_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

static bool is_ctx(CUcontext ctx)
{
	return ctx && ctx->magic == SIM_MAGIC_CTX;
}

static bool is_device(CUdevice d)
{
	return d >= 0 && d < sim_cfg.devices;
}

static struct sim_ctx *ctx_new(struct sim_device *dev, unsigned flags)
{
	struct sim_ctx *ctx = calloc(1, sizeof(*ctx));
	ctx->magic = SIM_MAGIC_CTX;
	ctx->dev = dev;
	ctx->flags = flags;
	ctx->api_version = 3020;
	ctx->id = sim_new_id();
	ctx->refs = 1;
	sim_stream_init(&ctx->legacy, ctx, 0);
	ctx->legacy.legacy = true;
	return ctx;
}

static CUresult push(struct sim_call *c, CUcontext ctx)
{
	(void)c;
	if (!is_ctx(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth == STACK)
		return CUDA_ERROR_INVALID_VALUE;
	stack[depth++] = ctx;
	return CUDA_SUCCESS;
}

static CUresult pop(struct sim_call *c, CUcontext *out)
{
	(void)c;
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (out)
		*out = stack[depth];
	return CUDA_SUCCESS;
}

static CUresult set(struct sim_call *c, CUcontext ctx)
{
	if (ctx && !is_ctx(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth)
		depth--;
	return ctx ? push(c, ctx) : CUDA_SUCCESS;
}

static CUresult get(struct sim_call *c, CUcontext *out)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = sim_ctx_current();
	return CUDA_SUCCESS;
}

static CUresult create(struct sim_call *c, CUcontext *out, unsigned flags, CUdevice d)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = ctx_new(&sim_dev[d], flags);
	return push(c, *out);
}

static CUresult create3(struct sim_call *c, CUcontext *out, void *affinity, int n, unsigned flags,
			CUdevice d)
{
	(void)affinity;
	(void)n;
	return create(c, out, flags, d);
}

static CUresult create4(struct sim_call *c, CUcontext *out, void *params, unsigned flags,
			CUdevice d)
{
	(void)params;
	return create(c, out, flags, d);
}

static CUresult destroy(struct sim_call *c, CUcontext ctx)
{
	(void)c;
	if (!is_ctx(ctx) || ctx == ctx->dev->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_ctx_drain(ctx);
	sim_streams_free(ctx);
	if (sim_ctx_current() == ctx)
		depth--;
	ctx->magic = 0; /* the memory stays: other threads may still name it */
	return CUDA_SUCCESS;
}

static CUresult attach(struct sim_call *c, CUcontext *out, unsigned flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	sim_ctx_current()->refs++;
	return get(c, out);
}

static CUresult detach(struct sim_call *c, CUcontext ctx)
{
	if (!is_ctx(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return --ctx->refs ? CUDA_SUCCESS : destroy(c, ctx);
}

static CUresult retain(struct sim_call *c, CUcontext *out, CUdevice d)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	struct sim_device *dev = &sim_dev[d];
	pthread_mutex_lock(&mu);
	if (!dev->primary)
		dev->primary = ctx_new(dev, dev->primary_flags);
	dev->primary_refs++;
	*out = dev->primary;
	pthread_mutex_unlock(&mu);
	return CUDA_SUCCESS;
}

static CUresult release(struct sim_call *c, CUdevice d)
{
	(void)c;
	if (!is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	if (sim_dev[d].primary_refs <= 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&mu);
	bool last = !--sim_dev[d].primary_refs;
	pthread_mutex_unlock(&mu);
	if (last)
		sim_ctx_drain(sim_dev[d].primary);
	return CUDA_SUCCESS;
}

static CUresult reset(struct sim_call *c, CUdevice d)
{
	(void)c;
	if (!is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	if (sim_dev[d].primary) {
		sim_ctx_drain(sim_dev[d].primary);
		sim_dev[d].primary->sticky = CUDA_SUCCESS;
	}
	return CUDA_SUCCESS;
}

static CUresult primary_set_flags(struct sim_call *c, CUdevice d, unsigned flags)
{
	(void)c;
	if (!is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	sim_dev[d].primary_flags = flags;
	if (sim_dev[d].primary)
		sim_dev[d].primary->flags = flags;
	return CUDA_SUCCESS;
}

static CUresult primary_state(struct sim_call *c, CUdevice d, unsigned *flags, int *active)
{
	(void)c;
	if (!is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = sim_dev[d].primary_flags;
	*active = sim_dev[d].primary_refs > 0;
	return CUDA_SUCCESS;
}

static CUresult device(struct sim_call *c, CUdevice *out)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = sim_ctx_current()->dev->index;
	return CUDA_SUCCESS;
}

/* NULL means the current context. */
static struct sim_ctx *or_current(CUcontext ctx)
{
	return is_ctx(ctx) ? ctx : ctx ? NULL : sim_ctx_current();
}

static CUresult device2(struct sim_call *c, CUdevice *out, CUcontext h)
{
	(void)c;
	struct sim_ctx *ctx = or_current(h);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = ctx->dev->index;
	return CUDA_SUCCESS;
}

static CUresult get_flags(struct sim_call *c, unsigned *out)
{
	(void)c;
	*out = sim_ctx_current()->flags;
	return CUDA_SUCCESS;
}

static CUresult set_flags(struct sim_call *c, unsigned flags)
{
	(void)c;
	sim_ctx_current()->flags = flags;
	return CUDA_SUCCESS;
}

static CUresult get_id(struct sim_call *c, CUcontext h, unsigned long long *out)
{
	(void)c;
	struct sim_ctx *ctx = or_current(h);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = ctx->id;
	return CUDA_SUCCESS;
}

static CUresult api_version(struct sim_call *c, CUcontext h, unsigned *out)
{
	(void)c;
	struct sim_ctx *ctx = or_current(h);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = ctx->api_version;
	return CUDA_SUCCESS;
}

/* A capture on any stream forbids waiting for the whole context. */
static CUresult synchronize2(struct sim_call *c, CUcontext h)
{
	(void)c;
	struct sim_ctx *ctx = or_current(h);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	CUresult r = CUDA_SUCCESS;
	pthread_mutex_lock(&sim_mu);
	for (struct sim_stream *s = ctx->streams; s && !r; s = s->next)
		r = sim_capture_forbid(s);
	pthread_mutex_unlock(&sim_mu);
	if (r)
		return r;
	sim_ctx_drain(ctx);
	return ctx->sticky;
}

static CUresult synchronize(struct sim_call *c)
{
	return synchronize2(c, NULL);
}

static CUresult priorities(struct sim_call *c, int *least, int *greatest)
{
	(void)c;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

enum { LIMITS = 12 };
static size_t limits[LIMITS] = {1024, 7 << 20, 8 << 20, 2, 2048, 128, 0, 0, 0, 0, 0, 0};

static CUresult get_limit(struct sim_call *c, size_t *out, int limit)
{
	(void)c;
	if (!out || limit < 0 || limit >= LIMITS)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*out = limits[limit];
	return CUDA_SUCCESS;
}

static CUresult set_limit(struct sim_call *c, int limit, size_t v)
{
	(void)c;
	if (limit < 0 || limit >= LIMITS)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	limits[limit] = v;
	return CUDA_SUCCESS;
}

static CUresult get_config(struct sim_call *c, int *out)
{
	(void)c;
	*out = 0;
	return CUDA_SUCCESS;
}

static CUresult set_config(struct sim_call *c, int v)
{
	(void)c;
	(void)v;
	return CUDA_SUCCESS;
}

static CUresult peer(struct sim_call *c, CUcontext ctx, unsigned flags)
{
	(void)c;
	return !is_ctx(ctx) || flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult unpeer(struct sim_call *c, CUcontext ctx)
{
	return peer(c, ctx, 0);
}

SIM_API(cuCtxCreate_v2, SIM_NEED_INIT, create, (CUcontext * ctx, unsigned flags, CUdevice d),
	(ctx, flags, d))
SIM_API(cuCtxCreate_v3, SIM_NEED_INIT, create3,
	(CUcontext * ctx, void *a, int n, unsigned flags, CUdevice d), (ctx, a, n, flags, d))
SIM_API(cuCtxCreate_v4, SIM_NEED_INIT, create4,
	(CUcontext * ctx, void *p, unsigned flags, CUdevice d), (ctx, p, flags, d))
SIM_API(cuCtxDestroy, SIM_NEED_INIT, destroy, (CUcontext ctx), (ctx))
SIM_API(cuCtxDestroy_v2, SIM_NEED_INIT, destroy, (CUcontext ctx), (ctx))
SIM_API(cuCtxAttach, SIM_NEED_CTX, attach, (CUcontext * ctx, unsigned flags), (ctx, flags))
SIM_API(cuCtxDetach, SIM_NEED_INIT, detach, (CUcontext ctx), (ctx))
SIM_API(cuCtxPushCurrent, SIM_NEED_INIT, push, (CUcontext ctx), (ctx))
SIM_API(cuCtxPushCurrent_v2, SIM_NEED_INIT, push, (CUcontext ctx), (ctx))
SIM_API(cuCtxPopCurrent, SIM_NEED_INIT, pop, (CUcontext * ctx), (ctx))
SIM_API(cuCtxPopCurrent_v2, SIM_NEED_INIT, pop, (CUcontext * ctx), (ctx))
SIM_API(cuCtxSetCurrent, SIM_NEED_INIT, set, (CUcontext ctx), (ctx))
SIM_API(cuCtxGetCurrent, SIM_NEED_INIT, get, (CUcontext * ctx), (ctx))
SIM_API(cuCtxGetDevice, SIM_NEED_CTX, device, (CUdevice * d), (d))
SIM_API(cuCtxGetDevice_v2, SIM_NEED_INIT, device2, (CUdevice * d, CUcontext ctx), (d, ctx))
SIM_API(cuCtxGetFlags, SIM_NEED_CTX, get_flags, (unsigned *flags), (flags))
SIM_API(cuCtxSetFlags, SIM_NEED_CTX, set_flags, (unsigned flags), (flags))
SIM_API(cuCtxGetId, SIM_NEED_INIT, get_id, (CUcontext ctx, unsigned long long *id), (ctx, id))
SIM_API(cuCtxGetApiVersion, SIM_NEED_INIT, api_version, (CUcontext ctx, unsigned *v), (ctx, v))
SIM_API(cuCtxSynchronize, SIM_NEED_CTX, synchronize, (void), ())
SIM_API(cuCtxSynchronize_v2, SIM_NEED_INIT, synchronize2, (CUcontext ctx), (ctx))
SIM_API(cuCtxGetStreamPriorityRange, SIM_NEED_CTX, priorities, (int *least, int *greatest),
	(least, greatest))
SIM_API(cuCtxGetLimit, SIM_NEED_CTX, get_limit, (size_t * v, int limit), (v, limit))
SIM_API(cuCtxSetLimit, SIM_NEED_CTX, set_limit, (int limit, size_t v), (limit, v))
SIM_API(cuCtxGetCacheConfig, SIM_NEED_CTX, get_config, (int *v), (v))
SIM_API(cuCtxSetCacheConfig, SIM_NEED_CTX, set_config, (int v), (v))
SIM_API(cuCtxGetSharedMemConfig, SIM_NEED_CTX, get_config, (int *v), (v))
SIM_API(cuCtxSetSharedMemConfig, SIM_NEED_CTX, set_config, (int v), (v))
SIM_API(cuCtxEnablePeerAccess, SIM_NEED_CTX, peer, (CUcontext ctx, unsigned flags), (ctx, flags))
SIM_API(cuCtxDisablePeerAccess, SIM_NEED_CTX, unpeer, (CUcontext ctx), (ctx))
SIM_API(cuDevicePrimaryCtxRetain, SIM_NEED_INIT, retain, (CUcontext * ctx, CUdevice d), (ctx, d))
SIM_API(cuDevicePrimaryCtxRelease, SIM_NEED_INIT, release, (CUdevice d), (d))
SIM_API(cuDevicePrimaryCtxRelease_v2, SIM_NEED_INIT, release, (CUdevice d), (d))
SIM_API(cuDevicePrimaryCtxReset, SIM_NEED_INIT, reset, (CUdevice d), (d))
SIM_API(cuDevicePrimaryCtxReset_v2, SIM_NEED_INIT, reset, (CUdevice d), (d))
SIM_API(cuDevicePrimaryCtxSetFlags, SIM_NEED_INIT, primary_set_flags, (CUdevice d, unsigned flags),
	(d, flags))
SIM_API(cuDevicePrimaryCtxSetFlags_v2, SIM_NEED_INIT, primary_set_flags,
	(CUdevice d, unsigned flags), (d, flags))
SIM_API(cuDevicePrimaryCtxGetState, SIM_NEED_INIT, primary_state,
	(CUdevice d, unsigned *flags, int *active), (d, flags, active))
