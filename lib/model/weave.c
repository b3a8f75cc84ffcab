/*
 * One time line out of many series: a heap over the runs of the chunks that are open. A chunk is
 * opened when the next event could be one of its own (its header says the smallest end time in it)
 * and closed with its last record, so few are open at any time. Within a process ticks are
 * compared, between processes nanoseconds.
 */
/* A record was just copied in pieces of 16 bytes: joined loads across their borders wait for the
 * stores (half of the time of this file). */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-slp-vectorize", "no-store-merging")
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/decode.h"

#include "model/weave.h"

/* Ticks are turned into nanoseconds by straight lines over blocks of about 20 ms at 3 GHz, between
 * points of the file's own clock table: the same for every record, and cheap. */
#define BLOCK_BITS 26

struct line {
	uint64_t block; /* NO_BLOCK: none yet */
	int64_t ns;
	double rate; /* ns per tick */
};

#define NO_BLOCK UINT64_MAX

/* What events of one shape share, made once per chunk: most of a launch-heavy recording is a few
 * hundred shapes. */
struct stencil {
	struct tfh_event ev;
	bool plain; /* the event is nothing but this, its times, number and thread */
};

struct stencils {
	struct stencils *next;
	const struct tfh_block *block; /* given up: the last block that points into it */
	uint32_t cap;
	struct stencil v[];
};

struct open_chunk {
	struct tft_events *events;
	struct stencils *stencils;
	uint32_t runs; /* that have records left */
};

/* What is kept per process during a pass. */
struct side {
	uint32_t next_chunk;
	uint64_t *next_number; /* by thread: first record that has not been seen */
	uint8_t *naming;       /* by thread: a name's text may go on */
	struct tfh_memory memory;
	struct line line;
};

struct series {
	struct tft_times next; /* of the next record */
	bool plain;	       /* its shape's stencil is all the rest of it */
	struct tfh_rec rec;    /* the whole of it, unless it is plain */
	int64_t t1;
	uint64_t number;
	uint32_t thread, process; /* of the run */
	uint32_t at;		  /* thread in the process */
	const struct tfh_file *file;
	uint64_t *next_number; /* NULL: numbered anew in every file */
	struct side *side;
	const struct tft_reader *reader;
	int64_t shift;
	struct open_chunk *chunk;
	const struct stencil *stencil; /* the chunk's */
	struct tft_cursor cursor;
};

struct tfh_weave {
	struct tfh_run *run;
	uint32_t begin, end; /* processes */
	struct side *side;   /* by process */
	struct series **heap;
	uint32_t n, cap;
	int64_t due; /* before it no chunk needs to be opened */
	const struct tfh_block *filling;
	struct stencils *given_up, *spare;
	struct tfh_err err;
};

static __attribute__((noinline)) void new_line(const struct series *s, uint64_t block)
{
	struct line *l = &s->side->line;
	uint64_t a = tft_monotonic_ns(s->reader, block << BLOCK_BITS);
	uint64_t b = tft_monotonic_ns(s->reader, (block + 1) << BLOCK_BITS);

	l->block = block;
	l->ns = (int64_t)a + s->shift;
	l->rate = (double)(int64_t)(b - a) / (double)(1u << BLOCK_BITS);
}

static inline int64_t to_ns(const struct series *s, uint64_t ticks)
{
	const struct line *l = &s->side->line;

	if (__builtin_expect(l->block != ticks >> BLOCK_BITS, 0))
		new_line(s, ticks >> BLOCK_BITS);
	return l->ns + (int64_t)((double)(int32_t)(ticks & ((1u << BLOCK_BITS) - 1)) * l->rate);
}

static bool before(const struct series *a, const struct series *b)
{
	if (a->t1 != b->t1)
		return a->t1 < b->t1;
	if (a->thread != b->thread)
		return a->thread < b->thread;
	return a->number < b->number;
}

