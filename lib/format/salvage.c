/*
 * Writes what a journal still holds as one more segment. Reads rings before staging and staging
 * before segments, the direction in which records move, so that each record of a running process is
 * found at least once; numbers identify duplicates.
 */
#include "format/journal_view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "format/head.h"
#include "format/journal_copy.h"
#include "format/pieces.h"
#include "format/reader.h"
#include "format/tft_write.h"

#define NOTE_BEGIN "salvaged.journal="
#define LOCK_NAP_MS 20
/* limit on waiting for a salvage's lock: a salvage takes less than a second, on a busy machine a
 * few */
#define LOCK_MOST_MS 5000

struct salvage {
	struct tft_view *view;
	struct tft_journal_copy copy;
	const char *out_dir, *run_dir, *prefix; /* NUL-terminated copies of the journal's texts */
	unsigned flags;
	bool done_before;   /* an earlier salvage wrote open calls and losses */
	uint64_t last_loss; /* mark of the newest LOSS chunk in any segment */
	uint32_t next_segment;
	uint64_t end_ticks; /* when the process was last known to be alive */
	struct tft_pieces held, known, missing;
	struct tfh_rec **copies; /* copies of records, to which the pieces point */
	uint32_t n_copies, copies_cap;
	struct tfh_arena arena;
	struct tft_head head;
	struct tft_salvaged *result;
};

/* ---- contents of the journal ---- */

static struct tfh_rec *new_copy(struct salvage *s, uint64_t records)
{
	if (s->n_copies == s->copies_cap) {
		uint32_t cap = s->copies_cap ? s->copies_cap * 2 : 64;
		struct tfh_rec **grown = realloc(s->copies, cap * sizeof(*grown));
		if (!grown)
			return NULL;
		s->copies = grown;
		s->copies_cap = cap;
	}
	struct tfh_rec *copy = malloc((records ? records : 1) * sizeof(*copy));
	if (copy)
		s->copies[s->n_copies++] = copy;
	return copy;
}

/* Adds copied records, except those whose own number does not match their position. */
static int hold(struct salvage *s, struct tft_piece p)
{
	uint32_t start = 0;

	for (uint32_t i = 0; i <= p.count; i++) {
		bool sound = i < p.count && p.records[i].seq == (uint32_t)(p.first + i) &&
			     p.records[i].kind;
		if (sound)
			continue;
		struct tft_piece part = p;
		part.first += start;
		part.records += start;
		part.count = i - start;
		if (tft_pieces_add(&s->held, part) < 0)
			return -ENOMEM;
		start = i + 1;
		s->result->torn += i < p.count;
	}
	return 0;
}

static int hold_ring(struct salvage *s, const struct tft_ring_copy *r)
{
	return hold(s, (struct tft_piece){.first = r->first,
					  .thread = r->ring.thread,
					  .tid = r->ring.tid,
					  .count = r->n,
					  .records = r->records});
}

static int hold_batch(struct salvage *s, const struct tft_staged *b)
{
	return hold(s, (struct tft_piece){.first = b->first,
					  .thread = b->thread,
					  .tid = b->tid,
					  .count = b->count,
					  .records = s->copy.staged + b->offset});
}

/* Makes records, with the next numbers, of the sums of short calls that were not published yet. */
static int hold_sums(struct salvage *s, const struct tft_ring *ring)
{
	uint64_t number = ring->head;
	struct tfh_rec *copy = new_copy(s, TFT_AGG_SLOTS);
	uint16_t fn = 0;
	uint32_t n = 0;

	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->head.fn_count && !fn; i++)
		if (s->head.fn[i].family == TFH_FAM_STAGE)
			fn = (uint16_t)i;
	for (uint32_t i = 0; i < TFT_AGG_SLOTS; i++) {
		const struct tft_agg_slot *slot = &ring->agg[i];
		if (!slot->stage || !slot->n)
			continue;
		copy[n] = (struct tfh_rec){.t_begin = slot->t_first,
					   .t_end = slot->t_last,
					   .fn = fn,
					   .kind = TFT_AGG,
					   .seq = (uint32_t)(number + n),
					   .stream = slot->stage,
					   .ctx = slot->n,
					   .w = {slot->total, slot->self, slot->max}};
		n++;
	}
	return hold(s, (struct tft_piece){number, ring->thread, ring->tid, n, copy});
}

