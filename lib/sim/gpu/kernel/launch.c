/* Kernel launches, function attributes. */
#include "sim/gpu/api.h"

#include <stdlib.h>
#include <string.h>

static void pack(struct sim_launch *l, void **params, void **extra)
{
	const struct sim_func *f = l->func;
	if (extra) {
		const void *buffer = NULL;
		size_t n = 0;
		for (int i = 0; extra[i] != (void *)SIM_LAUNCH_PARAM_END; i += 2) {
			if (extra[i] == (void *)SIM_LAUNCH_PARAM_POINTER)
				buffer = extra[i + 1];
			else if (extra[i] == (void *)SIM_LAUNCH_PARAM_SIZE)
				n = *(size_t *)extra[i + 1];
		}
		l->nargs = n > f->psize ? n : f->psize;
		l->args = calloc(1, l->nargs + 1);
		if (buffer)
			memcpy(l->args, buffer, n);
	} else if (f->nparams >= 0) {
		l->nargs = f->psize;
		l->args = calloc(1, l->nargs + 1);
		for (int i = 0; i < f->nparams && params; i++)
			memcpy(l->args + f->params[i].off, params[i], f->params[i].size);
	}
}

enum { MAX_SHARED = 227 << 10 }; /* of any device so far */

CUresult sim_launch_set(struct sim_work *w, struct sim_ctx *ctx, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct sim_func *f = p->func;
	uint64_t threads = (uint64_t)p->blockDimX * p->blockDimY * p->blockDimZ;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!p->gridDimX || !p->gridDimY || !p->gridDimZ || !threads || threads > f->max_threads ||
	    p->gridDimY > 65535 || p->gridDimZ > 65535)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->sharedMemBytes > MAX_SHARED)
		return CUDA_ERROR_INVALID_VALUE;
	if (f->nparams > 0 && !p->kernelParams && !p->extra)
		return CUDA_ERROR_INVALID_VALUE;
	memset(w, 0, sizeof(*w));
	w->kind = SIM_K_KERNEL;
	w->engine = SIM_ENG_COMPUTE;
	w->dev = ctx->dev;
	w->launch = (struct sim_launch){.func = f,
					.ctx = ctx,
					.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
					.block = {p->blockDimX, p->blockDimY, p->blockDimZ},
					.shared = p->sharedMemBytes};
	pack(&w->launch, p->kernelParams, p->extra);
	return CUDA_SUCCESS;
}

/* Loading that lazy mode defers to the first launch. */
static void load_now(struct sim_func *f)
{
	if (!__atomic_exchange_n(&f->loaded, true, __ATOMIC_RELAXED))
		sim_host_cost(sim_cfg.lazy_load_ns);
}

CUresult sim_launch_run(struct sim_call *c, const CUDA_KERNEL_NODE_PARAMS *p, CUstream h)
{
	struct sim_stream *s;
	struct sim_work w;
	CUresult r = sim_stream_get(c, h, &s);
	if (!r)
		r = sim_launch_set(&w, s->ctx, p);
	if (r)
		return r;
	c->kernel = w.launch.func->name;
	load_now(w.launch.func);
	sim_host_cost(sim_cfg.launch_ns);
	return sim_submit(c, s, &w, NULL);
}

static CUresult launch(struct sim_call *c, CUfunction f, unsigned gx, unsigned gy, unsigned gz,
		       unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream h,
		       void **params, void **extra)
{
	CUDA_KERNEL_NODE_PARAMS p = {f, gx, gy, gz, bx, by, bz, shared, params, extra, NULL, NULL};
	return sim_launch_run(c, &p, h);
}

static CUresult cooperative(struct sim_call *c, CUfunction f, unsigned gx, unsigned gy, unsigned gz,
			    unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream h,
			    void **params)
{
	return launch(c, f, gx, gy, gz, bx, by, bz, shared, h, params, NULL);
}

enum {
	ATTR_CLUSTER = 4,
	ATTR_EVENT = 7,
	ATTR_COMPLETION_EVENT = 12,
	ATTR_UPDATABLE = 13,
	ATTR_LAST = 16,
	MAX_CLUSTER = 16
};

