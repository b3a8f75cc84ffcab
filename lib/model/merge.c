/*
 * One time line out of many series: a heap over the runs of the chunks that are open. A chunk is
 * opened when the next event could be one of its own (its header says the smallest end time in it)
 * and closed with its last record, so few are open at any time. Within a process ticks are
 * compared, between processes nanoseconds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

/* Ticks are turned into nanoseconds by straight lines over blocks of about 20 ms at 3 GHz, between
 * points of the file's own clock table: the same for every record, and cheap. */
#define BLOCK_BITS 26

struct line {
	uint64_t block;
	int64_t ns;
	double rate; /* ns per tick */
	bool valid;
};

struct open_chunk {
	struct tft_events *events;
	uint32_t runs; /* that have records left */
};

struct series {
	struct tft_cursor cursor;
	struct tfh_rec rec; /* the next one */
	int64_t t1;
	uint32_t file, thread, run_thread; /* thread: of the run, run_thread: in the process */
	uint64_t number;
	struct open_chunk *chunk;
};

/* What is kept per process during a pass. */
struct side {
	uint32_t next_chunk;
	uint64_t *next_number; /* by thread: first record that has not been seen */
	struct tfh_name_part *part;
	struct tfh_memory memory;
	struct line line;
};

struct tfh_merge {
	struct tfh_run *run;
	uint32_t only;
	struct side *side; /* by process */
	struct series **heap;
	uint32_t n, cap;
	struct tfh_err err;
};

static int64_t to_ns(struct tfh_merge *m, uint32_t file, uint64_t ticks)
{
	const struct tfh_file *f = &m->run->file[file];
	struct tfh_proc *p = &m->run->proc[f->process];
	struct line *l = &m->side[f->process].line;
	uint64_t block = ticks >> BLOCK_BITS;

	if (!l->valid || l->block != block) {
		uint64_t a = tft_monotonic_ns(f->reader, block << BLOCK_BITS);
		uint64_t b = tft_monotonic_ns(f->reader, (block + 1) << BLOCK_BITS);
		l->block = block;
		l->ns = (int64_t)a + p->shift;
		l->rate = (double)(int64_t)(b - a) / (double)(1u << BLOCK_BITS);
		l->valid = true;
	}
	return l->ns + (int64_t)((double)(ticks & ((1u << BLOCK_BITS) - 1)) * l->rate);
}

static bool before(const struct series *a, const struct series *b)
{
	if (a->t1 != b->t1)
		return a->t1 < b->t1;
	if (a->thread != b->thread)
		return a->thread < b->thread;
	return a->number < b->number;
}

static void sift_down(struct tfh_merge *m)
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

static int push(struct tfh_merge *m, struct series *x)
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
static bool fetch(struct tfh_merge *m, struct series *s)
{
	s->number = s->cursor.number;
	if (!tft_next(&s->cursor, &s->rec))
		return false;
	s->t1 = to_ns(m, s->file, s->rec.t_end);
	return true;
}

static void end_series(struct tfh_merge *m, struct series *s)
{
	if (--s->chunk->runs == 0) {
		tft_events_close(s->chunk->events);
		free(s->chunk);
	}
	free(s);
	(void)m;
}

static int open_chunk(struct tfh_merge *m, uint32_t process, const struct tfh_chunk *c)
{
	struct tfh_proc *p = &m->run->proc[process];
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
	uint32_t n = tft_run_count(o->events);
	o->runs = n + 1;
	for (uint32_t i = 0; i < n && !rc; i++) {
		const struct tft_run *r = tft_run(o->events, i);
		struct series *s = calloc(1, sizeof(*s));
		if (!s) {
			rc = -ENOMEM;
			break;
		}
		s->file = c->file;
		s->chunk = o;
		s->run_thread = r->thread;
		s->thread = r->thread < p->n_thread && p->thread[r->thread]
				    ? p->thread[r->thread] - 1
				    : UINT32_MAX;
		tft_cursor_init(&s->cursor, o->events, i);
		if (!fetch(m, s)) {
			end_series(m, s);
			continue;
		}
		rc = push(m, s);
	}
	if (--o->runs == 0) {
		tft_events_close(o->events);
		free(o);
	}
	return rc;
}

/* Opens every chunk that could hold the next event. */
static int open_due(struct tfh_merge *m)
{
	struct tfh_run *run = m->run;

	for (uint32_t i = 0; i < run->n_proc; i++) {
		struct tfh_proc *p = &run->proc[i];
		struct side *side = &m->side[i];
		if (m->only != UINT32_MAX && m->only != i)
			continue;
		while (side->next_chunk < p->n_chunk) {
			const struct tfh_chunk *c = &p->chunk[side->next_chunk];
			if (m->n && m->heap[0]->t1 < c->first_ns)
				break;
			side->next_chunk++;
			int rc = open_chunk(m, i, c);
			if (rc)
				return rc;
		}
	}
	return 0;
}

int tfh_merge_open(struct tfh_run *run, uint32_t process, struct tfh_merge **out,
		   struct tfh_err *err)
{
	struct tfh_merge *m = calloc(1, sizeof(*m));

