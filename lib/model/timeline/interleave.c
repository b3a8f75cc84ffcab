/*
 * Merges many series into one time line: a heap over the runs of all open chunks. A chunk is opened
 * when the next event could be in it (its header has its smallest end time) and closed after its
 * last record, so few are open at any time. Within a process ticks are compared, between processes
 * nanoseconds.
 */
/* Records are copied in pieces of 16 bytes. A merged load across two such pieces would wait for the
 * stores, which took half of the time of this file. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-slp-vectorize", "no-store-merging")
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/timeline/series.h"

struct tfh_interleave {
	struct tfh_run *run;
	uint32_t begin, end;	     /* processes */
	struct tfh_model_side *side; /* by process */
	struct tfh_model_series **heap;
	uint32_t n, cap;
	int64_t due; /* no chunk needs to be opened before */
	/* Finished chunks and series. They are kept because the block may still point into them. */
	struct tfh_open_chunk *left_chunk;
	struct tfh_model_series *left;
	struct tfh_stencils *spare;
	struct tfh_unpack *unpack; /* of one process */
	/* Damage is noted in the run, which is not a shadow. */
	bool notes;
	struct tfh_err err;
};

static bool before(const struct tfh_model_series *a, const struct tfh_model_series *b)
{
	if (a->t1 != b->t1)
		return a->t1 < b->t1;
	if (a->thread != b->thread)
		return a->thread < b->thread;
	return a->number < b->number;
}

static void sift_down(struct tfh_interleave *m)
{
	struct tfh_model_series *x = m->heap[0];
	uint32_t i = 0, c;

	while ((c = 2 * i + 1) < m->n) {
		c += c + 1 < m->n && before(m->heap[c + 1], m->heap[c]);
		if (!before(m->heap[c], x))
			break;
		m->heap[i] = m->heap[c];
		i = c;
	}
	m->heap[i] = x;
}