static void sift_down(struct tfh_weave *m)
{
	struct series *x = m->heap[0];
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

static int push(struct tfh_weave *m, struct series *x)
{
	uint32_t i = m->n;

	if (tfh_room_for((void **)&m->heap, &m->cap, m->n, sizeof(*m->heap)))
		return -ENOMEM;
	for (m->n++; i && before(x, m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = x;
	return 0;
}

/* Reads the next record of a series; false at its end. */
static inline bool fetch(struct series *s)
{
	s->number = s->cursor.number;
	if (!tft_next_times(&s->cursor, &s->next))
		return false;
	s->t1 = to_ns(s, s->next.t_end);
	s->plain = s->stencil[s->next.shape].plain;
	if (!s->plain)
		tft_complete(&s->cursor, &s->next, &s->rec);
	return true;
}

/* ---- stencils ---- */

static const struct tfh_fn_info *fn_of(const struct tfh_file *f, uint32_t fn)
{
	static const struct tfh_fn_info none = {"", 0, 0, 0, 0};

	return fn < tft_head(f->reader)->fn_count ? f->fn[fn] : &none;
}

/* All of an event that its record tells, but times, number and thread. */
static inline void fill(struct tfh_event *ev, const struct tfh_rec *rec,
			const struct tfh_fn_info *fn, uint32_t process)
{
	ev->fn = fn;
	ev->process = process;
	ev->kind = rec->kind;
	ev->flags = rec->flags;
	ev->depth = rec->depth;
	ev->result = rec->result;
	ev->stream = rec->stream;
	ev->ctx = rec->ctx;
	ev->stack = rec->stack;
	memcpy(ev->w, rec->w, sizeof(ev->w));
	ev->dir = 0;
	ev->pageable = false;
}

/* Calls that depend on nothing around them, and have no times among their words. */
static bool is_plain(const struct tfh_event *ev)
{
	uint8_t family = ev->fn->family;

	return ev->kind == TFT_CALL && !(ev->flags & TFT_F_REPEAT) && family != TFH_FAM_ALLOC &&
	       family != TFH_FAM_FREE && family != TFH_FAM_COPY && ev->fn->args != TFH_ARGS_GETNEXT;
}

static struct stencils *make_stencils(struct tfh_weave *m, const struct tfh_file *f,
				      const struct tft_events *events)
{
	struct stencils *t = m->spare;

	if (t)
		m->spare = t->next;
	if (!t || t->cap < events->n_shapes) {
		free(t);
		t = malloc(sizeof(*t) + events->n_shapes * sizeof(*t->v));
		if (!t)
			return NULL;
		t->cap = events->n_shapes;
	}
	for (uint32_t i = 0; i < events->n_shapes; i++) {
		const struct tfh_rec *rec = &events->shapes[i];
		fill(&t->v[i].ev, rec, fn_of(f, rec->fn), f->process);
		t->v[i].plain = tft_shape_is_whole(events, i) && is_plain(&t->v[i].ev);
	}
	return t;
}

static void free_stencils(struct stencils *t)
{
	for (struct stencils *next; t; t = next) {
		next = t->next;
		free(t);
	}
}

/* Blocks that have been read may point into it until they are filled again. */
static void give_up(struct tfh_weave *m, struct stencils *t)
{
	t->block = m->filling;
	t->next = m->given_up;
	m->given_up = t;
}

/* The block is filled anew: nobody reads what it pointed to any more, nor what those before did. */
static void take_back(struct tfh_weave *m, const struct tfh_block *b)
{
	for (struct stencils **p = &m->given_up, *t; (t = *p);) {
		if (t->block != b) {
			p = &t->next;
			continue;
		}
		*p = t->next;
		t->next = m->spare;
		m->spare = t;
	}
	m->filling = b;
}

static void end_chunk(struct tfh_weave *m, struct open_chunk *o)
{
	if (--o->runs)
		return;
	tft_events_close(o->events);
	give_up(m, o->stencils);
	free(o);
}

static void end_series(struct tfh_weave *m, struct series *s)
{
	end_chunk(m, s->chunk);
	free(s);
}

static struct series *new_series(struct tfh_weave *m, uint32_t process, uint32_t file,
				 const struct tft_run *r)
{
	const struct tfh_file *f = &m->run->file[file];
	const struct tfh_proc *p = &m->run->proc[process];
	struct series *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->reader = f->reader;
	s->file = f;
	s->process = process;
	s->side = &m->side[process];
	s->shift = p->shift;
	s->at = r->thread < p->n_thread ? r->thread : p->n_thread;
	s->thread = s->at < p->n_thread && p->thread[s->at] ? p->thread[s->at] - 1 : UINT32_MAX;
	/* The flusher's and a salvage's series are numbered anew in every file. */
	if (s->at != 0 && s->at != p->n_thread)
		s->next_number = &s->side->next_number[s->at];
	return s;
}

static int open_chunk(struct tfh_weave *m, uint32_t process, const struct tfh_chunk *c)
{
	struct open_chunk *o = calloc(1, sizeof(*o));
	struct tfh_err err;
	int rc = 0;

	if (!o)
		return -ENOMEM;
	/* A damaged chunk is a hole that run.c has noted; the rest is read. */
	if (tft_events_open(m->run->file[c->file].reader, c->chunk, &o->events, &err)) {
		free(o);
		return err.code == -ENOMEM ? -ENOMEM : 0;
	}
	o->stencils = make_stencils(m, &m->run->file[c->file], o->events);
	if (!o->stencils) {
		tft_events_close(o->events);
		free(o);
		return -ENOMEM;
	}
	uint32_t n = tft_run_count(o->events);
	o->runs = n + 1;
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct series *s = new_series(m, process, c->file, tft_run(o->events, i));
		if (!s) {
			rc = -ENOMEM;
			break;
		}
		s->chunk = o;
		s->stencil = o->stencils->v;
		tft_cursor_init(&s->cursor, o->events, i);
		if (!fetch(s)) {
			end_series(m, s);
			continue;
		}
		rc = push(m, s);
	}
	end_chunk(m, o);
	return rc;
}

/* Opens every chunk that could hold the next event. */
static int open_due(struct tfh_weave *m)
{
	struct tfh_run *run = m->run;

	m->due = INT64_MAX;
	for (uint32_t i = m->begin; i < m->end; i++) {
		struct tfh_proc *p = &run->proc[i];
		struct side *side = &m->side[i];
		while (side->next_chunk < p->n_chunk) {
			const struct tfh_chunk *c = &p->chunk[side->next_chunk];
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

int tfh_weave_open(struct tfh_run *run, uint32_t process, struct tfh_weave **out)
{
	struct tfh_weave *m = calloc(1, sizeof(*m));

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
		m->side[i].line.block = NO_BLOCK;
		m->side[i].next_number = calloc(n, sizeof(*m->side[i].next_number));
		m->side[i].naming = calloc(n, 1);
		if (!m->side[i].next_number || !m->side[i].naming) {
			tfh_weave_close(m);
			return -ENOMEM;
		}
	}
	*out = m;
	return 0;
}

void tfh_weave_close(struct tfh_weave *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n; i++)
		end_series(m, m->heap[i]);
	for (uint32_t i = m->begin; i < m->end; i++) {
		free(m->side[i].next_number);
		free(m->side[i].naming);
		tfh_memory_free(&m->side[i].memory);
	}
	free_stencils(m->given_up);
	free_stencils(m->spare);
	free(m->side);
	free(m->heap);
	free(m);
}

/* The EXT record of a copy, if the next record of the series is one. */
static const struct tft_ext_copy *copy_ext(const struct tfh_rec *rec, const struct series *s,
					   bool more)
{
	if (!(rec->flags & TFT_F_EXT) || !more || s->plain || s->rec.kind != TFT_EXT)
		return NULL;
	return (const struct tft_ext_copy *)((const char *)&s->rec +
					     offsetof(struct tfh_rec, stream));
}

/* The pairs of a batch, behind its first part; the series then stands at what follows them. */
static bool take_batch(const struct side *side, struct series *s, struct tfh_event *ev)
{
	struct {
		struct tft_ext_copy head;
		struct tft_ext_pair pair[TFT_EXT_PAIRS];
	} batch;
	uint32_t length = 0, n;
	bool more = true;

	for (;
	     more && !s->plain && s->rec.kind == TFT_EXT && length + TFT_EXT_BYTES <= sizeof(batch);
	     more = fetch(s), length += TFT_EXT_BYTES)
		memcpy((char *)&batch + length,
		       (const char *)&s->rec + offsetof(struct tfh_rec, stream), TFT_EXT_BYTES);
	n = length > sizeof(batch.head)
		    ? (uint32_t)((length - sizeof(batch.head)) / sizeof(batch.pair[0]))
		    : 0;
	if (n > batch.head.count)
		n = batch.head.count;
	if (n)
		tfh_memory_batch(&side->memory, batch.pair, n, &ev->dir, &ev->pageable);
	return more;
}

/* Tick counts become nanoseconds. */
static inline void scale(const struct series *s, struct tfh_event *ev)
{
	double rate = s->side->line.rate;

	if (ev->kind == TFT_AGG)
		for (int i = 0; i < 3; i++)
			ev->w[i] = (uint64_t)((double)ev->w[i] * rate);
	else if (ev->kind == TFT_CALL && ev->fn->args == TFH_ARGS_GETNEXT)
		ev->w[2] = (uint64_t)((double)ev->w[2] * rate);
}

static void note(struct tfh_block *b, const struct series *s)
{
	b->entry[b->n++] = (struct tfh_entry){.thread = s->at};
	b->note_process[b->n_notes] = s->process;
	b->note[b->n_notes++] = s->rec;
}

static inline bool take_plain(struct series *s, struct tfh_block *b)
{
	struct tfh_entry *e = &b->entry[b->n];
	uint64_t t_begin = s->next.t_begin;

	e->ev = &s->stencil[s->next.shape].ev;
	e->t1 = s->t1;
	e->number = s->number;
	e->thread = s->thread;
	s->side->naming[s->at] = 0;
	bool more = fetch(s);
	e->t0 = to_ns(s, t_begin);
	b->n += e->thread != UINT32_MAX;
	return more;
}

/* A call or anything else that is not a name. True: the series goes on. */
static bool take_event(struct tfh_weave *m, struct series *s, struct tfh_block *b)
{
	struct tfh_entry *e = &b->entry[b->n];
	struct tfh_event *ev = &b->own[b->n];
	struct side *side = s->side;
	uint64_t t_begin = s->rec.t_begin;
	bool more, copy;
	struct tfh_rec rec;

	fill(ev, &s->rec, fn_of(s->file, s->rec.fn), s->process);
	e->ev = ev;
	e->t1 = s->t1;
	e->number = s->number;
	e->thread = s->thread;
	if (ev->kind == TFT_OPEN) {
		const struct tfh_proc *p = &m->run->proc[s->process];
		if (ev->ctx < p->n_thread && p->thread[ev->ctx])
			e->thread = p->thread[ev->ctx] - 1;
	}
	side->naming[s->at] = 0;
	if ((ev->fn->family == TFH_FAM_ALLOC || ev->fn->family == TFH_FAM_FREE) &&
	    tfh_memory_event(&side->memory, ev->fn, &s->rec))
		tfh_err_set(&m->err, -ENOMEM, "out of memory");
	copy = ev->fn->family == TFH_FAM_COPY && ev->kind == TFT_CALL;
	if (copy)
		rec = s->rec;
	more = fetch(s);
	e->t0 = to_ns(s, t_begin);
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

/* Takes the next record of a series. True: the series goes on. */
static inline bool take(struct tfh_weave *m, struct series *s, struct tfh_block *b)
{
	if (s->next_number) {
		if (s->number < *s->next_number)
			return fetch(s); /* found twice */
		*s->next_number = s->number + 1;
	}
	if (__builtin_expect(s->plain, 1))
		return take_plain(s, b);
	if (s->rec.kind != TFT_NAME && s->rec.kind != TFT_EXT)
		return take_event(m, s, b);
	if (s->rec.kind == TFT_NAME)
		s->side->naming[s->at] = 1;
	if (s->side->naming[s->at])
		note(b, s);
	return fetch(s);
}

bool tfh_weave_fill(struct tfh_weave *m, struct tfh_block *b)
{
	b->n = b->n_notes = 0;
	take_back(m, b);
	while (b->n < TFH_BLOCK_EVENTS && b->n_notes < TFH_BLOCK_NOTES && !m->err.code) {
		if (!m->n || m->heap[0]->t1 >= m->due) {
			int rc = open_due(m);
			if (rc)
				tfh_err_set(&m->err, rc, "out of memory");
			if (rc || !m->n)
				return false;
		}
		/* The earliest series is followed while it stays the earliest. */
		struct series *s = m->heap[0];
		const struct series *other = m->n > 1 ? m->heap[1] : NULL;
		if (m->n > 2 && before(m->heap[2], other))
			other = m->heap[2];
		bool more;
		do
			more = take(m, s, b);
		while (more && s->t1 < m->due && (!other || before(s, other)) &&
		       b->n < TFH_BLOCK_EVENTS && b->n_notes < TFH_BLOCK_NOTES && !m->err.code);
		if (!more) {
			m->heap[0] = m->heap[--m->n];
			end_series(m, s);
		}
		if (m->n)
			sift_down(m);
	}
	return !m->err.code;
}

const struct tfh_err *tfh_weave_error(const struct tfh_weave *m)
{
	return &m->err;
}
