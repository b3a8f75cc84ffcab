#include "format/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"

/* Where locks do not work, a heartbeat older than this means death; the owner beats once a second.
 */
#define HEARTBEAT_LIMIT_NS 10000000000ull

struct tft_view {
	int fd;
	char *path;
	const uint8_t *map;
	uint64_t size;
};

/* ---- mapping ---- */

static int check_header(const struct tft_view *v, struct tfh_err *err)
{
	const struct tft_journal *j = (const struct tft_journal *)v->map;
	uint64_t magic = v->size >= sizeof(*j) ? __atomic_load_n(&j->magic, __ATOMIC_ACQUIRE) : 0;

	if (v->size >= sizeof(*j) && magic == 0)
		return tfh_err_set(err, -EAGAIN,
				   "%s: a journal that is still being set up, or was left so",
				   v->path);
	if (magic != TFT_JOURNAL_MAGIC)
		return tfh_err_set(err, -ENOMSG, "%s: not a tfhook journal", v->path);
	if (j->version != TFT_JOURNAL_VERSION || j->header_bytes != TFT_JOURNAL_HEADER)
		return tfh_err_set(err, -EPROTO,
				   "%s: a journal of version %u, this tfhook reads version %u; use "
				   "the tfhook that "
				   "recorded it",
				   v->path, j->version, TFT_JOURNAL_VERSION);
	return 0;
}

static int map(struct tft_view *v)
{
	struct stat st;

	if (fstat(v->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < TFT_JOURNAL_HEADER)
		return -ENOMSG;
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, v->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	v->map = p;
	v->size = (uint64_t)st.st_size;
	return 0;
}

int tft_view_open(const char *path, struct tft_view **out, struct tfh_err *err)
{
	struct tft_view *v = calloc(1, sizeof(*v));
	int code;

	*out = NULL;
	if (!v || !(v->path = strdup(path))) {
		free(v);
		return tfh_err_set(err, -ENOMEM, "%s: not enough memory", path);
	}
	v->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	code = v->fd < 0 ? -errno : map(v);
	if (code == -ENOMSG)
		tfh_err_set(err, code, "%s: not a tfhook journal", path);
	else if (code < 0)
		tfh_err_set(err, code, "%s: %s", path, strerror(-code));
	else
		code = check_header(v, err);
	if (code < 0) {
		tft_view_close(v);
		return code;
	}
	*out = v;
	return 0;
}

void tft_view_close(struct tft_view *v)
{
	if (!v)
		return;
	if (v->map)
		munmap((void *)v->map, v->size);
	if (v->fd >= 0)
		close(v->fd);
	free(v->path);
	free(v);
}

const struct tft_journal *tft_view_header(const struct tft_view *v)
{
	return (const struct tft_journal *)v->map;
}

/* `bytes` at `offset`, aligned to 8 and inside the file; NULL if not. */
static const void *part(const struct tft_view *v, uint64_t offset, uint64_t bytes)
{
	if (offset % 8 || offset > v->size || bytes > v->size - offset)
		return NULL;
	return v->map + offset;
}

uint32_t tft_view_rings(const struct tft_view *v)
{
	uint32_t n = __atomic_load_n(&tft_view_header(v)->slot_count, __ATOMIC_ACQUIRE);

	return n < TFT_JOURNAL_SLOTS ? n : TFT_JOURNAL_SLOTS;
}

const struct tft_ring *tft_view_ring(const struct tft_view *v, uint32_t i)
{
	const struct tft_slot *slot =
		part(v, tft_view_header(v)->slots_off + i * sizeof(*slot), sizeof(*slot));
	const struct tft_ring *ring = slot ? part(v, slot->ring_off, sizeof(*ring)) : NULL;
	uint32_t capacity;

	if (!ring || __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) == TFT_RING_FREE)
		return NULL;
	return tft_view_records(v, ring, &capacity) ? ring : NULL;
}

const struct tfh_rec *tft_view_records(const struct tft_view *v, const struct tft_ring *ring,
				       uint32_t *capacity)
{
	uint32_t mask = ring->mask;

	if (mask & (mask + 1ull))
		return NULL;
	*capacity = mask + 1;
	return part(v, ring->records_off, (mask + 1ull) * sizeof(struct tfh_rec));
}

