/* Contexts: primary and created ones, the stack of each thread, limits, peers. */
#include "sim/gpu/device/context.h"

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

/* Defaults of CUlimit: stack, printf, heap, depth and launches of dynamic parallelism, L2
 * granularity. */
static const size_t limits[SIM_LIMITS] = {1024, 7 << 20, 8 << 20, 2, 2048, 128};
enum { SETTABLE_LIMITS = 7 };

struct sim_ctx *sim_ctx_new(struct sim_device *dev, unsigned flags)
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
	memcpy(ctx->limits, limits, sizeof(limits));
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
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = sim_ctx_new(&sim_dev[d], flags);
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

void sim_ctx_end(struct sim_ctx *ctx)
{
	sim_ctx_drain(ctx);
	sim_streams_free(ctx);
	if (sim_ctx_current() == ctx)
		depth--;
	ctx->magic = 0; /* not freed: other threads may still refer to it */
}

static CUresult destroy(struct sim_call *c, CUcontext ctx)
{
	(void)c;
	if (!is_ctx(ctx) || ctx == ctx->dev->primary || ctx->green)
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_ctx_end(ctx);
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

struct sim_ctx *sim_primary_retain(struct sim_device *dev)
{
	pthread_mutex_lock(&mu);
	if (!dev->primary)
		dev->primary = sim_ctx_new(dev, dev->primary_flags);
	dev->primary_refs++;
	pthread_mutex_unlock(&mu);
	return dev->primary;
}

bool sim_primary_release(struct sim_device *dev)
{
	pthread_mutex_lock(&mu);
	bool held = dev->primary_refs > 0, last = held && !--dev->primary_refs;
	pthread_mutex_unlock(&mu);
	if (last)
		sim_ctx_drain(dev->primary);
	return held;
}

static CUresult retain(struct sim_call *c, CUcontext *out, CUdevice d)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = sim_primary_retain(&sim_dev[d]);
	return CUDA_SUCCESS;
}

static CUresult release(struct sim_call *c, CUdevice d)
{
	(void)c;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	return sim_primary_release(&sim_dev[d]) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult reset(struct sim_call *c, CUdevice d)
{
	(void)c;
	if (!sim_is_device(d))
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
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	sim_dev[d].primary_flags = flags;
	if (sim_dev[d].primary)
		sim_dev[d].primary->flags = flags;
	return CUDA_SUCCESS;
}

static CUresult primary_state(struct sim_call *c, CUdevice d, unsigned *flags, int *active)
{
	(void)c;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
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

struct sim_ctx *sim_ctx_or_current(CUcontext ctx)
{
	return is_ctx(ctx) ? ctx : ctx ? NULL : sim_ctx_current();
}

static CUresult device2(struct sim_call *c, CUdevice *out, CUcontext h)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_ctx *ctx = sim_ctx_or_current(h);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = ctx->dev->index;
	return CUDA_SUCCESS;
}

static CUresult get_flags(struct sim_call *c, unsigned *out)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
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
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_ctx *ctx = sim_ctx_or_current(h);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = ctx->id;
	return CUDA_SUCCESS;
}

static CUresult api_version(struct sim_call *c, CUcontext h, unsigned *out)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_ctx *ctx = sim_ctx_or_current(h);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = ctx->api_version;
	return CUDA_SUCCESS;
}

/* A capture on any stream forbids waiting for the whole context. */
static CUresult synchronize2(struct sim_call *c, CUcontext h)
{
	(void)c;
	struct sim_ctx *ctx = sim_ctx_or_current(h);
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

static CUresult get_limit(struct sim_call *c, size_t *out, int limit)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit < 0 || limit >= SIM_LIMITS)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*out = sim_ctx_current()->limits[limit];
	return CUDA_SUCCESS;
}

static CUresult set_limit(struct sim_call *c, int limit, size_t v)
{
	(void)c;
	if (limit < 0 || limit >= SETTABLE_LIMITS)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	sim_ctx_current()->limits[limit] = v;
	return CUDA_SUCCESS;
}

static CUresult get_config(struct sim_call *c, int *out)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
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
	struct sim_ctx *me = sim_ctx_current();
	(void)c;
	if (!is_ctx(ctx) || ctx == me)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (ctx->dev == me->dev)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	unsigned bit = 1u << ctx->dev->index;
	return __atomic_fetch_or(&me->peers, bit, __ATOMIC_RELAXED) & bit
		       ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
		       : CUDA_SUCCESS;
}

static CUresult unpeer(struct sim_call *c, CUcontext ctx)
{
	(void)c;
	if (!is_ctx(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	unsigned bit = 1u << ctx->dev->index;
	return __atomic_fetch_and(&sim_ctx_current()->peers, ~bit, __ATOMIC_RELAXED) & bit
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

static CUresult create1(struct sim_call *c, CUcontext *out, unsigned flags, CUdevice d)
{
	CUresult r = create(c, out, flags, d);
	if (!r)
		(*out)->api_version = 3010;
	return r;
}

/* The only type of affinity is the number of multiprocessors. */
static CUresult get_affinity(struct sim_call *c, int *out, int type)
{
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (type)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	out[0] = type;
	out[1] = SIM_MULTIPROCESSORS;
	return CUDA_SUCCESS;
}

static CUresult nothing(struct sim_call *c)
{
	(void)c;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxCreate, SIM_NEED_INIT, create1, (CUcontext * ctx, unsigned flags, CUdevice d),
	(ctx, flags, d))
SIM_API(cuCtxGetExecAffinity, SIM_NEED_CTX, get_affinity, (int *out, int type), (out, type))
SIM_API(cuCtxResetPersistingL2Cache, SIM_NEED_CTX, nothing, (void), ())
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