static CUresult check_cluster(const CUlaunchConfig *k, const unsigned *dim)
{
	const unsigned grid[] = {k->gridDimX, k->gridDimY, k->gridDimZ};
	for (int i = 0; i < 3; i++)
		if (!dim[i] || dim[i] > MAX_CLUSTER || grid[i] % dim[i])
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return dim[0] * dim[1] * dim[2] > MAX_CLUSTER ? CUDA_ERROR_INVALID_CLUSTER_SIZE
						      : CUDA_SUCCESS;
}

/* Attributes are validated; only events have an effect: they are recorded after the kernel. */
static CUresult check_attributes(const CUlaunchConfig *k)
{
	CUresult r = k->numAttrs && !k->attrs ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	for (unsigned i = 0; i < k->numAttrs && !r; i++) {
		const CUlaunchAttribute *a = &k->attrs[i];
		if (a->id < 0 || a->id > ATTR_LAST)
			r = CUDA_ERROR_INVALID_VALUE;
		else if (a->id == ATTR_CLUSTER)
			r = check_cluster(k, a->dim);
		else if (a->id == ATTR_UPDATABLE) /* for graphs only */
			r = CUDA_ERROR_NOT_SUPPORTED;
	}
	return r;
}

static CUresult launch_ex(struct sim_call *c, const CUlaunchConfig *k, CUfunction f, void **params,
			  void **extra)
{
	if (!k)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = check_attributes(k);
	if (!r)
		r = launch(c, f, k->gridDimX, k->gridDimY, k->gridDimZ, k->blockDimX, k->blockDimY,
			   k->blockDimZ, k->sharedMemBytes, k->hStream, params, extra);
	for (unsigned i = 0; i < k->numAttrs && !r; i++)
		if (k->attrs[i].id == ATTR_EVENT || k->attrs[i].id == ATTR_COMPLETION_EVENT)
			r = sim_event_record(c, k->attrs[i].event, k->hStream);
	return r;
}

/* ---- attributes ---- */
enum {
	MAX_THREADS,
	SHARED_BYTES,
	CONST_BYTES,
	LOCAL_BYTES,
	REGISTERS,
	PTX_VERSION,
	BINARY_VERSION,
	MAX_DYNAMIC = 8
};

static CUresult get_attribute(struct sim_call *c, int *v, int what, CUfunction f)
{
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!v)
		return CUDA_ERROR_INVALID_VALUE;
	switch (what) {
	case MAX_THREADS:
		*v = (int)f->max_threads;
		break;
	case REGISTERS:
		*v = 32;
		break;
	case PTX_VERSION:
	case BINARY_VERSION:
		*v = sim_cfg.cc_major * 10 + sim_cfg.cc_minor;
		break;
	case MAX_DYNAMIC:
		*v = f->max_dynamic ? f->max_dynamic : 49152;
		break;
	default:
		*v = 0;
	}
	return CUDA_SUCCESS;
}

static CUresult set_attribute(struct sim_call *c, CUfunction f, int what, int v)
{
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (what == MAX_DYNAMIC)
		f->max_dynamic = v;
	return CUDA_SUCCESS;
}

static CUresult get_kernel_attribute(struct sim_call *c, int *v, int what, CUkernel k, CUdevice d)
{
	(void)d;
	return get_attribute(c, v, what, k);
}

static CUresult set_kernel_attribute(struct sim_call *c, int what, int v, CUkernel k, CUdevice d)
{
	(void)d;
	return set_attribute(c, k, what, v);
}

