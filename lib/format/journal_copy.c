#include "format/journal_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u
#define MAX_PAGES                                                                                  \
	(TFT_JOURNAL_SLOTS * ((TFT_RING_HEADER + TFT_RING_LARGE) / PAGE) + (64u << 20) / PAGE)
#define TRIES 16

struct copying {
	const struct tft_view *v;
	struct tft_journal_copy *c;
	uint64_t pages;	  /* pages of the file, at most MAX_PAGES */
	uint8_t *claimed; /* one bit per page that a ring owns */
	bool records;	  /* copy records, not only the rings' headers */
};

/* Assigns pages to a ring. A page belongs to at most one ring, so that the copy is never larger
 * than the file. */
static bool claim(struct copying *s, uint64_t offset, uint64_t bytes)
{
	uint64_t first = offset / PAGE, n = (bytes + PAGE - 1) / PAGE;

	if (offset % PAGE || first > s->pages || n > s->pages - first)
		return false;
	for (uint64_t i = first; i < first + n; i++) {
		if (s->claimed[i / 8] >> (i % 8) & 1)
			return false;
		s->claimed[i / 8] |= (uint8_t)(1u << (i % 8));
	}
	return true;
}

/* Reads a field that the owner may be storing: it is complete once two reads agree. Later reads are
 * ordered after it. */
static int read_word(const struct tft_view *v, void *to, size_t bytes, uint64_t offset)
{
	uint64_t a = 0, b = 0;
	int code = tft_view_read(v, &a, bytes, offset);

	for (int i = 0; i < TRIES && code == 0; i++) {
		b = a;
		code = tft_view_read(v, &a, bytes, offset);
		if (a == b)
			break;
	}
	memcpy(to, &a, bytes);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return code;
}

/* ---- rings ---- */

static bool all_hole(const struct tft_view *v, uint64_t offset, uint64_t bytes)
{
	off_t data = lseek(tft_view_fd(v), (off_t)offset, SEEK_DATA);

	return data < 0 ? errno == ENXIO : (uint64_t)data >= offset + bytes;
}

/* Reads records first..first+n of a ring. They must be inside the file. */
static int read_records(const struct tft_view *v, const struct tft_ring *ring, uint64_t first,
			uint32_t n, struct tfh_rec *to)
{
	uint32_t at = (uint32_t)first & ring->mask, capacity = ring->mask + 1;
	uint32_t part = n < capacity - at ? n : capacity - at;
	int code = tft_view_read(v, to, part * sizeof(*to),
				 ring->records_off + at * (uint64_t)sizeof(*to));

	return code || part == n
		       ? code
		       : tft_view_read(v, to + part, (n - part) * sizeof(*to), ring->records_off);
}

static int read_ends(const struct tft_view *v, uint64_t at, struct tft_ring *ring)
{
	int code = 0;

	/* A running flusher may move the tail between the two reads. */
	for (int i = 0; i < TRIES && code == 0; i++) {
		code = read_word(v, &ring->tail, 8, at + offsetof(struct tft_ring, tail));
		if (code == 0)
			code = read_word(v, &ring->head, 8, at + offsetof(struct tft_ring, head));
		if (ring->head - ring->tail <= ring->mask + 1ull)
			return code;
	}
	return code ? code : -EBADMSG;
}

static int fill_ring(const struct tft_view *v, uint64_t at, struct tft_ring_copy *r)
{
	uint64_t tail;
	int code = read_ends(v, at, &r->ring);

	if (code < 0)
		return code;
	r->first = r->ring.tail;
	r->n = (uint32_t)(r->ring.head - r->ring.tail);
	if (!r->n)
		return 0;
	if (all_hole(v, r->ring.records_off, (r->ring.mask + 1ull) * sizeof(*r->records)))
		return -EBADMSG;
	r->records = malloc(r->n * sizeof(*r->records));
	if (!r->records)
		return -ENOMEM;
	code = read_records(v, &r->ring, r->first, r->n, r->records);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* The flusher has moved the tail: the records it took may be overwritten here, and are now
	 * in staging or in a segment. */
	if (code == 0)
		code = read_word(v, &tail, 8, at + offsetof(struct tft_ring, tail));
	if (code == 0 && tail != r->ring.tail) {
		uint64_t moved = tail - r->ring.tail < r->n ? tail - r->ring.tail : r->n;
		r->n -= (uint32_t)moved;
		r->first += moved;
		memmove(r->records, r->records + moved, r->n * sizeof(*r->records));
	}
	return code;
}