static int push(struct tfh_interleave *m, struct tfh_model_series *x)
{
	uint32_t i = m->n;

	if (tfh_room_for((void **)&m->heap, &m->cap, m->n, sizeof(*m->heap)))
		return -ENOMEM;
	for (m->n++; i && before(x, m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = x;
	return 0;
}

static void free_stencils(struct tfh_stencils *t)
{
	for (struct tfh_stencils *next; t; t = next) {
		next = t->next;
		free(t);
	}
}

/* A chunk whose records have all been read. */
static void end_chunk(struct tfh_interleave *m, struct tfh_open_chunk *o)
{
	if (--o->runs)
		return;
	o->next = m->left_chunk;
	m->left_chunk = o;
}

static void end_series(struct tfh_interleave *m, struct tfh_model_series *s)
{
	s->next = m->left;
	m->left = s;
	end_chunk(m, s->chunk);
}

/* Releases what was read: the block is filled again, so nothing points there any longer. */
static void take_back(struct tfh_interleave *m)
{
	for (struct tfh_model_series *s; (s = m->left);) {
		m->left = s->next;
		free(s);
	}
	for (struct tfh_open_chunk *o; (o = m->left_chunk);) {
		m->left_chunk = o->next;
		o->stencils->next = m->spare;
		m->spare = o->stencils;
		if (m->unpack)
			tfh_unpack_keep(m->unpack, o->chunk, o->events, o->row);
		else {
			tft_events_close(o->events);
			free(o->row);
		}
		free(o);
	}
}

/* Takes over events and rows (NULL: they are not known), also when it fails. NULL when out of
 * memory. */
static struct tfh_open_chunk *new_chunk(struct tfh_interleave *m, struct tfh_chunk *c,
					struct tft_events *events, struct tfh_row_sum *row)
{
	struct tfh_open_chunk *o = calloc(1, sizeof(*o));
	struct tfh_stencils *spare = m->spare;

	if (!o) {
		tft_events_close(events);
		free(row);
		return NULL;
	}
	if (spare)
		m->spare = spare->next;
	o->stencils = tfh_stencils_make(spare, &m->run->file[c->file], events);
	o->rows_known = row != NULL;
	o->row = row ? row : malloc((tfh_most_groups(events) + 1) * sizeof(*row));
	o->events = events;
	o->chunk = c;
	if (o->stencils && o->row)
		return o;
	tft_events_close(events);
	free(o->stencils);
	free(o->row);
	free(o);
	return NULL;
}

static int open_chunk(struct tfh_interleave *m, uint32_t process, struct tfh_chunk *c)
{
	struct tfh_lost lost = {0, false};
	struct tfh_row_sum *row = NULL;
	struct tft_events *events;
	int rc;

	events = m->unpack ? tfh_unpack_next(m->unpack, &row, &rc, &lost)
			   : tfh_unpack_one(m->run, c, &rc, &lost);
	/* The chunk is damaged: it becomes a hole, and reading continues. */
	if (!events)
		return rc || !m->notes ? rc : tfh_run_note_damage(m->run, process, c, &lost);
	struct tfh_open_chunk *o = new_chunk(m, c, events, row);
	if (!o)
		return -ENOMEM;
	row = o->row;
	uint32_t n = tft_run_count(o->events);
	o->runs = n + 1;
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct tfh_model_series *s =
			tfh_series_new(m->run, &m->side[process], process, c->file, o, i, row);
		if (!s) {
			rc = -ENOMEM;
			break;
		}
		row += tfh_groups_of(tft_run(o->events, i)->count);
		if (!tfh_series_next(s)) {
			end_series(m, s);
			continue;
		}
		rc = push(m, s);
	}
	end_chunk(m, o);
	return rc;
}

/* Opens every chunk that could hold the next event. */
static int open_due(struct tfh_interleave *m)
{
	struct tfh_run *run = m->run;

	m->due = INT64_MAX;
	for (uint32_t i = m->begin; i < m->end; i++) {
		struct tfh_model_proc *p = &run->proc[i];
		struct tfh_model_side *side = &m->side[i];
		while (side->next_chunk < p->n_chunk) {
			struct tfh_chunk *c = &p->chunk[side->next_chunk];
			if (m->n && m->heap[0]->t1 < c->first_ns) {
				m->due = c->first_ns < m->due ? c->first_ns : m->due;
				break;
			}
			side->next_chunk++;
			int rc = open_chunk(m, i, c);
			if (rc)
				return rc;
		}
	}
	return 0;
}

int tfh_interleave_open(struct tfh_run *run, uint32_t process, bool first,
			struct tfh_interleave **out)
{
	struct tfh_interleave *m = calloc(1, sizeof(*m));

	*out = NULL;
	if (m)
		m->side = calloc(run->n_proc + 1, sizeof(*m->side));
	if (!m || !m->side) {
		free(m);
		return -ENOMEM;
	}
	m->run = run;
	m->begin = process == UINT32_MAX ? 0 : process;
	m->end = process == UINT32_MAX ? run->n_proc : process + 1;
	m->due = INT64_MIN;
	for (uint32_t i = m->begin; i < m->end; i++) {
		size_t n = run->proc[i].n_thread + 1;
		m->side[i].line.block = TFH_NO_LINE;
		m->side[i].next_number = calloc(n, sizeof(*m->side[i].next_number));
		m->side[i].naming = calloc(n, 1);
		if (!m->side[i].next_number || !m->side[i].naming) {
			tfh_interleave_close(m);
			return -ENOMEM;
		}
	}
	m->notes = first;
	if (first && m->end - m->begin == 1 && tfh_unpack_open(run, m->begin, &m->unpack)) {
		tfh_interleave_close(m);
		return -ENOMEM;
	}
	*out = m;
	return 0;
}

void tfh_interleave_close(struct tfh_interleave *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n; i++) {
		struct tfh_open_chunk *o = m->heap[i]->chunk;
		if (!o->rows_known) { /* not read to its end, so neither are its rows */
			free(o->row);
			o->row = NULL;
		}
		end_series(m, m->heap[i]);
	}
	take_back(m);
	for (uint32_t i = m->begin; i < m->end; i++) {
		free(m->side[i].next_number);
		free(m->side[i].naming);
		tfh_memory_free(&m->side[i].memory);
	}
	tfh_unpack_close(m->unpack);
	free_stencils(m->spare);
	free(m->side);
	free(m->heap);
	free(m);
}

/* The EXT record of a copy, if the next record of the series is one. */
static const struct tft_ext_copy *copy_ext(const struct tfh_rec *rec,
					   const struct tfh_model_series *s, bool more)
{
	if (!(rec->flags & TFT_F_EXT) || !more || s->plain || s->rec.kind != TFT_EXT)
		return NULL;
	return (const struct tft_ext_copy *)((const char *)&s->rec +
					     offsetof(struct tfh_rec, stream));
}