static CUresult set_config(struct sim_call *c, CUfunction f, int config)
{
	(void)c;
	(void)config;
	return sim_func_is(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult set_kernel_config(struct sim_call *c, CUkernel k, int config, CUdevice d)
{
	(void)d;
	return set_config(c, k, config);
}

static CUresult get_name(struct sim_call *c, const char **name, CUfunction f)
{
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = f->name;
	return CUDA_SUCCESS;
}

static CUresult get_module(struct sim_call *c, CUmodule *m, CUfunction f)
{
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!m)
		return CUDA_ERROR_INVALID_VALUE;
	*m = f->mod;
	return CUDA_SUCCESS;
}

static CUresult param_info(struct sim_call *c, CUfunction f, size_t i, size_t *off, size_t *size)
{
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!off)
		return CUDA_ERROR_INVALID_VALUE;
	if (f->nparams < 0 || i >= (size_t)f->nparams)
		return CUDA_ERROR_INVALID_VALUE;
	*off = f->params[i].off;
	if (size)
		*size = f->params[i].size;
	return CUDA_SUCCESS;
}

static CUresult loaded(struct sim_call *c, int *state, CUfunction f)
{
	(void)c;
	if (!sim_func_is(f) || !state)
		return CUDA_ERROR_INVALID_VALUE;
	*state = f->loaded || !sim_cfg.lazy_load_ns;
	return CUDA_SUCCESS;
}

static CUresult load(struct sim_call *c, CUfunction f)
{
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	load_now(f);
	return CUDA_SUCCESS;
}

SIM_API_PT(cuLaunchKernel, _ptsz, SIM_NEED_INIT, launch,
	   (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	    unsigned bz, unsigned sh, CUstream s, void **p, void **x),
	   (f, gx, gy, gz, bx, by, bz, sh, s, p, x))
SIM_API_PT(cuLaunchCooperativeKernel, _ptsz, SIM_NEED_INIT, cooperative,
	   (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	    unsigned bz, unsigned sh, CUstream s, void **p),
	   (f, gx, gy, gz, bx, by, bz, sh, s, p))
SIM_API_PT(cuLaunchKernelEx, _ptsz, SIM_NEED_INIT, launch_ex,
	   (const CUlaunchConfig *k, CUfunction f, void **p, void **x), (k, f, p, x))
SIM_API(cuFuncGetAttribute, SIM_NEED_CTX, get_attribute, (int *v, int what, CUfunction f),
	(v, what, f))
SIM_API(cuFuncSetAttribute, SIM_NEED_CTX, set_attribute, (CUfunction f, int what, int v),
	(f, what, v))
SIM_API(cuKernelGetAttribute, SIM_NEED_INIT, get_kernel_attribute,
	(int *v, int what, CUkernel k, CUdevice d), (v, what, k, d))
SIM_API(cuKernelSetAttribute, SIM_NEED_INIT, set_kernel_attribute,
	(int what, int v, CUkernel k, CUdevice d), (what, v, k, d))
SIM_API(cuFuncSetCacheConfig, SIM_NEED_CTX, set_config, (CUfunction f, int v), (f, v))
SIM_API(cuFuncSetSharedMemConfig, SIM_NEED_CTX, set_config, (CUfunction f, int v), (f, v))
SIM_API(cuKernelSetCacheConfig, SIM_NEED_INIT, set_kernel_config, (CUkernel k, int v, CUdevice d),
	(k, v, d))
SIM_API(cuFuncGetName, SIM_NEED_INIT, get_name, (const char **name, CUfunction f), (name, f))
SIM_API(cuKernelGetName, SIM_NEED_INIT, get_name, (const char **name, CUkernel k), (name, k))
SIM_API(cuFuncGetModule, SIM_NEED_INIT, get_module, (CUmodule * m, CUfunction f), (m, f))
SIM_API(cuKernelGetLibrary, SIM_NEED_INIT, get_module, (CUlibrary * l, CUkernel k), (l, k))
SIM_API(cuFuncGetParamInfo, SIM_NEED_INIT, param_info,
	(CUfunction f, size_t i, size_t *off, size_t *size), (f, i, off, size))
SIM_API(cuKernelGetParamInfo, SIM_NEED_INIT, param_info,
	(CUkernel k, size_t i, size_t *off, size_t *size), (k, i, off, size))
SIM_API(cuFuncIsLoaded, SIM_NEED_INIT, loaded, (int *state, CUfunction f), (state, f))
SIM_API(cuFuncLoad, SIM_NEED_CTX, load, (CUfunction f), (f))