static void free_ring(struct tft_ring_copy *r)
{
	if (r)
		free(r->records);
	free(r);
}

/* Copies a ring. Returns 0, -EBADMSG (the ring is left out) or -ENOMEM. */
static int copy_ring(struct copying *s, uint64_t at)
{
	struct tft_ring_copy *r = calloc(1, sizeof(*r));
	int code = r ? 0 : -ENOMEM;

	if (code == 0 && !claim(s, at, TFT_RING_HEADER))
		code = -EBADMSG;
	if (code == 0)
		code = tft_view_read(s->v, &r->ring, sizeof(r->ring), at);
	if (code == 0 && r->ring.state == TFT_RING_FREE) {
		free_ring(r);
		return 0;
	}
	if (code == 0) {
		uint64_t capacity = r->ring.mask + 1ull;
		if (capacity & r->ring.mask || capacity > TFT_RING_LARGE / sizeof(struct tfh_rec) ||
		    !claim(s, r->ring.records_off, capacity * sizeof(struct tfh_rec)))
			code = -EBADMSG;
	}
	if (code == 0 && s->records)
		code = fill_ring(s->v, at, r);
	if (code < 0)
		free_ring(r);
	else
		s->c->ring[s->c->n_rings++] = r;
	return code;
}

static int copy_rings(struct copying *s)
{
	const struct tft_journal *j = &s->c->header;
	uint32_t n = j->slot_count < TFT_JOURNAL_SLOTS ? j->slot_count : TFT_JOURNAL_SLOTS;
	struct tft_slot *slot = malloc((n ? n : 1) * sizeof(*slot));
	int code;

	s->c->ring = calloc(n ? n : 1, sizeof(*s->c->ring));
	s->claimed = calloc(1, s->pages / 8 + 1);
	if (!slot || !s->c->ring || !s->claimed) {
		free(slot);
		return -ENOMEM;
	}
	code = tft_view_read(s->v, slot, n * sizeof(*slot), j->slots_off);
	for (uint32_t i = 0; i < n && code == 0; i++) {
		code = slot[i].ring_off ? copy_ring(s, slot[i].ring_off) : 0;
		if (code == -EBADMSG) {
			s->c->torn++;
			code = 0;
		}
	}
	free(slot);
	return code == -EBADMSG ? 0 : code;
}

/* ---- staging ---- */

/* Copies those batches that are inside the area and together fit into it. */
static int copy_batches(const struct tft_view *v, const struct tft_staging *st,
			struct tft_journal_copy *c)
{
	uint32_t used = 0, kept = 0;
	int code = 0;

	for (uint32_t i = 0; i < c->n_batches && code == 0; i++) {
		struct tft_staged b = c->batch[i];
		if (b.offset > st->capacity || b.count > st->capacity - b.offset ||
		    b.count > st->capacity - used) {
			c->torn++;
			continue;
		}
		code = tft_view_read(v, c->staged + used, b.count * sizeof(*c->staged),
				     st->records_off + b.offset * (uint64_t)sizeof(*c->staged));
		b.offset = used;
		used += b.count;
		c->batch[kept++] = b;
	}
	c->n_batches = kept;
	return code;
}

