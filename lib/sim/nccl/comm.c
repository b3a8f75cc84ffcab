/*
 * Communicators. The ranks, in one process or several on a host, share a file: a header, the
 * rendezvous entries of the kernels, then data regions, of which only what is used takes memory. A
 * communicator's memory stays until the process ends, since kernels may be pending.
 */
#include "sim/nccl/sim_nccl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAGIC = 0x6ccc, PAGE = 4096, HEAD = 65536 };
#define REGION ((size_t)1 << 30)

/* An initialisation that this thread has begun in a group and not completed. */
struct comm_setup {
	struct ncclComm *comm;
	struct ncclComm *parent; /* of a split, whose comm comes later */
	int color, key;
	uint32_t call;
	ncclComm_t *out;
	struct comm_setup *next;
};
static __thread struct comm_setup *inits;

bool sim_comm_valid(const struct ncclComm *c)
{
	return c && c->magic == MAGIC;
}

static size_t group_bytes(void)
{
	return (sim_nccl_driver()->native->group_bytes + PAGE - 1) / PAGE * PAGE;
}

void *sim_group_all(const struct ncclComm *c)
{
	return c->groups;
}

void *sim_group_between(const struct ncclComm *c, int src, int dst)
{
	return c->groups + (1 + (size_t)src * (size_t)c->ranks + (size_t)dst) * group_bytes();
}

size_t sim_region_of(const struct ncclComm *c, int rank, bool odd)
{
	(void)c;
	return (size_t)rank * 2 + odd;
}

size_t sim_region_between(const struct ncclComm *c, int src, int dst, bool odd)
{
	size_t n = (size_t)c->ranks;
	return 2 * (n + (size_t)src * n + (size_t)dst) + odd;
}

static size_t groups_size(const struct ncclComm *c)
{
	return (1 + (size_t)c->ranks * (size_t)c->ranks) * group_bytes();
}

static size_t regions(const struct ncclComm *c)
{
	return 2 * (size_t)c->ranks * (1 + (size_t)c->ranks);
}

static off_t region_start(const struct ncclComm *c, size_t i)
{
	size_t head = (HEAD + groups_size(c) + REGION - 1) / REGION * REGION;
	return (off_t)(head + i * REGION);
}

ncclResult_t sim_region_reserve(struct ncclComm *c, size_t i, size_t bytes)
{
	ncclResult_t r = ncclSuccess;
	if (bytes > REGION)
		return sim_nccl_error(c, ncclInternalError,
				      "%zu bytes: the simulator moves %zu at most", bytes, REGION);
	pthread_mutex_lock(&c->mu);
	for (size_t k = i; k < i + 2 && !r; k++) {
		int error = 0;
		if (c->regions[k].reserved >= bytes)
			continue;
		error = posix_fallocate(c->fd, region_start(c, k), (off_t)bytes);
		if (error)
			r = sim_nccl_error(c, ncclSystemError, "%zu bytes of shared memory: %s",
					   bytes, strerror(error));
		else
			c->regions[k].reserved = bytes;
	}
	pthread_mutex_unlock(&c->mu);
	return r;
}

char *sim_region_map(struct ncclComm *c, size_t i, size_t bytes)
{
	enum { STEP = 1 << 20 };
	struct sim_region *r = &c->regions[i];
	if (r->mapped < bytes) {
		if (r->p)
			munmap(r->p, r->mapped);
		r->mapped = (bytes + STEP - 1) / STEP * STEP;
		r->p = mmap(NULL, r->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd,
			    region_start(c, i));
		if (r->p == MAP_FAILED) {
			r->p = NULL;
			r->mapped = 0;
		}
	}
	return r->p;
}