const struct tft_staging *tft_view_staging(const struct tft_view *v, const struct tfh_rec **records)
{
	const struct tft_staging *s = part(v, tft_view_header(v)->staging_off, sizeof(*s));

	*records = s ? part(v, s->records_off, s->capacity * (uint64_t)sizeof(**records)) : NULL;
	return *records ? s : NULL;
}

const void *tft_view_head(const struct tft_view *v, size_t *len)
{
	const struct tft_journal *j = tft_view_header(v);
	uint32_t bytes = __atomic_load_n(&j->head_bytes, __ATOMIC_ACQUIRE);

	*len = bytes;
	return bytes && bytes <= TFT_JOURNAL_HEAD_CAP ? part(v, j->head_off, bytes) : NULL;
}

struct tft_clock_triple tft_view_clock(const struct tft_view *v)
{
	const struct tft_journal *j = tft_view_header(v);
	uint32_t n = __atomic_load_n(&j->clock_n, __ATOMIC_ACQUIRE);

	return n ? j->clock[(n - 1) & 1] : j->start;
}

/* ---- is the owner alive? ---- */

static bool locked(const struct tft_view *v)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

	return fcntl(v->fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

enum tft_life tft_view_life(const struct tft_view *v)
{
	const struct tft_journal *j = tft_view_header(v);
	char boot[64];
	struct timespec ts;

	tfh_read_small("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	boot[strcspn(boot, "\n")] = '\0';
	if (strncmp(boot, j->boot_id, sizeof(j->boot_id)) != 0)
		return TFT_ELSEWHERE;
	if (j->flags & TFT_JF_LOCKED)
		return locked(v) ? TFT_ALIVE : TFT_DEAD;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	uint64_t now = (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
	uint64_t beat = __atomic_load_n(&j->heartbeat_ns, __ATOMIC_RELAXED);
	if (tfh_process_start((pid_t)j->pid) == j->process_start)
		return TFT_ALIVE;
	/* a process of another pid namespace cannot be looked up, but its heart can be heard */
	return now > beat && now - beat < HEARTBEAT_LIMIT_NS ? TFT_ALIVE : TFT_DEAD;
}

bool tft_journal_sweep(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	uint64_t magic = 0;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool gone = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		    pread(fd, &magic, sizeof(magic), 0) >= 0 && magic == 0;

	/* A young one without a lock may be about to take it. */
	if (gone && fcntl(fd, F_GETLK, &lock) == 0)
		gone = lock.l_type == F_UNLCK;
	if (gone)
		gone = time(NULL) - st.st_mtime > (time_t)(HEARTBEAT_LIMIT_NS / 1000000000);
	if (fd >= 0)
		close(fd);
	return gone && unlink(path) == 0;
}

/* ---- control ---- */

int tft_journal_control(const char *path, uint32_t set, uint32_t clear, uint32_t upper,
			struct tfh_err *err)
{
	struct tft_view *v;

	int code = tft_view_open(path, &v, err);
	if (code < 0)
		return code;
	/* a second descriptor: closing it drops no lock of the owner's, which is another process */
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		code = tfh_err_set(err, -errno, "%s: cannot be steered: %s", path, strerror(errno));
	} else {
		struct tft_journal *j = p;
		uint64_t old = __atomic_load_n(&j->control, __ATOMIC_RELAXED), new;
		do {
			new = (old & ~(uint64_t)clear) | set;
			if (upper)
				new = (new &UINT32_MAX) | (uint64_t)upper << 32;
		} while (!__atomic_compare_exchange_n(&j->control, &old, new, false,
						      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
		munmap(p, 4096);
	}
	if (fd >= 0)
		close(fd);
	tft_view_close(v);
	return code;
}

void tft_journals_in(const char *place, tft_journal_fn fn, void *arg)
{
	DIR *d = opendir(place);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		size_t n = strlen(e->d_name);
		struct tft_view *view;
		char path[8192];
		if (n < 9 || strcmp(e->d_name + n - 8, ".journal") ||
		    (size_t)snprintf(path, sizeof(path), "%s/%s", place, e->d_name) >= sizeof(path))
			continue;
		int code = tft_view_open(path, &view, NULL);
		fn(arg, path, e->d_name, view, code);
	}
	if (d)
		closedir(d);
}
