/*
 * Memory as unnamed files, which other processes open through /proc/PID/fd: nothing remains when a
 * process dies. A page after the contents of such a file describes it. Device memory becomes such a
 * file only when a handle is requested, because a process may have far more allocations than open
 * files.
 */
#include "sim/gpu/objects.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAGIC = 0x53494d53 };

int sim_share_file(size_t n, const struct sim_share *about)
{
	struct sim_share trailer = *about;
	trailer.magic = MAGIC;
	trailer.size = n;
	int fd = memfd_create("simgpu", MFD_CLOEXEC);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)(sim_pages(n) + SIM_PAGE)) ||
	    pwrite(fd, &trailer, sizeof(trailer), (off_t)sim_pages(n)) != sizeof(trailer)) {
		close(fd);
		return -1;
	}
	return fd;
}

bool sim_share_read(int fd, struct sim_share *about)
{
	struct stat st;
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < SIM_PAGE)
		return false;
	if (pread(fd, about, sizeof(*about), st.st_size - SIM_PAGE) != sizeof(*about))
		return false;
	about->inode = st.st_ino;
	return about->magic == MAGIC && sim_pages(about->size) + SIM_PAGE == (size_t)st.st_size;
}

void sim_share_export(int fd, struct sim_share *h)
{
	sim_share_read(fd, h);
	h->pid = (int32_t)getpid();
	h->fd = fd;
}

CUresult sim_share_open(const struct sim_share *h, enum sim_share_kind kind, char **out)
{
	char path[64];
	struct sim_share about;
	if (h->magic != MAGIC || h->kind != (uint32_t)kind)
		return CUDA_ERROR_INVALID_HANDLE;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", h->pid, h->fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char *p = MAP_FAILED;
	if (sim_share_read(fd, &about) && about.inode == h->inode && about.size == h->size)
		p = mmap(NULL, sim_pages(h->size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	*out = p;
	return CUDA_SUCCESS;
}

static bool idle(const struct sim_ctx *ctx)
{
	if (!sim_op_done(ctx->legacy.tail))
		return false;
	for (const struct sim_stream *s = ctx->streams; s; s = s->next)
		if (!sim_op_done(s->tail))
			return false;
	return true;
}

/* Returns with sim_mu locked and no work pending in ctx, unless other threads submit
 * continuously. */
static void settle(struct sim_ctx *ctx)
{
	enum { TRIES = 100 };
	for (int i = 0;; i++) {
		if (ctx)
			sim_ctx_drain(ctx);
		pthread_mutex_lock(&sim_mu);
		if (!ctx || i == TRIES || idle(ctx))
			return;
		pthread_mutex_unlock(&sim_mu);
	}
}

/* Pages that were never written stay holes in the file. */
static void copy_pages(char *to, const char *from, size_t n)
{
	static const char zero[SIM_PAGE];
	for (size_t at = 0; at < n; at += SIM_PAGE)
		if (memcmp(from + at, zero, SIM_PAGE))
			memcpy(to + at, from + at, SIM_PAGE);
}

static void set_fd(struct sim_range *r, void *fd)
{
	r->fd = *(int *)fd;
}

/* With sim_mu: replaces r with a file of the same contents. */
static CUresult replace(const struct sim_range *r)
{
	size_t n = sim_pages(r->n);
	struct sim_share about = {.kind = SIM_SHARE_MEMORY, .device = r->dev->index, .id = r->id};
	int fd = sim_share_file(r->n, &about);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		close(fd);
		return CUDA_ERROR_MAP_FAILED;
	}
	copy_pages(p, r->p, n);
	if (mremap(p, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, r->p) == MAP_FAILED) {
		munmap(p, n);
		close(fd);
		return CUDA_ERROR_MAP_FAILED;
	}
	sim_mem_change(r->p, set_fd, &fd);
	return CUDA_SUCCESS;
}

CUresult sim_mem_share(const void *p, struct sim_share *h)
{
	struct sim_range r;
	CUresult result = CUDA_SUCCESS;
	if (!sim_mem_find(p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	settle(r.fd < 0 ? r.ctx : NULL);
	if (!sim_mem_find(p, &r))
		result = CUDA_ERROR_INVALID_VALUE;
	else if (r.fd < 0)
		result = replace(&r);
	if (!result && sim_mem_find(p, &r))
		sim_share_export(r.fd, h);
	pthread_mutex_unlock(&sim_mu);
	return result;
}
