/* Memory handles between processes. Opening one twice gives the same address and counts. */
#include "sim/gpu/objects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
	char bytes[64];
} CUipcMemHandle;
enum { LAZY_PEER = 1 };

struct opened {
	struct sim_share h;
	char *p;
	unsigned refs;
	struct opened *next;
};
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct opened *list;

static CUresult get_handle(struct sim_call *c, CUipcMemHandle *out, CUdeviceptr d)
{
	struct sim_range r;
	struct sim_share h;
	(void)c;
	if (!out || !sim_mem_find((void *)(uintptr_t)d, &r) || r.kind != SIM_M_DEVICE ||
	    r.owner != SIM_OWN_ALLOC || r.pool || r.freeing)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = sim_mem_share(r.p, &h);
	if (result)
		return result;
	memset(out, 0, sizeof(*out));
	memcpy(out->bytes, &h, sizeof(h));
	return CUDA_SUCCESS;
}

static CUresult open_new(const struct sim_share *h, struct opened **out)
{
	struct sim_range r = {.n = h->size,
			      .kind = SIM_M_DEVICE,
			      .ctx = sim_ctx_current(),
			      .owner = SIM_OWN_IPC,
			      .id = sim_new_id(),
			      .access = SIM_READ_WRITE,
			      .fd = -1};
	CUresult result = sim_share_open(h, SIM_SHARE_MEMORY, &r.p);
	if (result)
		return result;
	r.dev = &sim_dev[sim_is_device(h->device) ? h->device : r.ctx->dev->index];
	result = sim_mem_insert(&r);
	struct opened *o = result ? NULL : calloc(1, sizeof(*o));
	if (!o) {
		munmap(r.p, sim_pages(r.n));
		return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
	}
	o->h = *h;
	o->p = r.p;
	o->next = list;
	list = o;
	*out = o;
	return CUDA_SUCCESS;
}

static CUresult open_handle(struct sim_call *c, CUdeviceptr *out, CUipcMemHandle handle,
			    unsigned flags)
{
	struct sim_share h;
	CUresult r = CUDA_SUCCESS;
	if (!out || flags != LAZY_PEER)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&h, handle.bytes, sizeof(h));
	if (h.pid == (int32_t)getpid())
		return CUDA_ERROR_INVALID_CONTEXT; /* only for other processes */
	pthread_mutex_lock(&mu);
	struct opened *o = list;
	while (o && memcmp(&o->h, &h, sizeof(h)))
		o = o->next;
	if (!o)
		r = open_new(&h, &o);
	if (!r) {
		o->refs++;
		*out = (uintptr_t)o->p;
		c->bytes = h.size;
	}
	pthread_mutex_unlock(&mu);
	return r;
}

static CUresult close_handle(struct sim_call *c, CUdeviceptr d)
{
	struct sim_range r = {0};
	(void)c;
	if (sim_mem_find((void *)(uintptr_t)d, &r) && r.ctx)
		sim_ctx_drain(r.ctx);
	pthread_mutex_lock(&mu);
	struct opened **p = &list;
	while (*p && (uintptr_t)(*p)->p != d)
		p = &(*p)->next;
	struct opened *o = *p;
	bool last = o && !--o->refs;
	if (last) {
		*p = o->next;
		if (sim_mem_remove(o->p, SIM_OWN_IPC, &r))
			munmap(r.p, sim_pages(r.n));
		free(o);
	}
	pthread_mutex_unlock(&mu);
	return o ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuIpcGetMemHandle, SIM_NEED_CTX, get_handle, (CUipcMemHandle * h, CUdeviceptr p), (h, p))
SIM_API(cuIpcOpenMemHandle, SIM_NEED_CTX, open_handle,
	(CUdeviceptr * p, CUipcMemHandle h, unsigned flags), (p, h, flags))
SIM_API(cuIpcOpenMemHandle_v2, SIM_NEED_CTX, open_handle,
	(CUdeviceptr * p, CUipcMemHandle h, unsigned flags), (p, h, flags))
SIM_API(cuIpcCloseMemHandle, SIM_NEED_CTX, close_handle, (CUdeviceptr p), (p))
