#include "top/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "format/head.h"
#include "format/tft_write.h"
#include "format/writer.h"
#include "top/follow_part.h"

#define HEAD_ARENA (16u << 20)

int tfh_follow_new(const char *dir, const char *prefix, uint32_t newest, const char *journal,
		   struct tfh_follow **out)
{
	struct tfh_follow *f = calloc(1, sizeof(*f));
	int rc = f ? 0 : -ENOMEM;

	*out = NULL;
	if (f) {
		snprintf(f->dir, sizeof(f->dir), "%s", dir);
		snprintf(f->prefix, sizeof(f->prefix), "%s", prefix);
		f->segment = newest;
		f->piece_end = &f->piece;
		f->kept_end = &f->kept;
		tfh_arena_init(&f->arena, HEAD_ARENA);
		tft_head_clear(&f->head);
		rc = journal ? tft_view_open(journal, &f->view, NULL) : 0;
	}
	if (!rc && f->view)
		f->journal = *tft_view_header(f->view);
	else if (!rc)
		rc = tfh_follow_head(f, &f->written);
	if (rc) {
		tfh_follow_free(f);
		return rc;
	}
	*out = f;
	return 0;
}

void tfh_follow_free(struct tfh_follow *f)
{
	if (!f)
		return;
	tft_view_close(f->view);
	tfh_follow_window_free(f);
	tfh_arena_free(&f->arena);
	free(f);
}

const char *tfh_follow_prefix(const struct tfh_follow *f)
{
	return f->prefix;
}

double tfh_follow_silent(const struct tfh_follow *f)
{
	double since =
		(double)(tfh_clock_ns(CLOCK_REALTIME) - (int64_t)f->head.start_realtime_ns) / 1e9;

	if (!f->has_head || f->view)
		return 0;
	if (f->written > f->head.start_ticks)
		since -= (double)(f->written - f->head.start_ticks) / tfh_follow_hz(f);
	return since;
}

/* ---- journal ---- */

/* The journal has HEAD before any file does, including a rank that became known late. */
static void take_head(struct tfh_follow *f, const struct tft_journal_copy *c)
{
	if (f->has_head || !c->head)
		return;
	f->has_head = !tft_head_unpack(&f->head, &f->arena, c->head, c->head_bytes);
	f->live.fn = f->head.fn;
	f->live.n_fn = f->head.fn_count;
}

/* Copies the journal. False: there is no journal any more, because its process has ended. */
static bool copy_journal(struct tfh_follow *f, bool records, struct tft_journal_copy *c)
{
	memset(c, 0, sizeof(*c));
	if (!f->view)
		return false;
	int rc = records ? tft_journal_copy(f->view, c) : tft_journal_calls(f->view, c);
	if (!rc) {
		f->journal = c->header;
		take_head(f, c);
	}
	if (rc || c->header.state == TFT_JOURNAL_FINISHED || tft_view_life(f->view) == TFT_DEAD) {
		tft_view_close(f->view); /* its memory goes with the last descriptor */
		f->view = NULL;
	}
	return !rc;
}

static void add_call(const struct tfh_follow *f, const struct tft_ring *ring, uint64_t now,
		     struct tfh_follow_state *s)
{
	const struct tft_open_slot *slot = &ring->open[0];
	struct tfh_follow_call *call = &s->call[s->n_call];

	if (ring->state != TFT_RING_ACTIVE || !slot->fn || slot->fn >= f->head.fn_count ||
	    s->n_call == TFH_FOLLOW_CALLS)
		return;
	*call = (struct tfh_follow_call){.tid = ring->tid, .fn = f->head.fn[slot->fn].name};
	if (now > slot->t_begin)
		call->since_s = (double)(now - slot->t_begin) / tfh_follow_hz(f);
	snprintf(call->name, sizeof(call->name), "%.63s", ring->name);
	s->n_call++;
}

