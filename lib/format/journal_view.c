#include "format/journal_view.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"
#include "base/text.h"
#include "format/chunk.h"
#include "format/journal_open.h"

/* Where file locks do not work, an owner whose heartbeat is older counts as dead. It updates the
 * heartbeat once a second. */
#define HEARTBEAT_LIMIT_NS 10000000000ull

struct tft_view {
	int dir, fd; /* dir: directory in which the name is looked up */
	bool writable;
	char *path;
	const char *name; /* in path */
	struct stat st;
	struct tft_journal header;
};

/* ---- opening ---- */

/* Opens the file without following a link or waiting for a FIFO. Opens it for writing if allowed,
 * for the lock of a salvage and the control word. */
static int open_file(struct tft_view *v)
{
	const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

	v->fd = openat(v->dir, v->name, O_RDWR | flags);
	v->writable = v->fd >= 0;
	if (v->fd < 0 && errno != ENOENT && errno != ELOOP)
		v->fd = openat(v->dir, v->name, O_RDONLY | flags);
	if (v->fd < 0)
		return errno == ENXIO ? -ENOMSG : -errno; /* a socket */
	if (fstat(v->fd, &v->st) < 0)
		return -errno;
	return S_ISREG(v->st.st_mode) ? 0 : -ENOMSG;
}

static int copy_header(struct tft_view *v)
{
	struct tft_journal *j = &v->header;
	size_t n = v->st.st_size < (off_t)sizeof(*j) ? (size_t)v->st.st_size : sizeof(*j);
	int code = tft_pread(v->fd, j, n, 0);

	j->boot_id[sizeof(j->boot_id) - 1] = j->host[sizeof(j->host) - 1] = '\0';
	j->comm[sizeof(j->comm) - 1] = j->run_dir[sizeof(j->run_dir) - 1] = '\0';
	j->prefix[sizeof(j->prefix) - 1] = '\0';
	return code == -EBADMSG ? -ENOMSG : code;
}

static int check_header(const struct tft_view *v, struct tfh_err *err)
{
	const struct tft_journal *j = &v->header;

	if (j->magic == TFT_JOURNAL_SETUP_MAGIC ||
	    (j->magic == 0 && v->st.st_size >= TFT_JOURNAL_HEADER))
		return tfh_err_set(err, -EAGAIN, "%s: a journal that is not fully set up", v->path);
	if (j->magic != TFT_JOURNAL_MAGIC || v->st.st_size < TFT_JOURNAL_HEADER)
		return tfh_err_set(err, -ENOMSG, "%s: not a tfhook journal", v->path);
	if (j->version > TFT_JOURNAL_VERSION)
		return tfh_err_set(err, -EPROTO,
				   "%s: a journal of version %u, this tfhook reads versions up to "
				   "%u: use a newer tfhook",
				   v->path, j->version, TFT_JOURNAL_VERSION);
	if (!j->version || j->header_bytes != TFT_JOURNAL_HEADER)
		return tfh_err_set(err, -ENOMSG, "%s: not a tfhook journal", v->path);
	return 0;
}

int tft_view_open_at(int dir, const char *path, struct tft_view **out, struct tfh_err *err)
{
	struct tft_view *v = calloc(1, sizeof(*v));

	*out = NULL;
	if (!v || !(v->path = strdup(path))) {
		free(v);
		if (dir >= 0)
			close(dir);
		return tfh_err_set(err, -ENOMEM, "%s: not enough memory", path);
	}
	v->name = tfh_file_of(v->path);
	v->dir = dir;
	v->fd = -1;
	int code = dir < 0 ? dir : open_file(v);
	if (code == 0)
		code = copy_header(v);
	if (code == -ENOMSG)
		tfh_err_set(err, code, "%s: not a tfhook journal", path);
	else if (code == -ELOOP)
		tfh_err_set(err, code, "%s: a symbolic link; name the journal itself", path);
	else if (code < 0)
		tfh_err_set(err, code, "%s: %s", path, strerror(-code));
	else
		code = check_header(v, err);
	if (code < 0 && code != -EAGAIN) {
		tft_view_close(v);
		return code;
	}
	*out = v;
	return code;
}

int tft_view_open(const char *path, struct tft_view **out, struct tfh_err *err)
{
	const char *slash = strrchr(path, '/');
	char *parent = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int dir = parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	int code = tft_view_open_at(dir < 0 ? -errno : dir, path, out, err);

	free(parent);
	if (code < 0) {
		tft_view_close(*out);
		*out = NULL;
	}
	return code;
}

void tft_view_close(struct tft_view *v)
{
	if (!v)
		return;
	if (v->fd >= 0)
		close(v->fd);
	if (v->dir >= 0)
		close(v->dir);
	free(v->path);
	free(v);
}

/* ---- queries ---- */

const struct tft_journal *tft_view_header(const struct tft_view *v)
{
	return &v->header;
}

const char *tft_view_path(const struct tft_view *v)
{
	return v->path;
}

const struct stat *tft_view_stat(const struct tft_view *v)
{
	return &v->st;
}

int tft_view_read(const struct tft_view *v, void *to, size_t len, uint64_t offset)
{
	return offset > INT64_MAX - len ? -EBADMSG : tft_pread(v->fd, to, len, offset);
}