/* The EXT record of a sample, likewise; those of more samples than a block has room for are left
 * out. */
static const struct tfh_packed_loops *loops_ext(const struct tfh_event *ev, struct tfh_block *b,
						const struct tfh_model_series *s, bool more)
{
	struct tfh_packed_loops *to = &b->loops[b->n_loops];

	if (!(ev->flags & TFT_F_EXT) || !more || s->plain || s->rec.kind != TFT_EXT ||
	    b->n_loops == TFH_BLOCK_NOTES)
		return NULL;
	to->bytes = (uint8_t)(s->rec.result < TFT_EXT_BYTES ? s->rec.result : TFT_EXT_BYTES);
	memcpy(to->byte, (const char *)&s->rec + offsetof(struct tfh_rec, stream), TFT_EXT_BYTES);
	b->n_loops++;
	return to;
}

/* Reads the pairs of a batch, which follow its first part, and advances the series past them. */
static bool take_batch(const struct tfh_model_side *side, struct tfh_model_series *s,
		       struct tfh_event *ev)
{
	struct {
		struct tft_ext_copy head;
		struct tft_ext_pair pair[TFT_EXT_PAIRS];
	} batch;
	uint32_t length = 0, n;
	bool more = true;

	for (;
	     more && !s->plain && s->rec.kind == TFT_EXT && length + TFT_EXT_BYTES <= sizeof(batch);
	     more = tfh_series_next(s), length += TFT_EXT_BYTES)
		memcpy((char *)&batch + length,
		       (const char *)&s->rec + offsetof(struct tfh_rec, stream), TFT_EXT_BYTES);
	n = length > sizeof(batch.head)
		    ? (uint32_t)((length - sizeof(batch.head)) / sizeof(batch.pair[0]))
		    : 0;
	if (n && n > batch.head.count)
		n = batch.head.count;
	if (n)
		tfh_memory_batch(&side->memory, batch.pair, n, &ev->dir, &ev->pageable);
	return more;
}

/* Converts tick counts to nanoseconds. */
static inline void scale(const struct tfh_model_series *s, struct tfh_event *ev)
{
	double rate = s->side->line.rate;

	if (ev->kind == TFT_AGG)
		for (int i = 0; i < 3; i++)
			ev->w[i] = (uint64_t)((double)ev->w[i] * rate);
	else if (ev->kind == TFT_CALL && ev->fn->args == TFH_ARGS_GETNEXT)
		ev->w[2] = (uint64_t)((double)ev->w[2] * rate);
}

static void note(struct tfh_block *b, const struct tfh_model_series *s)
{
	b->entry[b->n++] = (struct tfh_entry){.thread = s->index};
	b->note_process[b->n_notes] = s->process;
	b->note[b->n_notes++] = s->rec;
}

/* Fills entries with plain events, up to the first event that is not plain; returns their
 * number. */
static uint32_t fill_plain(struct tfh_entry *e, struct tfh_stencil *v, const int64_t *t0,
			   const int64_t *t1, const uint16_t *shape, uint64_t number,
			   uint32_t thread, uint32_t most)
{
	uint32_t n = 0;

	for (; n < most; n++) {
		struct tfh_stencil *x = &v[shape[n]];
		if (!x->plain)
			break;
		e[n].t0 = t0[n];
		e[n].t1 = t1[n];
		e[n].number = number + n;
		e[n].ev = &x->ev;
		e[n].thread = thread;
		e[n].launch = x->launch;
	}
	return n;
}

/* Takes the plain events that come next: as many as are decoded and end before `limit`. The first
 * one does. */
static bool take_plain(struct tfh_model_series *s, struct tfh_block *b, int64_t limit)
{
	if (!s->decoded)
		tfh_series_decode(s);
	const int64_t *t1 = s->t1_ns + s->at;
	uint32_t left = s->n - s->at, n;

	left = left < TFH_BLOCK_EVENTS - b->n ? left : TFH_BLOCK_EVENTS - b->n;
	while (left > 1 && t1[left - 1] >= limit)
		left--;
	n = fill_plain(&b->entry[b->n], s->stencil, s->t0_ns + s->at, t1, s->shape + s->at,
		       s->number, s->thread, left);
	b->n += s->thread != UINT32_MAX ? n : 0;
	s->side->naming[s->index] = 0;
	if (s->next_number)
		*s->next_number = s->number + n;
	s->at += n - 1;
	s->number += n - 1;
	return tfh_series_next(s);
}