static int copy_staging(const struct tft_view *v, struct tft_journal_copy *c)
{
	const uint64_t at = c->header.staging_off;
	struct tft_staging *st = calloc(1, sizeof(*st));
	uint32_t epoch = 0, now = 0;
	int code = st ? 0 : -ENOMEM;

	if (code == 0)
		code = tft_view_read(v, st, offsetof(struct tft_staging, batch), at);
	if (code == 0)
		code = read_word(v, &epoch, 4, at + offsetof(struct tft_staging, epoch));
	if (code == 0)
		code = read_word(v, &c->n_batches, 4, at + offsetof(struct tft_staging, n_batches));
	if (code == 0 && (c->n_batches > TFT_STAGING_BATCHES || st->capacity > TFT_STAGING_RECORDS))
		code = -EBADMSG;
	if (code == 0) {
		c->batch = malloc((c->n_batches + 1) * sizeof(*c->batch));
		c->staged = malloc((st->capacity + 1) * sizeof(*c->staged));
		code = c->batch && c->staged ? 0 : -ENOMEM;
	}
	if (code == 0)
		code = tft_view_read(v, c->batch, c->n_batches * sizeof(*c->batch),
				     at + offsetof(struct tft_staging, batch));
	if (code == 0)
		code = copy_batches(v, st, c);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (code == 0)
		code = read_word(v, &now, 4, at + offsetof(struct tft_staging, epoch));
	free(st);
	/* Staging was reset during the read: everything in it is now in a segment. */
	if (code < 0 || now != epoch)
		c->n_batches = 0;
	c->torn += code == -EBADMSG;
	return code == -EBADMSG ? 0 : code;
}

/* ---- the whole journal ---- */

/* Fields that were constant when the view was opened must be unchanged. */
static bool same_header(const struct tft_journal *a, const struct tft_journal *b)
{
	return a->magic == b->magic && a->version == b->version && a->slots_off == b->slots_off &&
	       a->head_off == b->head_off && a->staging_off == b->staging_off && a->pid == b->pid &&
	       a->process_start == b->process_start && a->flags == b->flags;
}

static int copy_head(const struct tft_view *v, struct tft_journal_copy *c)
{
	size_t n = c->header.head_bytes;

	if (!n || n > TFT_JOURNAL_HEAD_CAP)
		return 0;
	c->head = malloc(n);
	c->head_bytes = n;
	int code = c->head ? tft_view_read(v, c->head, n, c->header.head_off) : -ENOMEM;
	if (code < 0) {
		free(c->head);
		c->head = NULL;
	}
	return code == -EBADMSG ? 0 : code;
}

static int copy(const struct tft_view *v, bool records, struct tft_journal_copy *c)
{
	const struct tft_journal *before = tft_view_header(v);
	struct copying s = {.v = v, .c = c, .pages = tft_view_size(v) / PAGE, .records = records};
	struct tft_journal *j = &c->header;

	memset(c, 0, sizeof(*c));
	if (s.pages > MAX_PAGES)
		s.pages = MAX_PAGES;
	int code = tft_view_read(v, j, sizeof(*j), 0);
	if (code == 0 && !same_header(j, before))
		code = -EBADMSG;
	/* Its strings were NUL-terminated when the view was opened. */
	memcpy(j->boot_id, before->boot_id, sizeof(*j) - offsetof(struct tft_journal, boot_id));
	if (code == 0)
		code = copy_head(v, c);
	if (code == 0)
		code = copy_rings(&s);
	free(s.claimed);
	return code || !records ? code : copy_staging(v, c);
}

int tft_journal_copy(const struct tft_view *v, struct tft_journal_copy *c)
{
	return copy(v, true, c);
}

int tft_journal_calls(const struct tft_view *v, struct tft_journal_copy *c)
{
	return copy(v, false, c);
}

void tft_journal_copy_free(struct tft_journal_copy *c)
{
	for (uint32_t i = 0; i < c->n_rings; i++)
		free_ring(c->ring[i]);
	free(c->ring);
	free(c->head);
	free(c->staged);
	free(c->batch);
}

struct tft_clock_triple tft_journal_clock(const struct tft_journal *j)
{
	return j->clock_n ? j->clock[(j->clock_n - 1) & 1] : j->start;
}
