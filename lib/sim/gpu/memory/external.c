/*
 * External memory: a file descriptor exported by this driver, in this or another process, can be
 * imported and mapped. Other descriptors are rejected, and so are semaphores, which nothing can
 * export.
 */
#include "sim/gpu/objects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OPAQUE_FD = 1 };

typedef struct {
	int type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
	} handle;
	unsigned long long size;
	unsigned flags, reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct {
	unsigned long long offset, size;
	unsigned flags, reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

struct sim_external {
	int magic, fd;
	struct sim_device *dev;
	uint64_t n;
};
typedef struct sim_external *CUexternalMemory;

static bool is(const struct sim_external *e)
{
	return e && e->magic == SIM_MAGIC_EXTERNAL;
}

/* Takes ownership of the descriptor. */
static CUresult import(struct sim_call *c, CUexternalMemory *out,
		       const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *d)
{
	struct sim_share about;
	if (!out || !d)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->type != OPAQUE_FD)
		return sim_cannot(c);
	if (!sim_share_read(d->handle.fd, &about) || about.kind != SIM_SHARE_PHYS)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!d->size || d->size > about.size)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_external *e = malloc(sizeof(*e));
	*e = (struct sim_external){SIM_MAGIC_EXTERNAL, d->handle.fd, sim_ctx_current()->dev,
				   d->size};
	c->bytes = d->size;
	*out = e;
	return CUDA_SUCCESS;
}

/* The buffer is freed with cuMemFree, and may outlive the external memory. */
static CUresult buffer(struct sim_call *c, CUdeviceptr *out, CUexternalMemory e,
		       const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *d)
{
	if (!is(e))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !d || d->flags || !d->size || d->offset % SIM_PAGE || d->offset > e->n ||
	    d->size > e->n - d->offset)
		return CUDA_ERROR_INVALID_VALUE;
	c->bytes = d->size;
	char *p = mmap(NULL, sim_pages(d->size), PROT_READ | PROT_WRITE, MAP_SHARED, e->fd,
		       (off_t)d->offset);
	if (p == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	struct sim_range r = {.p = p,
			      .n = d->size,
			      .kind = SIM_M_DEVICE,
			      .ctx = sim_ctx_current(),
			      .dev = e->dev,
			      .id = sim_new_id(),
			      .access = SIM_READ_WRITE,
			      .fd = -1};
	CUresult result = sim_mem_insert(&r);
	if (result)
		munmap(p, sim_pages(d->size));
	else
		*out = (uintptr_t)p;
	return result;
}

static CUresult destroy(struct sim_call *c, CUexternalMemory e)
{
	(void)c;
	if (!is(e))
		return CUDA_ERROR_INVALID_HANDLE;
	e->magic = 0;
	close(e->fd);
	free(e);
	return CUDA_SUCCESS;
}

SIM_API(cuImportExternalMemory, SIM_NEED_CTX, import,
	(CUexternalMemory * e, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *d), (e, d))
SIM_API(cuExternalMemoryGetMappedBuffer, SIM_NEED_CTX, buffer,
	(CUdeviceptr * p, CUexternalMemory e, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *d), (p, e, d))
SIM_API(cuDestroyExternalMemory, SIM_NEED_INIT, destroy, (CUexternalMemory e), (e))