/* Whether the next records are a row that ends before `limit`. */
static bool at_row(const struct tfh_model_series *s, int64_t limit)
{
	return s->at == 0 && s->row->n && s->row->t1 < limit && s->thread != UINT32_MAX &&
	       (!s->next_number || s->number >= *s->next_number);
}

/* Takes the next rows. Returns whether the series has more. */
static bool take_rows(struct tfh_model_series *s, struct tfh_block *b, int64_t limit)
{
	bool more = true;

	s->side->naming[s->index] = 0;
	while (more && b->n_rows < TFH_BLOCK_ROWS && at_row(s, limit)) {
		uint32_t pos = s->cursor.pos - (s->decoded ? s->n : 0);
		b->row[b->n_rows++] = (struct tfh_block_row){.sum = *s->row,
							     .series = s,
							     .number = s->number,
							     .before = s->before,
							     .pos = pos};
		if (s->next_number)
			*s->next_number = s->number + s->n;
		tfh_series_pass(s);
		more = tfh_series_next(s);
	}
	return more;
}

void tfh_interleave_row(const struct tfh_block *b, uint32_t i, struct tfh_launch_row *row)
{
	const struct tfh_block_row *r = &b->row[i];
	uint16_t shape[TFT_MANY];
	uint32_t parts = 0;

	row->t0 = r->sum.t0;
	row->t1 = r->sum.t1;
	row->first = r->sum.first;
	row->ns = r->sum.ns;
	row->apart = r->sum.apart;
	row->longest = r->sum.longest;
	row->thread = r->series->thread;
	row->n = r->sum.n;
	tft_shapes(r->series->cursor.ev, r->pos, r->sum.n, shape);
	for (uint32_t k = 0, n; k < r->sum.n; k += n) {
		n = tfh_same_shapes(&shape[k], r->sum.n - k);
		row->part[parts].ev = &r->series->stencil[shape[k]].ev;
		row->part[parts++].n = n;
	}
	row->parts = parts;
}

void tfh_interleave_times(const struct tfh_block *b, uint32_t i, int64_t *t0, int64_t *t1,
			  uint16_t *shape)
{
	const struct tfh_block_row *r = &b->row[i];

	tfh_series_times(r->series, r->pos, r->before, r->sum.n, t0, t1, shape);
}

void tfh_interleave_split(struct tfh_block *b, uint32_t i)
{
	const struct tfh_block_row *r = &b->row[i];
	const struct tfh_model_series *s = r->series;
	int64_t t0[TFT_MANY], t1[TFT_MANY];
	uint16_t shape[TFT_MANY];

	tfh_interleave_times(b, i, t0, t1, shape);
	b->n = fill_plain(b->entry, s->stencil, t0, t1, shape, r->number, s->thread, r->sum.n);
}

/* Takes a record that is no name. Returns whether the series has more. */
static bool take_event(struct tfh_interleave *m, struct tfh_model_series *s, struct tfh_block *b)
{
	struct tfh_entry *e = &b->entry[b->n];
	struct tfh_event *ev = &b->own[b->n];
	struct tfh_model_side *side = s->side;
	uint64_t t_begin = s->rec.t_begin;
	bool more, copy;
	struct tfh_rec rec;

	tfh_series_event(ev, &s->rec, tfh_series_fn(s->file, s->rec.fn), s->process);
	e->ev = ev;
	e->t1 = s->t1;
	e->number = s->number;
	e->thread = s->thread;
	e->launch = tfh_is_plain_launch(ev);
	if (ev->kind == TFT_OPEN || ev->kind == TFT_STATE) {
		uint32_t caller = tfh_thread_at(&m->run->proc[s->process], ev->ctx);
		e->thread = caller != UINT32_MAX ? caller : e->thread;
	}
	if (ev->kind == TFT_CHILD) /* belongs to the process; the first thread carries it */
		e->thread = tfh_thread_at(&m->run->proc[s->process], 1);
	side->naming[s->index] = 0;
	if ((ev->fn->family == TFH_FAM_ALLOC || ev->fn->family == TFH_FAM_FREE) &&
	    tfh_memory_event(&side->memory, ev->fn, &s->rec))
		tfh_err_set(&m->err, -ENOMEM, "out of memory");
	copy = ev->fn->family == TFH_FAM_COPY && ev->kind == TFT_CALL;
	if (copy)
		rec = s->rec;
	more = tfh_series_next(s);
	if (ev->kind == TFT_STATE)
		ev->loops = loops_ext(ev, b, s, more);
	e->t0 = tfh_series_ns(s, t_begin);
	scale(s, ev);
	if (copy) {
		const struct tft_ext_copy *ext = copy_ext(&rec, s, more);
		tfh_memory_copy(&side->memory, ev->fn, &rec, ext, &ev->dir, &ev->pageable);
		if (ext && ext->form == TFT_EXT_BATCH)
			more = take_batch(side, s, ev);
	}
	b->n += !(ev->flags & TFT_F_REPEAT) && e->thread != UINT32_MAX;
	return more;
}