static void hold_open(struct salvage *s, const struct tft_ring *ring, struct tfh_rec *open,
		      uint32_t *n)
{
	for (uint32_t i = 0; i < TFT_OPEN_SLOTS; i++) {
		const struct tft_open_slot *slot = &ring->open[i];
		if (!slot->fn || *n == TFT_MAX_EVENTS)
			continue;
		uint64_t end =
			(int64_t)(s->end_ticks - slot->t_begin) < 0 ? slot->t_begin : s->end_ticks;
		open[*n] = (struct tfh_rec){.t_begin = slot->t_begin,
					    .t_end = end,
					    .fn = slot->fn,
					    .kind = TFT_OPEN,
					    .depth = (uint8_t)i,
					    .seq = *n,
					    .stream = slot->stage,
					    .ctx = ring->thread,
					    .w = {slot->arg, ring->tid, 0}};
		++*n;
	}
}

static int hold_in_flight(struct salvage *s)
{
	struct tfh_rec *open = new_copy(s, TFT_MAX_EVENTS);
	int code = open ? 0 : -ENOMEM;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->copy.n_rings && code == 0; i++) {
		const struct tft_ring *ring = &s->copy.ring[i]->ring;
		if (ring->state != TFT_RING_ACTIVE)
			continue;
		/* a running thread will publish its sums itself */
		if (!(s->flags & TFT_SALVAGE_SNAPSHOT))
			code = hold_sums(s, ring);
		hold_open(s, ring, open, &n);
	}
	s->result->open = n;
	if (code == 0)
		code = hold(s, (struct tft_piece){0, TFT_THREAD_SALVAGE, 0, n, open});
	return code;
}

static int hold_all(struct salvage *s)
{
	int code = 0;

	s->result->torn = s->copy.torn;
	for (uint32_t i = 0; i < s->copy.n_rings && code == 0; i++)
		code = hold_ring(s, s->copy.ring[i]);
	for (uint32_t i = 0; i < s->copy.n_batches && code == 0; i++)
		code = hold_batch(s, &s->copy.batch[i]);
	if (code == 0)
		code = hold_in_flight(s);
	tft_pieces_normalise(&s->held);
	return code;
}

/* ---- contents of existing segments ---- */

/* Notes the record numbers in a chunk that the journal also holds. An unreadable chunk does not
 * count. */
