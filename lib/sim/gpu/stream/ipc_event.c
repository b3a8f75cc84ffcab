/*
 * Events between processes. Their state is a shared page with the number of the last record and of
 * the last completed one. A record writes the latter in stream order, and a waiting stream waits
 * for that value; so any process may record or wait.
 */
#include "sim/gpu/stream/ipc_event.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct sim_ipc_event {
	struct {
		uint64_t recorded, done;
	} * shared;
	int fd; /* the exporter's, else -1 */
};

/* The page is registered memory, so that memory operations may access it. */
static CUresult attach(struct sim_event *e, char *page, int fd)
{
	struct sim_range r = {.p = page,
			      .n = SIM_PAGE,
			      .kind = SIM_M_PINNED,
			      .dev = e->ctx->dev,
			      .owner = SIM_OWN_IPC,
			      .id = sim_new_id(),
			      .fd = -1};
	struct sim_ipc_event *i = calloc(1, sizeof(*i));
	CUresult result = i ? sim_mem_insert(&r) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result) {
		free(i);
		return result;
	}
	i->shared = (void *)page;
	i->fd = fd;
	e->ipc = i;
	return CUDA_SUCCESS;
}

CUresult sim_ipc_event_new(struct sim_event *e)
{
	struct sim_share about = {.kind = SIM_SHARE_EVENT, .device = e->ctx->dev->index};
	int fd = sim_share_file(SIM_PAGE, &about);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	char *page = mmap(NULL, SIM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CUresult r = page == MAP_FAILED ? CUDA_ERROR_MAP_FAILED : attach(e, page, fd);
	if (r) {
		close(fd);
		if (page != MAP_FAILED)
			munmap(page, SIM_PAGE);
	}
	return r;
}

void sim_ipc_event_free(struct sim_event *e)
{
	struct sim_range r;
	sim_mem_remove(e->ipc->shared, SIM_OWN_IPC, &r);
	munmap(e->ipc->shared, SIM_PAGE);
	if (e->ipc->fd >= 0)
		close(e->ipc->fd);
	free(e->ipc);
	e->ipc = NULL;
}

static CUresult submit(struct sim_call *c, struct sim_stream *s, struct sim_event *e, int what,
		       uint64_t value)
{
	struct sim_value *v = malloc(sizeof(*v));
	*v = (struct sim_value){
		.what = what, .address = (uintptr_t)&e->ipc->shared->done, .value = value};
	struct sim_work w = {.kind = SIM_K_VALUE,
			     .engine = SIM_ENG_VALUE,
			     .dev = s->ctx->dev,
			     .values = {.v = v, .n = 1}};
	return sim_submit(c, s, &w, NULL);
}

enum { WAIT64 = 4, WRITE64 = 5 };

CUresult sim_ipc_event_record(struct sim_call *c, struct sim_stream *s, struct sim_event *e)
{
	uint64_t n = __atomic_add_fetch(&e->ipc->shared->recorded, 1, __ATOMIC_ACQ_REL);
	return submit(c, s, e, WRITE64, n);
}

CUresult sim_ipc_event_wait(struct sim_call *c, struct sim_stream *s, struct sim_event *e)
{
	if (sim_ipc_event_done(e))
		return CUDA_SUCCESS;
	return submit(c, s, e, WAIT64,
		      __atomic_load_n(&e->ipc->shared->recorded, __ATOMIC_ACQUIRE));
}

bool sim_ipc_event_done(const struct sim_event *e)
{
	return __atomic_load_n(&e->ipc->shared->done, __ATOMIC_ACQUIRE) >=
	       __atomic_load_n(&e->ipc->shared->recorded, __ATOMIC_ACQUIRE);
}

void sim_ipc_event_synchronize(const struct sim_event *e)
{
	enum { POLL_US = 50 };
	uint64_t n = __atomic_load_n(&e->ipc->shared->recorded, __ATOMIC_ACQUIRE);
	while (__atomic_load_n(&e->ipc->shared->done, __ATOMIC_ACQUIRE) < n)
		usleep(POLL_US);
}

typedef struct {
	char bytes[64];
} CUipcEventHandle;

static CUresult get_handle(struct sim_call *c, CUipcEventHandle *out, CUevent e)
{
	struct sim_share h;
	(void)c;
	if (!e || e->magic != SIM_MAGIC_EVENT || !e->ipc || e->ipc->fd < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	sim_share_export(e->ipc->fd, &h);
	memset(out, 0, sizeof(*out));
	memcpy(out->bytes, &h, sizeof(h));
	return CUDA_SUCCESS;
}

static CUresult open_handle(struct sim_call *c, CUevent *out, CUipcEventHandle handle)
{
	struct sim_share h;
	char *page;
	(void)c;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&h, handle.bytes, sizeof(h));
	if (h.pid == (int32_t)getpid())
		return CUDA_ERROR_INVALID_CONTEXT; /* only for other processes */
	CUresult r = sim_share_open(&h, SIM_SHARE_EVENT, &page);
	if (r)
		return r;
	struct sim_event *e = calloc(1, sizeof(*e));
	e->magic = SIM_MAGIC_EVENT;
	e->flags = SIM_EVENT_DISABLE_TIMING | SIM_EVENT_INTERPROCESS;
	e->ctx = sim_ctx_current();
	r = attach(e, page, -1);
	if (r) {
		munmap(page, SIM_PAGE);
		free(e);
		return r;
	}
	*out = e;
	return CUDA_SUCCESS;
}

SIM_API(cuIpcGetEventHandle, SIM_NEED_CTX, get_handle, (CUipcEventHandle * h, CUevent e), (h, e))
SIM_API(cuIpcOpenEventHandle, SIM_NEED_CTX, open_handle, (CUevent * e, CUipcEventHandle h), (e, h))
