/*
 * Writes what a journal still holds as one more segment. It reads rings before staging and staging
 * before segments, the direction in which records move, so each record of a running process is
 * found at least once. Record numbers identify duplicates.
 */
#include "format/salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LOCK_NAP_MS 20
/* limit on waiting for a salvage's lock: a salvage takes less than a second, or a few on a busy
 * machine */
#define LOCK_MOST_MS 5000

static void load_head(struct tft_salvage *s)
{
	const struct tft_journal *j = &s->copy.header;

	if (s->copy.head &&
	    tft_head_unpack(&s->head, &s->arena, s->copy.head, s->copy.head_bytes) == 0)
		return;
	tft_head_clear(&s->head);
	s->head.pid = j->pid;
	s->head.ppid = j->ppid;
	s->head.rank = j->rank;
	s->head.host = j->host;
	s->head.boot_id = j->boot_id;
	s->head.exe = j->comm;
	s->head.start_realtime_ns = j->start.realtime_ns;
	s->head.start_ticks = j->start.ticks;
	s->head.tick_hz = j->tick_hz;
	s->head.ticks_are_ns = j->flags & TFT_JF_TICKS_ARE_NS;
	s->head.journal_start = j->process_start;
}

/* Ticks of the last sign of life: the heartbeat, or the current time for a snapshot. */
static uint64_t last_sign(const struct tft_salvage *s)
{
	const struct tft_journal *j = &s->copy.header;
	struct tft_clock_triple clock = tft_journal_clock(j);
	uint64_t hz = j->flags & TFT_JF_TICKS_ARE_NS ? 1000000000 : j->tick_hz;
	uint64_t beat = j->heartbeat_ns;

	if (s->flags & TFT_SALVAGE_SNAPSHOT)
		beat = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	if (beat <= clock.monotonic_ns)
		return clock.ticks;
	return clock.ticks + (uint64_t)((__uint128_t)(beat - clock.monotonic_ns) * hz / 1000000000);
}

/* Whether a journal may be written to the directory that it names: only the user's own may. */
static int may_write(const struct tft_salvage *s, const char *path, struct tfh_err *err)
{
	uid_t owner = tft_view_stat(s->view)->st_uid;

	if (owner == geteuid() || (s->out_dir && !(s->flags & TFT_SALVAGE_UNLINK)))
		return 0;
	return tfh_err_set(err, -EPERM,
			   "%s: belongs to user %u; let that user repair it, or name a directory "
			   "for the result: tfhook repair %s -o DIR",
			   path, (unsigned)owner, path);
}

static int may_salvage(const struct tft_salvage *s, const char *path, struct tfh_err *err)
{
	const struct tft_journal *j = tft_view_header(s->view);
	enum tft_life life = tft_view_life(s->view);
	char host[256] = "";

	if (s->flags & (TFT_SALVAGE_SNAPSHOT | TFT_SALVAGE_BESIDE) || life == TFT_DEAD)
		return 0;
	if (life == TFT_ALIVE)
		return tfh_err_set(err, -EBUSY,
				   "%s: process %u is still recording; `tfhook ctl` controls it",
				   path, j->pid);
	gethostname(host, sizeof(host) - 1);
	/* this host before its last boot, so the process is dead */
	if (strncmp(host, j->host, sizeof(j->host) - 1) == 0)
		return 0;
	return tfh_err_set(err, -EXDEV, "%s: belongs to host %.64s; run `tfhook repair` there",
			   path, j->host);
}

/* Locks byte 1 of the journal until the view is closed, so that of two concurrent salvages the
 * second one waits; otherwise both would write a segment. A read-only journal can be salvaged but
 * not removed, so it needs no lock. */
static int lock_salvage(const struct tft_view *v)
{
	const struct timespec nap = {0, LOCK_NAP_MS * 1000000};
	/* Ms in total over all journals, since somebody may hold many locks. */
	static int waited_ms;

	for (;;) {
		struct flock lock = {.l_type = F_WRLCK, .l_start = 1, .l_len = 1};
		int rc = fcntl(tft_view_fd(v), F_OFD_SETLK, &lock);
		if (rc && errno == EINVAL) /* kernels before 3.15 */
			rc = fcntl(tft_view_fd(v), F_SETLK, &lock);
		if (!rc || (errno != EACCES && errno != EAGAIN))
			return 0;
		if (waited_ms >= LOCK_MOST_MS)
			return -EALREADY;
		nanosleep(&nap, NULL);
		waited_ms += LOCK_NAP_MS;
	}
}