static void fill_state(const struct tfh_follow *f, const struct tft_journal_copy *c,
		       struct tfh_follow_state *s)
{
	const struct tft_journal *j = &f->journal;
	uint64_t now = tfh_follow_now(f), now_ns = tfh_follow_ns();
	int64_t real_ns = tfh_clock_ns(CLOCK_REALTIME) - (int64_t)f->head.start_realtime_ns;

	s->host = f->has_head ? f->head.host : j->host;
	s->pid = f->has_head ? f->head.pid : j->pid;
	s->rank = f->has_head ? f->head.rank : -1;
	s->alive = f->view;
	s->steps = j->steps;
	s->dropped = j->dropped;
	for (uint32_t i = 0; i < c->n_rings; i++) {
		const struct tft_ring *ring = &c->ring[i]->ring;
		s->dropped += ring->dropped > ring->drop_seen ? ring->dropped - ring->drop_seen : 0;
		add_call(f, ring, now, s);
	}
	s->dropped += j->beyond > j->beyond_seen ? j->beyond - j->beyond_seen : 0;
	if (j->paused_ns && now_ns > j->paused_ns)
		s->paused_s = (double)(now_ns - j->paused_ns) / 1e9;
	s->recorder_s = (double)j->flusher_cpu_ns / 1e9;
	if (!j->start.monotonic_ns) /* no journal was here */
		s->age_s = f->has_head && real_ns > 0 ? (double)real_ns / 1e9 : 0;
	else if (now_ns > j->start.monotonic_ns)
		s->age_s = (double)(now_ns - j->start.monotonic_ns) / 1e9;
}

void tfh_follow_poll(struct tfh_follow *f, struct tfh_follow_state *s)
{
	struct tft_journal_copy c;

	memset(s, 0, sizeof(*s));
	copy_journal(f, false, &c);
	fill_state(f, &c, s);
	tft_journal_copy_free(&c);
}

/* ---- records ---- */