static void changed(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Waits until *word is at least n; false if the communicator was aborted. */
static bool wait_for(struct sim_shared *s, uint32_t *word, uint32_t n)
{
	struct timespec t = {0, 10000000};
	for (;;) {
		uint32_t v = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if (v >= n)
			return true;
		if (__atomic_load_n(&s->aborted, __ATOMIC_ACQUIRE))
			return false;
		syscall(SYS_futex, word, FUTEX_WAIT, v, &t, NULL, 0);
	}
}

static void path_of(char *out, size_t n, const char *name)
{
	const char *dir = sim_nccl_driver()->native->config->dir;
	snprintf(out, n, "%s/%s", dir ? dir : "/dev/shm", name);
}

static ncclResult_t open_shared(struct ncclComm *c)
{
	char path[PATH_MAX];
	uint32_t none = 0;
	path_of(path, sizeof(path), c->name);
	c->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (c->fd < 0 || ftruncate(c->fd, region_start(c, regions(c))))
		return sim_nccl_error(c, ncclSystemError, "%s: %s", path, strerror(errno));
	char *p = mmap(NULL, HEAD + groups_size(c), PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	if (p == MAP_FAILED)
		return sim_nccl_error(c, ncclSystemError, "%s: %s", path, strerror(errno));
	c->shared = (struct sim_shared *)p;
	c->groups = p + HEAD;
	if (!__atomic_compare_exchange_n(&c->shared->ranks, &none, (uint32_t)c->ranks, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
	    none != (uint32_t)c->ranks)
		return sim_nccl_error(c, ncclInvalidUsage, "%d ranks here, %u elsewhere", c->ranks,
				      none);
	__atomic_add_fetch(&c->shared->joined, 1, __ATOMIC_ACQ_REL);
	changed(&c->shared->joined);
	return ncclSuccess;
}

/* A communicator in the current context that has announced itself to the others. */
static ncclResult_t begin(struct ncclComm **out, const char *name, int ranks, int rank)
{
	const struct sim_nccl_driver *d = sim_nccl_driver();
	CUdevice device = 0;
	*out = NULL;
	if (!d || d->init(0))
		return sim_nccl_error(NULL, ncclUnhandledCudaError, "no simulated driver");
	if (ranks < 1 || ranks > MAX_RANKS || rank < 0 || rank >= ranks)
		return sim_nccl_error(NULL, ncclInvalidArgument, "rank %d of %d", rank, ranks);
	struct ncclComm *c = calloc(1, sizeof(*c));
	pthread_mutex_init(&c->mu, NULL);
	c->magic = MAGIC;
	c->ranks = ranks;
	c->rank = rank;
	snprintf(c->name, sizeof(c->name), "%s", name);
	d->get_current(&c->ctx);
	if (!c->ctx &&
	    (d->device_get(&device, 0) || d->retain(&c->ctx, device) || d->set_current(c->ctx))) {
		free(c);
		return sim_nccl_error(NULL, ncclUnhandledCudaError, "no context");
	}
	d->get_device(&c->device);
	c->regions = calloc(regions(c), sizeof(*c->regions));
	c->messages = calloc((size_t)ranks * (size_t)ranks * 2, sizeof(*c->messages));
	*out = c;
	return open_shared(c);
}

static ncclResult_t complete(struct ncclComm *c)
{
	char path[PATH_MAX];
	if (!wait_for(c->shared, &c->shared->joined, (uint32_t)c->ranks))
		return sim_nccl_error(c, ncclRemoteError, "aborted while the ranks meet");
	path_of(path, sizeof(path), c->name);
	if (c->rank == 0)
		unlink(path);
	return ncclSuccess;
}

/* A split's new communicator, once all ranks of the parent have announced their colours. */
static ncclResult_t resolve(struct comm_setup *b)
{
	struct sim_shared *s = b->parent->shared;
	char name[NAME_LEN + 32];
	int rank = 0, ranks = 0, odd = b->call & 1;
	for (int r = 0; r < b->parent->ranks; r++) {
		if (!wait_for(s, &s->split[r].calls, b->call))
			return sim_nccl_error(b->parent, ncclRemoteError, "aborted in a split");
		if (s->split[r].color[odd] != b->color)
			continue;
		ranks++;
		rank += s->split[r].key[odd] < b->key ||
			(s->split[r].key[odd] == b->key && r < b->parent->rank);
	}
	if (b->color < 0)
		return ncclSuccess;
	snprintf(name, sizeof(name), "%.70s-%u-%d", b->parent->name, b->call, b->color);
	return begin(&b->comm, name, ranks, rank);
}

ncclResult_t sim_inits_finish(void)
{
	ncclResult_t r = ncclSuccess;
	for (struct comm_setup *b = inits; b && !r; b = b->next)
		if (b->parent)
			r = resolve(b);
	while (inits) {
		struct comm_setup *b = inits;
		if (!r && b->comm)
			r = complete(b->comm);
		*b->out = b->comm;
		inits = b->next;
		free(b);
	}
	return r;
}

/* Completes it now, or at the end of the group. */
static ncclResult_t later(const struct comm_setup *b)
{
	struct comm_setup *copy = malloc(sizeof(*copy)), **at = &inits;
	*copy = *b;
	while (*at)
		at = &(*at)->next;
	*at = copy;
	return sim_group_open() ? ncclSuccess : sim_inits_finish();
}

NCCL_API(ncclGetUniqueId, (ncclUniqueId * id), (id))
{
	uint64_t random;
	if (!id)
		return ncclInvalidArgument;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return sim_nccl_error(NULL, ncclSystemError, "no random numbers");
	memset(id, 0, sizeof(*id));
	snprintf(id->bytes, sizeof(id->bytes), "simnccl-%d-%016llx", (int)getpid(),
		 (unsigned long long)random);
	return ncclSuccess;
}

NCCL_API(ncclCommInitRank, (ncclComm_t * out, int ranks, ncclUniqueId id, int rank),
	 (out, ranks, id, rank))
{
	struct comm_setup b = {.out = out};
	if (!out || strncmp(id.bytes, "simnccl-", 8) || strnlen(id.bytes, NAME_LEN) >= NAME_LEN ||
	    strchr(id.bytes, '/'))
		return sim_nccl_error(NULL, ncclInvalidArgument, "not an id of this library");
	*out = NULL;
	ncclResult_t r = begin(&b.comm, id.bytes, ranks, rank);
	return r ? r : later(&b);
}

/* The settings are for real hardware; initialisation always blocks. */
NCCL_API(ncclCommInitRankConfig,
	 (ncclComm_t * out, int ranks, ncclUniqueId id, int rank, void *config),
	 (out, ranks, id, rank, config))
{
	(void)config;
	return do_ncclCommInitRank(out, ranks, id, rank);
}

NCCL_API(ncclCommInitAll, (ncclComm_t * out, int n, const int *devices), (out, n, devices))
{
	const struct sim_nccl_driver *d = sim_nccl_driver();
	ncclUniqueId id;
	CUcontext before = NULL, ctx = NULL;
	CUdevice device;
	ncclResult_t r = do_ncclGetUniqueId(&id);
	if (r || !out || n < 1)
		return r ? r : ncclInvalidArgument;
	if (!d || d->init(0))
		return sim_nccl_error(NULL, ncclUnhandledCudaError, "no simulated driver");
	d->get_current(&before);
	for (int i = 0; i < n && !r; i++) {
		struct comm_setup b = {.out = &out[i]};
		if (d->device_get(&device, devices ? devices[i] : i) || d->retain(&ctx, device) ||
		    d->set_current(ctx))
			r = sim_nccl_error(NULL, ncclUnhandledCudaError, "device of rank %d", i);
		else
			r = begin(&b.comm, id.bytes, n, i);
		struct comm_setup *copy = malloc(sizeof(*copy));
		*copy = b;
		copy->next = inits;
		inits = copy;
	}
	d->set_current(before);
	ncclResult_t end = r ? r : sim_group_open() ? ncclSuccess : sim_inits_finish();
	return end;
}

NCCL_API(ncclCommSplit, (ncclComm_t parent, int color, int key, ncclComm_t *out, void *config),
	 (parent, color, key, out, config))
{
	(void)config;
	if (!sim_comm_valid(parent) || !out || color < -1)
		return sim_nccl_error(NULL, ncclInvalidArgument, "split with color %d", color);
	struct sim_shared *s = parent->shared;
	uint32_t call = s->split[parent->rank].calls + 1;
	*out = NULL;
	s->split[parent->rank].color[call & 1] = color;
	s->split[parent->rank].key[call & 1] = key;
	__atomic_store_n(&s->split[parent->rank].calls, call, __ATOMIC_RELEASE);
	changed(&s->split[parent->rank].calls);
	return later(&(struct comm_setup){
		.parent = parent, .color = color, .key = key, .call = call, .out = out});
}

NCCL_API(ncclCommFinalize, (ncclComm_t c), (c))
{
	return sim_comm_valid(c) ? ncclSuccess : ncclInvalidArgument;
}

NCCL_API(ncclCommDestroy, (ncclComm_t c), (c))
{
	if (!sim_comm_valid(c))
		return sim_nccl_error(NULL, ncclInvalidArgument, "not a communicator");
	c->magic = 0;
	return ncclSuccess;
}

/* Ends the kernels of all ranks, and wakes waiting threads. */
NCCL_API(ncclCommAbort, (ncclComm_t c), (c))
{
	const struct sim_nccl_driver *d = sim_nccl_driver();
	if (!sim_comm_valid(c))
		return sim_nccl_error(NULL, ncclInvalidArgument, "not a communicator");
	__atomic_store_n(&c->shared->aborted, 1, __ATOMIC_RELEASE);
	d->native->abort(sim_group_all(c));
	for (int a = 0; a < c->ranks; a++)
		for (int b = 0; b < c->ranks; b++)
			if (a == c->rank || b == c->rank)
				d->native->abort(sim_group_between(c, a, b));
	c->magic = 0;
	return ncclSuccess;
}

NCCL_API(ncclCommGetAsyncError, (ncclComm_t c, ncclResult_t *error), (c, error))
{
	if (!sim_comm_valid(c) || !error)
		return ncclInvalidArgument;
	*error =
		__atomic_load_n(&c->shared->aborted, __ATOMIC_ACQUIRE) ? ncclRemoteError : c->async;
	return ncclSuccess;
}

#define GETTER(name, field)                                                                        \
	NCCL_API(name, (ncclComm_t c, int *v), (c, v))                                             \
	{                                                                                          \
		if (!sim_comm_valid(c) || !v)                                                      \
			return ncclInvalidArgument;                                                \
		*v = c->field;                                                                     \
		return ncclSuccess;                                                                \
	}
GETTER(ncclCommCount, ranks)
GETTER(ncclCommCuDevice, device)
GETTER(ncclCommUserRank, rank)

/* All memory is registered memory here. */
NCCL_API(ncclCommRegister, (ncclComm_t c, void *p, size_t n, void **handle), (c, p, n, handle))
{
	(void)n;
	if (!sim_comm_valid(c) || !handle)
		return ncclInvalidArgument;
	*handle = p;
	return ncclSuccess;
}

NCCL_API(ncclCommDeregister, (ncclComm_t c, void *handle), (c, handle))
{
	(void)handle;
	return sim_comm_valid(c) ? ncclSuccess : ncclInvalidArgument;
}
