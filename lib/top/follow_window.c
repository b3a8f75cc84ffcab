/* The records of the last seconds, and the state before them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "top/follow_part.h"

#define PIECE 4096u		  /* records; if there are too many, whole pieces are dropped */
#define KEPT_BYTES (128ull << 20) /* of chunks without records */

static struct tfh_follow_thread *thread_of(struct tfh_follow *f, uint32_t thread)
{
	for (uint32_t i = 0; i < f->n_thread; i++)
		if (f->thread[i].thread == thread)
			return &f->thread[i];
	if (f->n_thread == f->cap_thread) {
		uint32_t cap = f->cap_thread ? 2 * f->cap_thread : 16;
		struct tfh_follow_thread *grown = realloc(f->thread, cap * sizeof(*grown));
		if (!grown)
			return NULL;
		f->thread = grown;
		f->cap_thread = cap;
	}
	f->thread[f->n_thread] = (struct tfh_follow_thread){.thread = thread};
	return &f->thread[f->n_thread++];
}

static int add_piece(struct tfh_follow *f, uint32_t thread, uint32_t tid, uint64_t first,
		     const struct tfh_rec *rec, uint32_t n)
{
	struct tfh_follow_piece *p = malloc(sizeof(*p) + n * sizeof(*rec));

	if (!p)
		return -ENOMEM;
	*p = (struct tfh_follow_piece){.first = first, .thread = thread, .tid = tid, .n = n};
	memcpy(p->rec, rec, n * sizeof(*rec));
	*f->piece_end = p;
	f->piece_end = &p->next;
	f->records += n;
	return 0;
}

/* How many records carry the expected numbers. A journal changes while it is read. */
static uint32_t sound(uint64_t first, const struct tfh_rec *rec, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && rec[i].kind && rec[i].seq == (uint32_t)(first + i))
		i++;
	return i;
}

int tfh_follow_take(struct tfh_follow *f, uint32_t thread, uint32_t tid, uint64_t first,
		    const struct tfh_rec *rec, uint32_t n)
{
	struct tfh_follow_thread *t = thread_of(f, thread);
	int rc = t ? 0 : -ENOMEM;

	if (t && t->next > first) {
		uint64_t known = t->next - first < n ? t->next - first : n;
		first += known;
		rec += known;
		n -= (uint32_t)known;
	}
	n = sound(first, rec, n);
	while (!rc && n) {
		uint32_t part = n < PIECE ? n : PIECE;
		while (part < n && rec[part].kind == TFT_EXT) /* a text stays in one piece */
			part++;
		rc = add_piece(f, thread, tid, first, rec, part);
		if (rc)
			break;
		if (rec[part - 1].t_end > f->last)
			f->last = rec[part - 1].t_end;
		first += part;
		rec += part;
		n -= part;
		t->next = first;
	}
	return rc;
}

void tfh_follow_repeated(struct tfh_follow *f, const struct tfh_rec *rec, uint32_t n)
{
	tft_live_see(&f->live, 0, rec, n);
}

int tfh_follow_keep(struct tfh_follow *f, uint64_t t_last, const void *data, size_t bytes)
{
	struct tfh_follow_chunk *c = malloc(sizeof(*c) + bytes);

	if (!c)
		return -ENOMEM;
	*c = (struct tfh_follow_chunk){.t_last = t_last, .segment = f->segment, .bytes = bytes};
	memcpy(c->data, data, bytes);
	*f->kept_end = c;
	f->kept_end = &c->next;
	f->kept_bytes += bytes;
	return 0;
}

/* Moves a piece's start to the first record that ended at the cut or later. */
static void trim(struct tfh_follow *f, struct tfh_follow_piece *p)
{
	uint32_t at = p->from;

	while (at < p->n &&
	       (p->rec[at].t_end < f->cut || (at > p->from && p->rec[at].kind == TFT_EXT)))
		at++;
	tft_live_see(&f->live, p->thread, p->rec + p->from, at - p->from);
	f->records -= at - p->from;
	p->from = at;
}

static void trim_all(struct tfh_follow *f)
{
	struct tfh_follow_piece **at = &f->piece;

	while (*at) {
		struct tfh_follow_piece *p = *at;
		trim(f, p);
		if (p->from < p->n) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free(p);
	}
	f->piece_end = at;
}

/* The next segment repeats all tables without a time, so those of the last two segments are
 * complete. */
static bool is_old(const struct tfh_follow *f, const struct tfh_follow_chunk *c)
{
	return c->t_last ? c->t_last < f->cut : c->segment + 1 < f->segment;
}

static void drop_chunks(struct tfh_follow *f)
{
	struct tfh_follow_chunk **at = &f->kept;

	while (*at) {
		struct tfh_follow_chunk *c = *at;
		if (!is_old(f, c) && (f->kept_bytes <= KEPT_BYTES || !c->t_last)) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		f->kept_bytes -= c->bytes;
		free(c);
	}
	f->kept_end = at;
}

/* The latest end in the first piece. If there are too many records, at least these are dropped. */
static uint64_t end_of_first(const struct tfh_follow *f)
{
	const struct tfh_follow_piece *p = f->piece;

	return p->rec[p->n - 1].t_end + 1;
}

void tfh_follow_forget(struct tfh_follow *f, uint64_t ticks)
{
	uint64_t now = tfh_follow_now(f);

	if (now > ticks && now - ticks > f->cut)
		f->cut = now - ticks;
	trim_all(f);
	while (f->records > TFH_FOLLOW_RECORDS) {
		uint64_t next = end_of_first(f);
		if (next <= f->cut)
			break;
		f->cut = next;
		trim_all(f);
	}
	drop_chunks(f);
}

void tfh_follow_window_free(struct tfh_follow *f)
{
	while (f->piece) {
		struct tfh_follow_piece *next = f->piece->next;
		free(f->piece);
		f->piece = next;
	}
	while (f->kept) {
		struct tfh_follow_chunk *next = f->kept->next;
		free(f->kept);
		f->kept = next;
	}
	free(f->thread);
	tft_live_free(&f->live);
}