uint64_t tft_view_size(const struct tft_view *v)
{
	struct stat st;

	return fstat(v->fd, &st) < 0 ? 0 : (uint64_t)st.st_size;
}

int tft_view_fd(const struct tft_view *v)
{
	return v->fd;
}

/* ---- is the owner alive? ---- */

/* Detects either kind of lock on byte 0, including this process's own. */
static bool locked(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	int rc = fcntl(fd, F_OFD_GETLK, &lock);

	if (rc && errno == EINVAL) /* kernels before 3.15 */
		rc = fcntl(fd, F_GETLK, &lock);
	return !rc && lock.l_type != F_UNLCK;
}

enum tft_life tft_view_life(const struct tft_view *v)
{
	const struct tft_journal *j = &v->header;
	uint64_t beat = 0, pids = tfh_namespace("pid");
	char boot[64];

	tfh_read_small("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	boot[strcspn(boot, "\n")] = '\0';
	if (strncmp(boot, j->boot_id, sizeof(j->boot_id)) != 0)
		return TFT_ELSEWHERE;
	if (j->flags & TFT_JF_LOCKED)
		return locked(v->fd) ? TFT_ALIVE : TFT_DEAD;
	/* Process ids of another pid namespace mean nothing here; the heartbeat then decides. */
	if ((!j->pid_ns || j->pid_ns == pids) &&
	    tfh_process_start((pid_t)j->pid) == j->process_start)
		return TFT_ALIVE;
	if (tft_view_read(v, &beat, sizeof(beat), offsetof(struct tft_journal, heartbeat_ns)))
		return TFT_DEAD;
	uint64_t now = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	return now > beat && now - beat < HEARTBEAT_LIMIT_NS ? TFT_ALIVE : TFT_DEAD;
}

/* ---- removing it ---- */

int tft_view_remove(const struct tft_view *v)
{
	struct stat st;

	if (fstatat(v->dir, v->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (st.st_dev != v->st.st_dev || st.st_ino != v->st.st_ino)
		return -ESTALE;
	return unlinkat(v->dir, v->name, 0) < 0 ? -errno : 0;
}

bool tft_view_sweep(const struct tft_view *v)
{
	uint64_t magic = 0;
	struct stat st;

	/* A new journal without a lock may be about to get one. */
	if (fstat(v->fd, &st) || st.st_uid != geteuid() || st.st_nlink != 1 || locked(v->fd) ||
	    time(NULL) - st.st_mtime <= (time_t)(HEARTBEAT_LIMIT_NS / 1000000000))
		return false;
	return !tft_view_read(v, &magic, sizeof(magic), 0) && magic == TFT_JOURNAL_SETUP_MAGIC &&
	       !tft_view_remove(v);
}

/* ---- control ---- */

static sigjmp_buf cut_off;

static void on_bus(int signal)
{
	(void)signal;
	siglongjmp(cut_off, 1);
}

struct change {
	uint32_t set, clear, upper;
	bool at; /* the step, too */
	uint64_t step, count;
};

/* The file's owner may truncate it while it is mapped; the resulting SIGBUS becomes an error
 * here. */
static int change_head(struct tft_journal *head, const struct change *c)
{
	struct sigaction action = {.sa_handler = on_bus}, before;
	uint64_t old, new;
	int code = 0;

	sigaction(SIGBUS, &action, &before);
	if (!sigsetjmp(cut_off, 1)) {
		if (c->at) {
			__atomic_store_n(&head->at_count, c->count, __ATOMIC_RELAXED);
			__atomic_store_n(&head->at_answer, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&head->at_step, c->step, __ATOMIC_RELEASE);
		}
		old = __atomic_load_n(&head->control, __ATOMIC_RELAXED);
		do {
			new = (old & ~(uint64_t)c->clear) | c->set;
			if (c->upper)
				new = (new &UINT32_MAX) | (uint64_t)c->upper << 32;
		} while (!__atomic_compare_exchange_n(&head->control, &old, new, false,
						      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	} else {
		code = -EBADMSG;
	}
	sigaction(SIGBUS, &before, NULL);
	return code;
}

static int change(const struct tft_view *v, const struct change *c, struct tfh_err *err)
{
	struct stat st;
	int code = v->writable ? 0 : -EACCES;

	if (code == 0 && fstat(v->fd, &st) < 0)
		code = -errno;
	if (code == 0 && st.st_nlink != 1)
		code = -EMLINK;
	if (code == 0) {
		void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
		if (p == MAP_FAILED)
			code = -errno;
		else
			code = change_head(p, c);
		if (p != MAP_FAILED)
			munmap(p, 4096);
	}
	if (code < 0)
		tfh_err_set(err, code, "%s: cannot be controlled: %s", v->path, strerror(-code));
	return code;
}

int tft_view_set_control(const struct tft_view *v, uint32_t set, uint32_t clear, uint32_t upper,
			 struct tfh_err *err)
{
	return change(v, &(struct change){.set = set, .clear = clear, .upper = upper}, err);
}

int tft_view_set_gpu(const struct tft_view *v, uint32_t set, uint32_t clear, uint32_t upper,
		     uint64_t at_step, uint64_t at_count, struct tfh_err *err)
{
	return change(v, &(struct change){set, clear, upper, true, at_step, at_count}, err);
}