static int know_chunk(struct salvage *s, struct tft_reader *r, uint32_t chunk)
{
	const struct tft_run *runs;
	const void *data;
	size_t len;
	uint32_t n, met = 0;

	if (tft_chunk_runs(r, chunk, &runs, &n, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		met += (uint32_t)tft_pieces_overlap(&s->held, runs[i].thread, runs[i].first,
						    runs[i].count);
	if (!met || tft_chunk_raw(r, chunk, true, &data, &len, NULL) < 0)
		return 0;
	/* the run table has its own memory */
	for (uint32_t i = 0; i < n; i++) {
		struct tft_piece p = {runs[i].first, runs[i].thread, runs[i].tid, runs[i].count,
				      NULL};
		if (tft_pieces_add(&s->known, p) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Whether two heads are of the same process. The file's name alone is not enough: a process of a
 * restarted container may have the host name and pid of a dead predecessor. */
static bool same_process(const struct tft_head *a, const struct tft_head *b)
{
	return a->pid == b->pid && a->journal_start == b->journal_start &&
	       a->start_ticks == b->start_ticks && a->start_realtime_ns == b->start_realtime_ns &&
	       !strcmp(a->boot_id, b->boot_id);
}

static int know_segment(struct salvage *s, const char *path, uint32_t number)
{
	struct tft_reader *r;
	int code = 0;

	/* an unreadable segment adds nothing */
	if (tft_open(path, &r, NULL) < 0)
		return 0;
	if (!same_process(tft_head(r), &s->head)) {
		tft_close(r);
		return 0;
	}
	for (uint32_t i = 0; i < tft_chunk_count(r) && code == 0; i++) {
		uint32_t type = tft_chunk(r, i)->type;
		const void *data;
		size_t len;
		if (type == TFT_EVNT || type == TFT_DGST)
			code = know_chunk(s, r, i);
		else if (type == TFT_LOSS &&
			 tft_loss_mark(number, tft_chunk(r, i)->offset) > s->last_loss)
			s->last_loss = tft_loss_mark(number, tft_chunk(r, i)->offset);
		else if (type == TFT_NOTE && tft_chunk_payload(r, i, &data, &len, NULL) == 0 &&
			 len >= strlen(NOTE_BEGIN) &&
			 memcmp(data, NOTE_BEGIN, strlen(NOTE_BEGIN)) == 0)
			s->done_before = true;
	}
	tft_close(r);
	return code;
}

static int know_dir(struct salvage *s, const char *dir)
{
	size_t prefix = strlen(s->prefix);
	DIR *d = opendir(dir);
	struct dirent *e;
	int code = 0;

	if (!d)
		return 0;
	while (code == 0 && (e = readdir(d))) {
		char path[8192], *end;
		if (strncmp(e->d_name, s->prefix, prefix) != 0 || e->d_name[prefix] != '.')
			continue;
		unsigned long number = strtoul(e->d_name + prefix + 1, &end, 10);
		if (strcmp(end, ".tft") != 0 || number >= UINT32_MAX)
			continue;
		if (number >= s->next_segment)
			s->next_segment = (uint32_t)number + 1;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		code = know_segment(s, path, (uint32_t)number);
	}
	closedir(d);
	return code;
}

/* ---- the new segment ---- */

static void load_head(struct salvage *s)
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
static uint64_t last_sign(const struct salvage *s)
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

/* Number of losses already written. If the process was killed between writing a LOSS chunk and
 * noting it, the chunk itself is the evidence. */
static uint64_t losses_seen(const struct salvage *s, uint64_t seen, uint64_t writing, uint64_t mark)
{
	return writing > seen && mark <= s->last_loss ? writing : seen;
}

static uint64_t ring_losses(const struct salvage *s, const struct tft_ring *ring)
{
	uint64_t seen = losses_seen(s, ring->drop_seen, ring->drop_writing, ring->drop_mark);

	return ring->dropped > seen ? ring->dropped - seen : 0;
}

static uint64_t beyond_losses(const struct salvage *s)
{
	const struct tft_journal *j = &s->copy.header;
	uint64_t seen = losses_seen(s, j->beyond_seen, j->beyond_writing, j->beyond_mark);

	return j->beyond > seen ? j->beyond - seen : 0;
}

/* Records may all be written where the process was killed before it wrote what it had lost. */
static bool any_losses(const struct salvage *s)
{
	bool any = beyond_losses(s) > 0;

	for (uint32_t i = 0; i < s->copy.n_rings && !any; i++)
		any = ring_losses(s, &s->copy.ring[i]->ring) > 0;
	return any && !s->done_before;
}

static int write_loss(struct salvage *s, struct tft_writer *w, struct tft_loss loss,
		      uint64_t *dropped)
{
	*dropped += loss.count;
	return s->done_before ? 0 : tft_write_loss(w, &loss, 1, *dropped);
}

static int write_losses(struct salvage *s, struct tft_writer *w, uint64_t *dropped)
{
	const struct tft_journal *j = &s->copy.header;
	uint64_t n = beyond_losses(s);
	int code = 0;

	if (n)
		code = write_loss(s, w,
				  (struct tft_loss){.cause = TFT_LOSS_THREAD,
						    .count = n,
						    .t_first = j->beyond_first,
						    .t_last = j->beyond_last},
				  dropped);
	for (uint32_t i = 0; i < s->copy.n_rings && code == 0; i++) {
		const struct tft_ring *ring = &s->copy.ring[i]->ring;
		n = ring_losses(s, ring);
		if (n)
			code = write_loss(s, w,
					  (struct tft_loss){.thread = ring->thread,
							    .cause = TFT_LOSS_RING,
							    .count = n,
							    .t_first = ring->drop_first,
							    .t_last = ring->drop_last
									      ? ring->drop_last
									      : ring->drop_first},
					  dropped);
	}
	return code;
}

static int write_missing(struct salvage *s, struct tft_writer *w, uint64_t dropped)
{
	struct tft_batch *batch = malloc((s->missing.n + 1) * sizeof(*batch));
	uint32_t n = 0, records = 0;
	int code = batch ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->missing.n && code == 0;) {
		struct tft_piece *p = &s->missing.v[i];
		uint32_t take =
			p->count < TFT_MAX_EVENTS - records ? p->count : TFT_MAX_EVENTS - records;
		batch[n++] = (struct tft_batch){p->records, take, p->thread, p->tid, p->first};
		records += take;
		p->records += take;
		p->first += take;
		p->count -= take;
		if (p->count == 0)
			i++;
		if (records == TFT_MAX_EVENTS || i == s->missing.n) {
			code = tft_write_events(w, batch, n, dropped);
			s->result->records += records;
			n = records = 0;
		}
	}
	free(batch);
	return code;
}

static int write_parts(struct salvage *s, struct tft_writer *w, const char *journal)
{
	const struct tft_journal *j = &s->copy.header;
	struct tft_clock_triple clocks[3] = {j->start, j->clock[0], j->clock[1]};
	uint32_t n_clocks = j->clock_n < 2 ? 1 + j->clock_n : 3;
	uint64_t dropped = j->dropped;
	char note[8192];

	int code = tft_write_clocks(w, clocks, n_clocks);
	int len = snprintf(note, sizeof(note),
			   NOTE_BEGIN "%s\nsalvaged.open=%u\nsalvaged.torn=%llu\n", journal,
			   s->result->open, (unsigned long long)s->result->torn);
	if (code == 0 && len > 0 && (size_t)len < sizeof(note))
		code = tft_write_chunk(w, TFT_NOTE, note, (uint32_t)len);
	if (code == 0)
		code = write_losses(s, w, &dropped);
	return code == 0 ? write_missing(s, w, dropped) : code;
}

static int write_segment(struct salvage *s, const char *journal, struct tfh_err *err)
{
	struct tfh_access access = tfh_access_like(tft_view_stat(s->view));
	struct tft_salvaged *result = s->result;
	struct tft_writer *w;
	int code;

	do {
		s->head.segment = s->next_segment;
		snprintf(result->path, sizeof(result->path), "%s/%s.%u.tft", s->out_dir, s->prefix,
			 s->next_segment++);
		code = tft_writer_create(result->path, &access, &s->head, &w);
	} while (code == -EEXIST && s->next_segment < UINT32_MAX);
	if (code < 0)
		return tfh_err_set(err, code, "%s: cannot be created: %s", result->path,
				   strerror(-code));
	code = write_parts(s, w, journal);
	int end = tft_writer_finish(w, false);
	if (code == 0)
		code = end;
	if (code < 0) {
		unlink(result->path);
		return tfh_err_set(err, code, "%s: writing failed: %s; the journal %s is kept",
				   result->path, strerror(-code), journal);
	}
	return 0;
}

/* ---- writing the segment ---- */

/* Whether a journal may be written to the directory that it names: only the user's own may. */
static int may_write(const struct salvage *s, const char *path, struct tfh_err *err)
{
	uid_t owner = tft_view_stat(s->view)->st_uid;

	if (owner == geteuid() || (s->out_dir && !(s->flags & TFT_SALVAGE_UNLINK)))
		return 0;
	return tfh_err_set(err, -EPERM,
			   "%s: belongs to user %u; let that user repair it, or name a directory "
			   "for the result: tfhook repair %s -o DIR",
			   path, (unsigned)owner, path);
}

static int may_salvage(const struct salvage *s, const char *path, struct tfh_err *err)
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
	static int waited_ms; /* ms in total over all journals, since somebody may hold many
			       * locks */

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

static int run(struct salvage *s, const char *path, struct tfh_err *err)
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
	if (s->flags & TFT_SALVAGE_SNAPSHOT && strcmp(s->out_dir, s->run_dir) == 0)
		return tfh_err_set(err, -EINVAL, "%s: a snapshot needs a separate directory", path);
	load_head(s);
	s->end_ticks = last_sign(s);
	int code = hold_all(s);
	if (code == 0)
		code = know_dir(s, s->out_dir);
	if (code == 0 && strcmp(s->out_dir, s->run_dir) != 0)
		code = know_dir(s, s->run_dir);
	tft_pieces_normalise(&s->known);
	if (code == 0)
		code = tft_pieces_minus(&s->held, &s->known, &s->missing);
	if (code < 0)
		return tfh_err_set(err, code, "%s: not enough memory to salvage it", path);
	for (uint32_t i = 0; i < s->held.n; i++)
		s->result->known += s->held.v[i].count;
	for (uint32_t i = 0; i < s->missing.n; i++)
		s->result->known -= s->missing.v[i].count;
	return s->missing.n || any_losses(s) ? write_segment(s, path, err) : 0;
}

int tft_salvage_view(struct tft_view *view, const char *out_dir, unsigned flags,
		     struct tft_salvaged *result, struct tfh_err *err)
{
	struct salvage s = {.view = view, .flags = flags, .out_dir = out_dir, .result = result};
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
