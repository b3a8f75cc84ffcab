#include "model/big.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#define IN_MEMORY (8u << 20)
/* Smallest growth of a file, bytes. Each growth releases all pages, so it must not happen often. */
#define GROWTH (8u << 20)
#define MOST_FILES 64
#define TMPFS 0x01021994

static struct region {
	void *p; /* NULL: free */
	size_t bytes;
	int fd;
} region[MOST_FILES];
static size_t n_region; /* one more than the highest index in use */
static size_t filed;

static struct region *find(const void *p)
{
	for (size_t i = 0; p && i < n_region; i++)
		if (region[i].p == p)
			return &region[i];
	return NULL;
}

static struct region *unused(void)
{
	for (size_t i = 0; i < MOST_FILES; i++)
		if (!region[i].p) {
			n_region = i < n_region ? n_region : i + 1;
			return &region[i];
		}
	return NULL;
}

/* A file without a name in `dir`, on a disk if `disk`. */
static int file_in(const char *dir, bool disk)
{
	struct statfs fs;
	char path[PATH_MAX];
	int fd;

	if (!dir || *dir != '/' || statfs(dir, &fs) || (disk && fs.f_type == TMPFS))
		return -1;
	if (snprintf(path, sizeof(path), "%s/tfhook-XXXXXX", dir) >= (int)sizeof(path))
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* If no directory on a disk works, a memfd is used: its pages can at least be swapped out. A file
 * that RLIMIT_FSIZE does not let grow must fail with an error; the limit's signal, SIGXFSZ, would
 * kill the process. */
int tfh_big_file(void)
{
	const char *dir[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};

	signal(SIGXFSZ, SIG_IGN);
	for (int disk = 1; disk >= 0; disk--)
		for (size_t i = 0; i < sizeof(dir) / sizeof(*dir); i++) {
			int fd = file_in(dir[i], disk);
			if (fd >= 0)
				return fd;
		}
	return -1;
}

/* Allocates the space now. Writing into a hole of a file on a full disk would raise SIGBUS
 * later. */
static bool extend(int fd, size_t old, size_t bytes)
{
	return !posix_fallocate(fd, (off_t)old, (off_t)(bytes - old));
}

static void *new_region(size_t bytes)
{
	struct region *r = unused();
	int fd = r ? tfh_big_file() : -1;
	void *p = MAP_FAILED;

	if (fd >= 0 && extend(fd, 0, bytes))
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	*r = (struct region){p, bytes, fd};
	filed += bytes;
	return p;
}

static void drop(struct region *r)
{
	munmap(r->p, r->bytes);
	close(r->fd);
	filed -= r->bytes;
	r->p = NULL;
}

static void *longer(struct region *r, size_t bytes)
{
	void *p;

	if (bytes <= r->bytes)
		return r->p;
	if (!extend(r->fd, r->bytes, bytes))
		return NULL;
	p = mremap(r->p, r->bytes, bytes, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		return NULL;
	filed += bytes - r->bytes;
	r->p = p;
	r->bytes = bytes;
	return p;
}

/* Like realloc, for an array of `had` bytes; new bytes are not initialised. NULL when out of
 * memory, with `old` unchanged. */
static void *resize(void *old, size_t had, size_t bytes)
{
	struct region *r = find(old);
	void *p;

	tfh_big_trim();
	if (!r && bytes <= IN_MEMORY)
		return realloc(old, bytes);
	p = r ? longer(r, bytes) : new_region(bytes);
	if (p && r)
		return p;
	if (!p && !r)
		return realloc(old, bytes);
	/* Moves the array from memory to a file, or back to memory if the file cannot grow. */
	if (!p && !(p = malloc(bytes)))
		return NULL;
	if (had)
		memcpy(p, old, had < bytes ? had : bytes);
	tfh_big_free(old);
	return p;
}

void *tfh_big_array(size_t n, size_t size)
{
	void *p;

	if (size && n > SIZE_MAX / size)
		return NULL;
	/* A new file reads as zeros. */
	p = n * size > IN_MEMORY ? new_region(n * size) : NULL;
	return p ? p : calloc(n + 1, size);
}

void tfh_big_free(void *p)
{
	struct region *r = find(p);

	if (r)
		drop(r);
	else
		free(p);
}

void tfh_big_trim(void)
{
	for (size_t i = 0; i < n_region; i++)
		if (region[i].p)
			madvise(region[i].p, region[i].bytes, MADV_DONTNEED);
}

size_t tfh_big_filed(void)
{
	return filed;
}

int tfh_big_grow(void **v, size_t *cap, size_t n, size_t size)
{
	size_t old = *cap * size, want = *cap ? old * 2 : 64 * size;
	void *p;

	if (n < *cap)
		return 0;
	if (old >= GROWTH)
		want = old + GROWTH + old / 64;
	if (want < (n + 1) * size)
		want = (n + 1) * size;
	want = want / size;
	p = resize(*v, old, want * size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = want;
	return 0;
}
