/* The journal's memory: creation, ring slots, end. place.c decides where it is. */
#include "record/ring/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "record/process/apart.h"
#include "record/process/requests.h"
#include "record/run/place.h"

struct tfh_journal tfh_journal;

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Values of slot_use. The thread that changes FREE to TAKEN owns the ring. */
enum {
	SLOT_NONE = 0,
	SLOT_TAKEN = 1,
	SLOT_FREE_SMALL = 2,
	SLOT_FREE_LARGE = 3,
};

static uint32_t ring_bytes(bool large)
{
	return TFT_RING_HEADER + (large ? TFT_RING_LARGE : TFT_RING_SMALL);
}

bool tfh_journal_populates(void)
{
	return !madvise(NULL, 0, MADV_POPULATE_WRITE) || errno != EINVAL;
}

/* Allocates part of the file through its descriptor, on kernels that cannot do so through the
 * mapping. */
static int allocate(const struct tfh_journal *j, uint64_t off, uint64_t bytes)
{
	struct stat st;
	long rc;

	/* The job may have closed every descriptor and reused the number. */
	if (tfh_fstat(j->fd, &st) || st.st_dev != j->dev || st.st_ino != j->ino)
		return -EBADF;
	do {
		rc = syscall(SYS_fallocate, j->fd, 0, off, bytes);
	} while (rc && errno == EINTR);
	return rc ? -errno : 0;
}

/*
 * Allocates before use, so that a full file system is an error here and never a SIGBUS later. This
 * also avoids the first touch, which costs 1 us a page and shows in the p99 of a call.
 */
static int back_range(const struct tfh_journal *j, uint64_t off, uint64_t bytes)
{
	/* The kernel's pages may be larger than the journal's. */
	uint64_t before = off % (uint64_t)sysconf(_SC_PAGESIZE);

	if (!madvise(j->base + off - before, bytes + before, MADV_POPULATE_WRITE) || j->anonymous)
		return 0;
	if (j->populates)
		return errno == EFAULT ? -ENOSPC : -errno; /* this would have been the SIGBUS */
	return allocate(j, off, bytes);
}

/*
 * Locks the open file, not the process's view of it: a process lock would vanish when the job
 * itself opens and closes its journal, say to upload the directory. A forked child shares the lock
 * until it closes the descriptor (tfh_journal_disown). Kernels before 3.15 and some file systems
 * only have process locks.
 */
static bool lock_file(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	unsigned long arg = (unsigned long)&lock;

	return !tfh_fcntl(fd, F_OFD_SETLK, arg) || !tfh_fcntl(fd, F_SETLK, arg);
}

static int map_file(struct tfh_journal *j, uint64_t fixed)
{
	const uint64_t begun = TFT_JOURNAL_SETUP_MAGIC;
	struct stat st;
	int err = 0;

	if (tfh_fstat(j->fd, &st))
		return -errno;
	j->dev = st.st_dev;
	j->ino = st.st_ino;
	/* The first write identifies the file as a journal, in case the process is killed before
	 * the rest is written. */
	if (tfh_pwrite(j->fd, &begun, sizeof(begun), 0) != sizeof(begun) ||
	    tfh_ftruncate(j->fd, (off_t)j->size))
		return errno ? -errno : -ENOSPC;
	j->base = mmap(NULL, j->size, PROT_READ | PROT_WRITE, MAP_SHARED, j->fd, 0);
	if (j->base == MAP_FAILED)
		return -errno;
	j->populates = tfh_journal_populates();
	err = back_range(j, 0, fixed);
	if (err)
		munmap(j->base, j->size);
	else
		madvise(j->base, j->size, MADV_DONTFORK);
	return err;
}