/* Whether the sample was already read from a copy of the file. The numbers of samples start again
 * in every file, but copies of one sample have equal times and follow each other. */
static bool looked_before(struct tfh_model_series *s)
{
	struct tfh_model_side *side = s->side;
	bool before = side->looked == s->rec.t_begin && side->looked_at == s->rec.ctx;

	side->looked = s->rec.t_begin;
	side->looked_at = s->rec.ctx;
	return before;
}

/* Takes the next record of a series, and the plain ones after it that end before `limit`. Returns
 * whether the series has more. */
static inline bool take(struct tfh_interleave *m, struct tfh_model_series *s, struct tfh_block *b,
			int64_t limit)
{
	if (s->next_number) {
		if (s->number < *s->next_number) { /* read before, from a copy of the file */
			if (!s->decoded)
				tfh_series_decode(s);
			return tfh_series_next(s);
		}
		*s->next_number = s->number + 1;
	}
	if (__builtin_expect(s->plain, 1))
		return take_plain(s, b, limit);
	if ((s->rec.kind == TFT_STATE || s->rec.kind == TFT_CHILD) && looked_before(s))
		return tfh_series_next(s);
	if (s->rec.kind != TFT_NAME && s->rec.kind != TFT_EXT)
		return take_event(m, s, b);
	if (s->rec.kind == TFT_NAME)
		s->side->naming[s->index] = 1;
	if (s->side->naming[s->index])
		note(b, s);
	return tfh_series_next(s);
}

/* Takes records of a series up to `limit`, as long as it is the earliest series. Returns whether
 * the series has more; *full: the block is full. */
static bool take_some(struct tfh_interleave *m, struct tfh_model_series *s, struct tfh_block *b,
		      const struct tfh_model_series *other, bool rows, bool *full)
{
	int64_t limit = other && other->t1 < m->due ? other->t1 : m->due;
	bool more = true;

	do {
		*full = rows && at_row(s, limit);
		if (*full)
			return b->n || b->n_notes ? true : take_rows(s, b, limit);
		more = take(m, s, b, limit);
	} while (more && s->t1 < m->due && (!other || before(s, other)) &&
		 b->n < TFH_BLOCK_EVENTS && b->n_notes < TFH_BLOCK_NOTES && !m->err.code);
	return more;
}

bool tfh_interleave_fill(struct tfh_interleave *m, struct tfh_block *b, bool rows)
{
	bool full = false;

	b->n = b->n_notes = b->n_loops = b->n_rows = 0;
	take_back(m);
	if (rows && m->unpack)
		tfh_unpack_sums(m->unpack);
	while (!full && b->n < TFH_BLOCK_EVENTS && b->n_notes < TFH_BLOCK_NOTES && !m->err.code) {
		if (!m->n || m->heap[0]->t1 >= m->due) {
			int rc = open_due(m);
			if (rc)
				tfh_err_set(&m->err, rc, "out of memory");
			if (rc || !m->n)
				return false;
		}
		struct tfh_model_series *s = m->heap[0];
		const struct tfh_model_series *other = m->n > 1 ? m->heap[1] : NULL;
		if (m->n > 2 && before(m->heap[2], other))
			other = m->heap[2];
		if (!take_some(m, s, b, other, rows, &full)) {
			m->heap[0] = m->heap[--m->n];
			end_series(m, s);
		}
		if (m->n)
			sift_down(m);
	}
	return !m->err.code;
}

const struct tfh_err *tfh_interleave_error(const struct tfh_interleave *m)
{
	return &m->err;
}