static int by_number(const void *a, const void *b)
{
	const struct tft_ring_copy *x = *(struct tft_ring_copy *const *)a;
	const struct tft_ring_copy *y = *(struct tft_ring_copy *const *)b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/* Takes the records that are in the journal but not yet in files. A thread that got a larger ring
 * has two rings, whose record numbers follow each other. */
static int take_journal(struct tfh_follow *f, const struct tft_journal_copy *c)
{
	int rc = 0;

	for (uint32_t i = 0; i < c->n_batches && !rc; i++)
		rc = tfh_follow_take(f, c->batch[i].thread, c->batch[i].tid, c->batch[i].first,
				     c->staged + c->batch[i].offset, c->batch[i].count);
	if (c->n_rings)
		qsort(c->ring, c->n_rings, sizeof(struct tft_ring_copy *), by_number);
	for (uint32_t i = 0; i < c->n_rings && !rc; i++)
		rc = tfh_follow_take(f, c->ring[i]->ring.thread, c->ring[i]->ring.tid,
				     c->ring[i]->first, c->ring[i]->records, c->ring[i]->n);
	return rc;
}

int tfh_follow_read(struct tfh_follow *f, double seconds)
{
	struct tft_journal_copy c;

	/* Records move from the journal to the files, so reading the journal first misses none. */
	bool journal = copy_journal(f, true, &c);
	int rc = tfh_follow_files(f, seconds);
	if (!rc && journal)
		rc = take_journal(f, &c);
	tft_journal_copy_free(&c);
	if (!rc)
		tfh_follow_forget(f, (uint64_t)(seconds * tfh_follow_hz(f)));
	return rc;
}

/* ---- writing the records as a segment ---- */

static int write_clocks(const struct tfh_follow *f, struct tft_writer *w)
{
	const struct tft_journal *j = &f->journal;
	struct tft_clock_triple t[3] = {j->start};
	uint32_t n = j->start.ticks != 0;

	/* The older one first. */
	for (uint32_t i = 0; i < 2 && i < j->clock_n; i++)
		t[n++] = j->clock[(j->clock_n + i) & 1];
	if (j->clock_n == 1)
		t[n - 1] = j->clock[0];
	return tft_write_clocks(w, t, n);
}

static int write_live(const struct tfh_follow *f, struct tft_writer *w)
{
	struct tfh_rec *room = malloc(TFT_MAX_EVENTS * sizeof(*room));
	uint64_t at = 0, number = 0;
	int rc = room ? 0 : -ENOMEM;
	uint32_t n;

	while (!rc && (n = tft_live_copy(&f->live, &at, room, TFT_MAX_EVENTS)) > 0) {
		struct tft_batch b = {.records = room, .count = n, .first = number};
		for (uint32_t i = 0; i < n; i++)
			room[i].seq = (uint32_t)(number + i);
		number += n;
		rc = tft_write_events(w, &b, 1, 0);
	}
	free(room);
	return rc;
}

static int write_records(const struct tfh_follow *f, struct tft_writer *w)
{
	struct tft_batch batch[256];
	uint32_t n = 0, records = 0;
	int rc = 0;

	for (const struct tfh_follow_piece *p = f->piece; p && !rc;) {
		uint32_t count = p->n - p->from;
		bool fits = n < 256 && records + count <= TFT_MAX_EVENTS;
		if (fits) {
			batch[n++] = (struct tft_batch){.records = p->rec + p->from,
							.count = count,
							.thread = p->thread,
							.tid = p->tid,
							.first = p->first + p->from};
			records += count;
			p = p->next;
		}
		if (n && (!fits || !p)) {
			rc = tft_write_events(w, batch, n, 0);
			n = records = 0;
		}
	}
	return rc;
}

/* Calls in flight, as salvage writes them. */
static int write_calls(struct tfh_follow *f, struct tft_writer *w)
{
	uint64_t now = tfh_follow_now(f);
	struct tfh_rec open[TFH_FOLLOW_CALLS];
	struct tft_journal_copy c;
	uint32_t n = 0;

	copy_journal(f, false, &c);
	for (uint32_t i = 0; i < c.n_rings; i++) {
		const struct tft_ring *ring = &c.ring[i]->ring;
		const struct tft_open_slot *slot = &ring->open[0];
		if (ring->state != TFT_RING_ACTIVE || !slot->fn || n == TFH_FOLLOW_CALLS)
			continue;
		open[n] = (struct tfh_rec){.t_begin = slot->t_begin,
					   .t_end = now > slot->t_begin ? now : slot->t_begin,
					   .fn = slot->fn,
					   .kind = TFT_OPEN,
					   .seq = n,
					   .stream = slot->stage,
					   .ctx = ring->thread,
					   .w = {slot->arg, ring->tid, 0}};
		n++;
	}
	tft_journal_copy_free(&c);
	struct tft_batch b = {.records = open, .count = n, .thread = TFT_THREAD_SALVAGE};
	return n ? tft_write_events(w, &b, 1, 0) : 0;
}

static int write_all(struct tfh_follow *f, struct tft_writer *w)
{
	int rc = write_clocks(f, w);

	for (const struct tfh_follow_chunk *c = f->kept; c && !rc; c = c->next)
		rc = tft_write_raw(w, c->data, c->bytes);
	if (!rc)
		rc = write_live(f, w);
	if (!rc)
		rc = write_records(f, w);
	return rc ? rc : write_calls(f, w);
}

int tfh_follow_write(struct tfh_follow *f)
{
	struct tft_head head = f->head;
	struct tft_writer *w;

	if (!f->has_head || !f->records)
		return -ENODATA;
	int fd = (int)syscall(SYS_memfd_create, "tfhook", 1 /* MFD_CLOEXEC */);
	if (fd < 0)
		return -errno;
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (kept < 0) {
		int rc = -errno;
		close(fd);
		return rc;
	}
	head.segment = 0; /* missing earlier segments are no loss */
	int rc = tft_writer_on(fd, &head, &w);
	if (!rc) {
		rc = write_all(f, w);
		int end = tft_writer_finish(w, false);
		rc = rc ? rc : end;
	}
	if (rc)
		close(kept);
	return rc ? rc : kept;
}