static int map_anonymous(struct tfh_journal *j)
{
	j->anonymous = true;
	j->fd = -1;
	j->path[0] = '\0';
	j->base = mmap(NULL, j->size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (j->base == MAP_FAILED)
		return -errno;
	madvise(j->base, j->size, MADV_DONTFORK);
	return 0;
}

/* Removes the journal's name if it still belongs to this journal. */
static void unlink_own(const struct tfh_journal *j, const struct tfh_rundir *dir)
{
	int below = j->beside ? tfh_rundir_fd(dir) : -1, at = below;
	const char *name = strrchr(j->path, '/') + 1;
	struct stat st;

	if (below < 0) { /* /dev/shm, or no descriptor is available */
		at = AT_FDCWD;
		name = j->path;
	}
	if (!fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == j->dev &&
	    st.st_ino == j->ino)
		unlinkat(at, name, 0);
	if (below >= 0)
		tfh_close(below);
}

static int give_name(struct tfh_journal *j, const struct tfh_rundir *dir, uint32_t flags)
{
	int err;

	if (__atomic_load_n(&tfh_requests.start_unwanted, __ATOMIC_ACQUIRE))
		err = -ECANCELED; /* the process is ending and would leave the file behind */
	else
		err = tfh_journal_name(dir, j->fd, flags, j->path, sizeof(j->path));
	if (err)
		munmap(j->base, j->size);
	return err;
}

/* Opens the file without a name until it is complete, so a process that ends meanwhile leaves
 * nothing. */
static int open_file(struct tfh_journal *j, const struct tfh_rundir *dir, uint64_t fixed,
		     struct tfh_journal_way way, uint32_t *flags)
{
	int err;

	*flags = 0;
	j->fd = tfh_journal_place(dir, j->size, way, j->path, sizeof(j->path), flags);
	if (j->fd < 0)
		return j->fd;
	j->beside = !(*flags & TFT_JF_IN_DEV_SHM);
	if (!tfh_is_apart()) {
		j->fd = tfh_raise_fd(j->fd);
		j->in_table = 1;
	}
	/* The lock comes first: a journal without header and lock would look like a leftover. */
	if (lock_file(j->fd))
		*flags |= TFT_JF_LOCKED;
	err = map_file(j, fixed);
	if (!err && !j->path[0])
		err = give_name(j, dir, *flags);
	if (err) {
		if (j->path[0])
			unlink_own(j, dir);
		tfh_close(j->fd);
		j->in_table = 0;
	}
	return err;
}

/* A policy may forbid links, and others may have filled /dev/shm. */
static int open_somewhere(struct tfh_journal *j, const struct tfh_rundir *dir, uint64_t fixed,
			  uint32_t *flags)
{
	static const struct tfh_journal_way ways[] = {
		{.nameless = true}, {0}, {.nameless = true, .beside = true}, {.beside = true}};
	int err = -ENOTSUP;
	bool shm = true;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (ways[i].beside && !shm)
			break; /* already tried there */
		err = open_file(j, dir, fixed, ways[i], flags);
		if (!err || err == -ECANCELED)
			break;
		shm = *flags & TFT_JF_IN_DEV_SHM;
	}
	return err;
}