	*out = NULL;
	if (m)
		m->side = calloc(run->n_proc + 1, sizeof(*m->side));
	if (!m || !m->side) {
		free(m);
		return tfh_err_set(err, -ENOMEM, "out of memory");
	}
	m->run = run;
	m->only = process;
	*out = m;
	for (uint32_t i = 0; i < run->n_proc; i++) {
		size_t n = run->proc[i].n_thread + 1;
		m->side[i].next_number = calloc(n, sizeof(*m->side[i].next_number));
		m->side[i].part = calloc(n, sizeof(*m->side[i].part));
		if (!m->side[i].next_number || !m->side[i].part) {
			tfh_merge_close(m);
			*out = NULL;
			return tfh_err_set(err, -ENOMEM, "out of memory");
		}
	}
	return 0;
}

void tfh_merge_close(struct tfh_merge *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n; i++)
		end_series(m, m->heap[i]);
	for (uint32_t i = 0; i < m->run->n_proc; i++) {
		free(m->side[i].next_number);
		free(m->side[i].part);
		tfh_memory_free(&m->side[i].memory);
	}
	free(m->side);
	free(m->heap);
	free(m);
}

int tfh_merge_error(const struct tfh_merge *m, struct tfh_err *err)
{
	if (m->err.code && err)
		*err = m->err;
	return m->err.code;
}

/* The EXT record of a copy, if the next record of the series is one. */
static const struct tft_ext_copy *copy_ext(const struct tfh_rec *rec, struct series *s, bool more)
{
	if (!(rec->flags & TFT_F_EXT) || !more || s->rec.kind != TFT_EXT)
		return NULL;
	return (const struct tft_ext_copy *)((const char *)&s->rec +
					     offsetof(struct tfh_rec, stream));
}

static void fill(struct tfh_merge *m, struct series *s, const struct tfh_rec *rec, int64_t t1,
		 uint64_t number, struct tfh_event *ev)
{
	const struct tft_head *head = tft_head(m->run->file[s->file].reader);
	uint32_t process = m->run->file[s->file].process;
	static const struct tfh_fn_info none = {"", 0, 0, 0, 0};

	memset(ev, 0, sizeof(*ev));
	ev->fn = rec->fn < head->fn_count ? m->run->file[s->file].fn[rec->fn] : &none;
	ev->t1 = t1;
	ev->t0 = to_ns(m, s->file, rec->t_begin);
	ev->process = process;
	ev->thread = s->thread;
	ev->kind = rec->kind;
	ev->flags = rec->flags;
	ev->depth = rec->depth;
	ev->result = rec->result;
	ev->stream = rec->stream;
	ev->ctx = rec->ctx;
	ev->stack = rec->stack;
	memcpy(ev->w, rec->w, sizeof(ev->w));
	ev->number = number;
	/* Tick counts become nanoseconds. */
	double rate = m->side[process].line.rate;
	if (rec->kind == TFT_AGG)
		for (int i = 0; i < 3; i++)
			ev->w[i] = (uint64_t)((double)rec->w[i] * rate);
	else if (rec->kind == TFT_CALL && ev->fn->args == TFH_ARGS_GETNEXT)
		ev->w[2] = (uint64_t)((double)rec->w[2] * rate);
	if (rec->kind == TFT_OPEN) {
		const struct tfh_proc *p = &m->run->proc[process];
		if (rec->ctx < p->n_thread && p->thread[rec->ctx])
			ev->thread = p->thread[rec->ctx] - 1;
	}
}

/* Takes the record at the top of the heap. True: *ev is to be delivered. */
static bool take(struct tfh_merge *m, struct tfh_event *ev)
{
	struct series *s = m->heap[0];
	struct side *side = &m->side[m->run->file[s->file].process];
	struct tfh_rec rec = s->rec;
	int64_t t1 = s->t1;
	uint64_t number = s->number;
	struct tfh_proc *p = &m->run->proc[m->run->file[s->file].process];
	uint32_t at = s->run_thread < p->n_thread ? s->run_thread : p->n_thread;
	bool own = at == 0 || at == p->n_thread; /* the flusher's and a salvage's series: numbered
						    anew in every file */
	bool more = fetch(m, s), deliver = false;
	int rc = 0;

	if (!own && number < side->next_number[at]) {
		/* found twice */
	} else if (rec.kind == TFT_NAME) {
		rc = tfh_names_add(&m->run->arena, &p->names, &rec, &side->part[at]);
	} else if (rec.kind == TFT_EXT) {
		tfh_names_part(&side->part[at], &rec);
	} else {
		fill(m, s, &rec, t1, number, ev);
		side->part[at].text = NULL;
		if (ev->fn->family == TFH_FAM_ALLOC || ev->fn->family == TFH_FAM_FREE)
			rc = tfh_memory_event(&side->memory, ev->fn, &rec);
		if (ev->fn->family == TFH_FAM_COPY && rec.kind == TFT_CALL)
			tfh_memory_copy(&side->memory, ev->fn, &rec, copy_ext(&rec, s, more),
					&ev->dir, &ev->pageable);
		deliver = !(rec.flags & TFT_F_REPEAT) && ev->thread != UINT32_MAX;
	}
	if (!own && number >= side->next_number[at])
		side->next_number[at] = number + 1;
	if (rc)
		tfh_err_set(&m->err, rc, "out of memory");
	if (!more) {
		m->heap[0] = m->heap[--m->n];
		end_series(m, s);
	}
	if (m->n)
		sift_down(m);
	return deliver;
}

bool tfh_merge_next(struct tfh_merge *m, struct tfh_event *ev)
{
	while (!m->err.code) {
		int rc = open_due(m);
		if (rc)
			tfh_err_set(&m->err, rc, "out of memory");
		if (rc || !m->n)
			return false;
		if (take(m, ev))
			return true;
	}
	return false;
}