/* Whether a name may become part of a file name, which is displayed. */
static bool plain_name(const char *name)
{
	if (!*name || *name == '.')
		return false;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		if (*c < ' ' || *c == 0x7f || *c == '/')
			return false;
	return true;
}

static int run(struct tft_salvage *s, const char *path, struct tfh_err *err)
{
	const struct tft_journal *j = tft_view_header(s->view);
	const char *slash = strrchr(path, '/');

	s->run_dir = j->run_dir;
	if (s->flags & TFT_SALVAGE_BESIDE && slash)
		s->run_dir = tfh_arena_strndup(&s->arena, path, (size_t)(slash - path));
	if (!s->run_dir)
		return tfh_err_set(err, -ENOMEM, "%s: not enough memory to salvage it", path);
	s->prefix = j->prefix;
	if (!plain_name(s->prefix))
		return tfh_err_set(err, -EBADMSG, "%s: damaged: it names no segments", path);
	if (!s->out_dir)
		s->out_dir = s->run_dir;
	if (!*s->out_dir)
		return tfh_err_set(
			err, -EINVAL,
			"%s: its process had no run directory yet; name one for the result: tfhook "
			"repair %s -o DIR",
			path, path);
	if (s->flags & TFT_SALVAGE_SNAPSHOT && strcmp(s->out_dir, s->run_dir) == 0)
		return tfh_err_set(err, -EINVAL, "%s: a snapshot needs a separate directory", path);
	load_head(s);
	s->end_ticks = last_sign(s);
	int code = tft_salvage_hold(s);
	if (code == 0)
		code = tft_salvage_know(s, s->out_dir);
	if (code == 0 && strcmp(s->out_dir, s->run_dir) != 0)
		code = tft_salvage_know(s, s->run_dir);
	tft_pieces_normalise(&s->known);
	if (code == 0)
		code = tft_pieces_minus(&s->held, &s->known, &s->missing);
	if (code < 0)
		return tfh_err_set(err, code, "%s: not enough memory to salvage it", path);
	for (uint32_t i = 0; i < s->held.n; i++)
		s->result->known += s->held.v[i].count;
	for (uint32_t i = 0; i < s->missing.n; i++)
		s->result->known -= s->missing.v[i].count;
	return s->missing.n || tft_salvage_any_losses(s) ? tft_salvage_write(s, path, err) : 0;
}

int tft_salvage_view(struct tft_view *view, const char *out_dir, unsigned flags,
		     struct tft_salvaged *result, struct tfh_err *err)
{
	struct tft_salvage s = {.view = view, .flags = flags, .out_dir = out_dir, .result = result};
	const char *path = tft_view_path(view);

	memset(result, 0, sizeof(*result));
	tfh_arena_init(&s.arena, 64u << 20);
	int code = may_write(&s, path, err);
	if (code == 0)
		code = may_salvage(&s, path, err);
	if (code == 0 && !(flags & TFT_SALVAGE_SNAPSHOT) && lock_salvage(view) < 0)
		code = tfh_err_set(err, -EALREADY,
				   "%s: another process is salvaging it; try again later", path);
	if (code == 0) {
		code = tft_journal_copy(view, &s.copy);
		if (code < 0)
			tfh_err_set(err, code, "%s: reading failed: %s", path, strerror(-code));
	}
	if (code == 0 && s.copy.header.state == TFT_JOURNAL_RUNNING)
		code = run(&s, path, err);
	if (code == 0 && flags & TFT_SALVAGE_UNLINK) {
		int gone = tft_view_remove(view);
		if (gone < 0 && gone != -ENOENT)
			code = tfh_err_set(err, gone, "%s: salvaged, but cannot be removed: %s",
					   path, strerror(-gone));
	}
	for (uint32_t i = 0; i < s.n_copies; i++)
		free(s.copies[i]);
	free(s.copies);
	tft_journal_copy_free(&s.copy);
	tft_pieces_free(&s.held);
	tft_pieces_free(&s.known);
	tft_pieces_free(&s.missing);
	tfh_arena_free(&s.arena);
	return code;
}

int tft_salvage(const char *path, const char *out_dir, unsigned flags, struct tft_salvaged *result,
		struct tfh_err *err)
{
	struct tft_view *view;
	int code = tft_view_open(path, &view, err);

	memset(result, 0, sizeof(*result));
	if (code < 0)
		return code;
	code = tft_salvage_view(view, out_dir, flags, result, err);
	tft_view_close(view);
	return code;
}