int tfh_journal_open(struct tfh_journal *j, const struct tfh_rundir *dir, uint64_t ring_total)
{
	uint64_t slots_off, head_off, staging_off, records_off;
	uint64_t fixed = tft_journal_plan(&slots_off, &head_off, &staging_off, &records_off);
	uint32_t flags;
	int err;

	memset(j, 0, sizeof(*j));
	j->size = fixed + tft_page_up(ring_total);
	err = open_somewhere(j, dir, fixed, &flags);
	if (err) {
		flags = 0;
		err = map_anonymous(j);
		if (err)
			return err;
	}
	j->slot_use = mmap(NULL, TFT_JOURNAL_SLOTS, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (j->slot_use == MAP_FAILED)
		return -ENOMEM;
	tfh_journal_map_add(j->base, j->size);
	j->head = (struct tft_journal *)j->base;
	j->slots = (struct tft_slot *)(j->base + slots_off);
	j->staging = (struct tft_staging *)(j->base + staging_off);
	j->staged = (struct tfh_rec *)(j->base + records_off);
	j->next = fixed / TFH_PAGE << 16;
	j->head->version = TFT_JOURNAL_VERSION;
	j->head->header_bytes = TFT_JOURNAL_HEADER;
	j->head->slots_off = slots_off;
	j->head->head_off = head_off;
	j->head->staging_off = staging_off;
	j->head->flags = flags;
	j->staging->records_off = records_off;
	j->staging->capacity = TFT_STAGING_RECORDS;
	return 0;
}

#define SPACE_TAKEN (128ull << 20) /* 64 MiB of rings and as much for the flusher's heap */
#define SPACE_LEAST (8 * SPACE_TAKEN)

uint64_t tfh_tight_space(void)
{
	struct rlimit space, data;
	uint64_t least = RLIM_INFINITY;

	if (!getrlimit(RLIMIT_AS, &space))
		least = space.rlim_cur;
	if (!getrlimit(RLIMIT_DATA, &data) && data.rlim_cur < least)
		least = data.rlim_cur;
	return least < SPACE_LEAST ? least : 0;
}

bool tfh_tight_lock(void)
{
	void *most = mmap(NULL, SPACE_TAKEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			  -1, 0);

	if (most == MAP_FAILED)
		return errno == EAGAIN;
	munmap(most, SPACE_TAKEN);
	return false;
}

static struct tft_ring *slot_reuse(struct tfh_journal *j, uint8_t kind)
{
	uint32_t n = __atomic_load_n(&j->head->slot_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++) {
		uint8_t have = kind;

		/* acquire: pairs with the release when the flusher gave the slot back */
		if (__atomic_load_n(&j->slot_use[i], __ATOMIC_RELAXED) == kind &&
		    __atomic_compare_exchange_n(&j->slot_use[i], &have, SLOT_TAKEN, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			struct tft_ring *ring = tfh_journal_ring(j, i);

			memset(ring, 0, sizeof(*ring));
			return ring;
		}
	}
	return NULL;
}

/* Takes the next place in the file. Entries below slot_count may still be empty for a moment;
 * readers skip them. */
static struct tft_ring *slot_append(struct tfh_journal *j, uint32_t bytes)
{
	uint64_t pages = bytes / TFH_PAGE, old = __atomic_load_n(&j->next, __ATOMIC_RELAXED);
	uint64_t off;
	uint32_t slot, n;

	do {
		slot = (uint32_t)(old & 0xffff);
		off = (old >> 16) * TFH_PAGE;
		/* Growth leaves an eighth for threads that have no ring yet. */
		if (slot >= TFT_JOURNAL_SLOTS ||
		    off + bytes > (bytes == ring_bytes(true) ? j->size / 8 * 7 : j->size))
			return NULL;
	} while (!__atomic_compare_exchange_n(&j->next, &old,
					      ((old >> 16) + pages) << 16 | (slot + 1), true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if (back_range(j, off, bytes))
		return NULL; /* the place stays unused: its file system is full */
	if (off > j->size / 2)
		tfh_flusher_wake(); /* the flusher may have rings of ended threads to give back */
	j->slots[slot].bytes = bytes;
	__atomic_store_n(&j->slot_use[slot], SLOT_TAKEN, __ATOMIC_RELAXED);
	/* release: a thread that sees the offset sees everything before it */
	__atomic_store_n(&j->slots[slot].ring_off, off, __ATOMIC_RELEASE);
	n = __atomic_load_n(&j->head->slot_count, __ATOMIC_RELAXED);
	while (n <= slot && !__atomic_compare_exchange_n(&j->head->slot_count, &n, slot + 1, true,
							 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return (struct tft_ring *)(j->base + off);
}

struct tft_ring *tfh_slot_alloc(struct tfh_journal *j, bool large)
{
	struct tft_ring *ring =
		large ? __atomic_exchange_n(&j->spare, NULL, __ATOMIC_ACQUIRE) : NULL;

	if (!ring)
		ring = slot_reuse(j, large ? SLOT_FREE_LARGE : SLOT_FREE_SMALL);
	if (!ring)
		ring = slot_append(j, ring_bytes(large));
	if (!ring && !large) /* the first part of a large ring serves as well */
		ring = slot_reuse(j, SLOT_FREE_LARGE);
	return ring;
}

bool tfh_slot_prepare(struct tfh_journal *j)
{
	if (__atomic_load_n(&j->spare, __ATOMIC_RELAXED))
		return true;
	struct tft_ring *ring = tfh_slot_alloc(j, true);
	__atomic_store_n(&j->spare, ring, __ATOMIC_RELEASE);
	return ring != NULL;
}

void tfh_slot_free(struct tfh_journal *j, uint32_t slot)
{
	bool large = j->slots[slot].bytes == ring_bytes(true);

	__atomic_store_n(&j->slot_use[slot], large ? SLOT_FREE_LARGE : SLOT_FREE_SMALL,
			 __ATOMIC_RELEASE);
}

void tfh_journal_unlink(struct tfh_journal *j)
{
	if (j->head)
		__atomic_store_n(&j->head->state, TFT_JOURNAL_FINISHED, __ATOMIC_RELEASE);
	if (j->path[0])
		unlink_own(j, &tfh_dir);
}

static void close_own(struct tfh_journal *j)
{
	struct stat st;

	if (__atomic_load_n(&j->in_table, __ATOMIC_ACQUIRE) && !tfh_fstat(j->fd, &st) &&
	    st.st_dev == j->dev && st.st_ino == j->ino)
		tfh_close(j->fd);
	__atomic_store_n(&j->in_table, 0, __ATOMIC_RELEASE);
}

void tfh_journal_handed_over(struct tfh_journal *j)
{
	close_own(j);
}

void tfh_journal_release(struct tfh_journal *j)
{
	struct tfh_journal was = *j;

	close_own(j);
	memset(j, 0, sizeof(*j));
	tfh_journal_map_over(was.base, was.size);
	munmap(was.slot_use, TFT_JOURNAL_SLOTS);
}

void tfh_journal_disown(struct tfh_journal *j)
{
	tfh_journal_map_forget();
	if (!j->base)
		return;
	/* MADV_DONTFORK left a hole. Nothing else can have been mapped there since, because the
	 * child has one thread. */
	mmap(j->base, j->size, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	close_own(j);
	if (j->slot_use)
		munmap(j->slot_use, TFT_JOURNAL_SLOTS);
	memset(j, 0, sizeof(*j));
}
