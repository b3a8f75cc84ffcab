/* Pointer attributes. */
#include "sim/gpu/objects.h"

#include <string.h>

enum {
	A_CONTEXT = 1,
	A_MEMORY_TYPE = 2,
	A_DEVICE_POINTER = 3,
	A_HOST_POINTER = 4,
	A_SYNC_MEMOPS = 6,
	A_BUFFER_ID = 7,
	A_IS_MANAGED = 8,
	A_DEVICE_ORDINAL = 9,
	A_IPC = 10,
	A_RANGE_START = 11,
	A_RANGE_SIZE = 12,
	A_MAPPED = 13,
	A_ALLOWED_HANDLES = 14,
	A_ACCESS_FLAGS = 16,
	A_POOL = 17,
	A_MAPPING_SIZE = 18,
	A_MAPPING_BASE = 19,
	A_BLOCK_ID = 20,
	A_LAST = 21
};

/* Handle types that a pointer's memory can be exported as. */
static unsigned handle_types(const struct sim_range *r)
{
	return r->phys ? sim_phys_handles(r->phys) : r->pool ? sim_pool_handles(r->pool) : 0;
}

/* r is NULL for memory that the driver does not know, which has its own values. */
static CUresult attribute(void *v, int what, CUdeviceptr p, const struct sim_range *r)
{
	bool host = r && (r->kind == SIM_M_PINNED || r->kind == SIM_M_REGISTERED);
	switch (what) {
	case A_CONTEXT:
		*(CUcontext *)v = r ? r->ctx : NULL;
		break;
	case A_MEMORY_TYPE:
		*(unsigned *)v = !r ? 0 : host ? SIM_MEM_HOST : SIM_MEM_DEVICE;
		break;
	case A_DEVICE_POINTER:
		*(CUdeviceptr *)v = r ? p : 0;
		break;
	case A_HOST_POINTER:
		*(CUdeviceptr *)v = r && r->kind != SIM_M_DEVICE ? p : 0;
		break;
	case A_SYNC_MEMOPS:
		*(unsigned *)v = 0;
		break;
	case A_BUFFER_ID:
	case A_BLOCK_ID:
		*(unsigned long long *)v = r ? r->id : 0;
		break;
	case A_IS_MANAGED:
		*(unsigned *)v = r && r->kind == SIM_M_MANAGED;
		break;
	case A_DEVICE_ORDINAL:
		*(int *)v = r ? r->dev->index : -2;
		break;
	case A_RANGE_START:
	case A_MAPPING_BASE:
		*(CUdeviceptr *)v = r ? (uintptr_t)r->p : 0;
		break;
	case A_RANGE_SIZE:
	case A_MAPPING_SIZE:
		*(size_t *)v = r ? r->n : 0;
		break;
	case A_MAPPED:
		*(unsigned *)v = r != NULL;
		break;
	case A_ALLOWED_HANDLES:
		*(unsigned long long *)v = r ? handle_types(r) : 0;
		break;
	case A_IPC:
		*(unsigned *)v =
			r && r->kind == SIM_M_DEVICE && r->owner == SIM_OWN_ALLOC && !r->pool;
		break;
	case A_ACCESS_FLAGS:
		*(unsigned *)v = r ? r->access : 0;
		break;
	case A_POOL:
		*(CUmemoryPool *)v = r ? r->pool : NULL;
		break;
	default:
		*(unsigned *)v = 0;
	}
	return CUDA_SUCCESS;
}

static CUresult get(struct sim_call *c, void *v, int what, CUdeviceptr p)
{
	struct sim_range r;
	(void)c;
	if (!v || what < 1 || what > A_LAST)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_mem_find((void *)(uintptr_t)p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	return attribute(v, what, p, &r);
}

static CUresult get_many(struct sim_call *c, unsigned n, const int *what, void **v, CUdeviceptr p)
{
	struct sim_range r;
	(void)c;
	if (!what || !v)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++)
		if (!v[i])
			return CUDA_ERROR_INVALID_VALUE;
	bool known = sim_mem_find((void *)(uintptr_t)p, &r);
	for (unsigned i = 0; i < n; i++)
		attribute(v[i], what[i], p, known ? &r : NULL);
	return CUDA_SUCCESS;
}

static CUresult put(struct sim_call *c, const void *v, int what, CUdeviceptr p)
{
	struct sim_range r;
	(void)c;
	(void)v;
	if (what != A_SYNC_MEMOPS || !sim_mem_find((void *)(uintptr_t)p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

SIM_API(cuPointerGetAttribute, SIM_NEED_INIT, get, (void *v, int what, CUdeviceptr p), (v, what, p))
SIM_API(cuPointerGetAttributes, SIM_NEED_INIT, get_many,
	(unsigned n, const int *what, void **v, CUdeviceptr p), (n, what, v, p))
SIM_API(cuPointerSetAttribute, SIM_NEED_INIT, put, (const void *v, int what, CUdeviceptr p),
	(v, what, p))
