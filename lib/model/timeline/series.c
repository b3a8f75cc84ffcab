#include "model/timeline/series.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#define KEPT_BYTES (64u << 20)

__attribute__((noinline)) void tfh_new_line(const struct tfh_model_series *s, uint64_t block)
{
	const struct tft_reader *reader = s->file->reader;
	struct tfh_tick_line *l = &s->side->line;
	uint64_t a = tft_monotonic_ns(reader, block << TFH_LINE_BITS);
	uint64_t b = tft_monotonic_ns(reader, (block + 1) << TFH_LINE_BITS);

	l->block = block;
	l->ns = (int64_t)a + s->shift;
	l->rate = (double)(int64_t)(b - a) / (double)(1u << TFH_LINE_BITS);
}

static void to_ns(const struct tfh_model_series *s, const uint64_t *ticks, uint32_t n, int64_t *ns)
{
	if (tfh_ticks_ns(&s->side->line, ticks, n, ns))
		return;
	for (uint32_t i = 0; i < n; i++)
		ns[i] = tfh_series_ns(s, ticks[i]);
}

/* Whether all records of the group are launches on one stream. */
static bool launches(const struct tfh_model_series *s)
{
	uint32_t stream = s->stencil[s->shape[0]].ev.stream;

	for (uint32_t i = 0; i < s->n; i += tfh_same_shapes(&s->shape[i], s->n - i)) {
		const struct tfh_stencil *x = &s->stencil[s->shape[i]];
		if (!x->plain || !x->launch || x->ev.stream != stream)
			return false;
	}
	return true;
}

/* Summarises the group if it is a row. */
static void sum_up(struct tfh_model_series *s)
{
	s->row->n = 0;
	if (!launches(s) || !tfh_row_sum(s->t0_ns, s->t1_ns, s->n, s->row))
		return;
	s->row->last = s->end[s->n - 1];
	s->row->n = s->n;
}

void tfh_series_decode(struct tfh_model_series *s)
{
	s->n = tft_next_many(&s->cursor, s->begin, s->end, s->shape, s->room);
	to_ns(s, s->begin, s->n, s->t0_ns);
	to_ns(s, s->end, s->n, s->t1_ns);
	s->decoded = true;
}

bool tfh_series_look(struct tfh_model_series *s)
{
	const struct tft_events *ev = s->chunk->events;

	s->at = 0;
	s->row++;
	s->before = s->cursor.t;
	if (s->chunk->rows_known && s->cursor.pos < s->cursor.end && s->row->n) {
		s->n = s->row->n;
		s->decoded = false;
		s->t1_ns[0] = s->row->first;
		s->shape[0] = (uint16_t)tft_shape_of(ev, s->cursor.pos);
		return true;
	}
	tfh_series_decode(s);
	if (s->n && !s->chunk->rows_known)
		sum_up(s);
	return s->n;
}

void tfh_series_times(const struct tfh_model_series *s, uint32_t pos, uint64_t before, uint32_t n,
		      int64_t *t0, int64_t *t1, uint16_t *shape)
{
	struct tft_cursor c;
	uint64_t begin[TFT_MANY], end[TFT_MANY];

	c.ev = s->cursor.ev;
	c.pos = pos;
	c.end = pos + n;
	c.t = before;
	c.number = 0;
	tft_next_many(&c, begin, end, shape, n);
	to_ns(s, begin, n, t0);
	to_ns(s, end, n, t1);
}

void tfh_series_complete(struct tfh_model_series *s)
{
	const struct tft_times t = {s->begin[s->at], s->end[s->at], s->shape[s->at]};

	tft_complete(&s->cursor, &t, s->cursor.pos - s->n + s->at, s->number, &s->rec);
}

struct tfh_model_series *tfh_series_new(struct tfh_run *run, struct tfh_model_side *side,
					uint32_t process, uint32_t file,
					struct tfh_open_chunk *chunk, uint32_t number,
					struct tfh_row_sum *row)
{
	const struct tft_run *r = tft_run(chunk->events, number);
	const struct tfh_model_proc *p = &run->proc[process];
	uint32_t room = r->count < TFT_MANY ? r->count : TFT_MANY;
	struct tfh_model_series *s =
		calloc(1, sizeof(*s) + room * (4 * sizeof(*s->column) + sizeof(*s->shape)));

	if (!s)
		return NULL;
	s->room = room;
	s->begin = s->column;
	s->end = s->begin + room;
	s->t0_ns = (int64_t *)(s->end + room);
	s->t1_ns = s->t0_ns + room;
	s->shape = (uint16_t *)(s->t1_ns + room);
	s->file = &run->file[file];
	s->row = row;
	s->process = process;
	s->side = side;
	s->shift = p->shift;
	s->chunk = chunk;
	s->stencil = chunk->stencils->v;
	s->index = r->thread < p->n_thread ? r->thread : p->n_thread;
	s->thread = tfh_thread_at(p, s->index);
	/* The numbers of the flusher's and salvage's own series start again in every file. */
	if (s->index != 0 && s->index != p->n_thread && side->next_number)
		s->next_number = &side->next_number[s->index];
	tft_cursor_init(&s->cursor, chunk->events, number);
	s->number = s->cursor.number - 1;
	return s;
}

/* ---- stencils ---- */

const struct tfh_fn_info *tfh_series_fn(const struct tfh_file *f, uint32_t fn)
{
	static const struct tfh_fn_info none = {"", 0, 0, 0, 0};

	return fn < tft_head(f->reader)->fn_count ? f->fn[fn] : &none;
}

/* Whether an event depends on nothing around it and has no times among its words. */
static bool is_plain(const struct tfh_event *ev)
{
	uint8_t family = ev->fn->family;

	return ev->kind == TFT_CALL && !(ev->flags & TFT_F_REPEAT) && family != TFH_FAM_ALLOC &&
	       family != TFH_FAM_FREE && family != TFH_FAM_COPY && ev->fn->args != TFH_ARGS_GETNEXT;
}

struct tfh_stencils *tfh_stencils_make(struct tfh_stencils *t, const struct tfh_file *f,
				       const struct tft_events *events)
{
	if (!t || t->cap < events->n_shapes) {
		free(t);
		t = malloc(sizeof(*t) + events->n_shapes * sizeof(*t->v));
		if (!t)
			return NULL;
		t->cap = events->n_shapes;
	}
	for (uint32_t i = 0; i < events->n_shapes; i++) {
		const struct tfh_rec *rec = &events->shapes[i];
		tfh_series_event(&t->v[i].ev, rec, tfh_series_fn(f, rec->fn), f->process);
		t->v[i].plain = tft_shape_is_whole(events, i) && is_plain(&t->v[i].ev);
		t->v[i].launch = tfh_is_plain_launch(&t->v[i].ev);
	}
	return t;
}

/* ---- decoding chunks ahead ---- */

struct unpacked {
	struct tft_events *events;
	struct tfh_row_sum *row; /* NULL: not requested when it was decompressed */
	struct tfh_lost lost;
	int rc;
};

struct tfh_unpack {
	struct tfh_run *run;
	const struct tfh_model_proc *p;
	uint32_t kept, taken; /* chunks kept by an earlier pass; those already read */
	bool sums;	      /* rows of chunks are requested */
	struct unpacked ring[TFH_AHEAD_MOST];
	struct tfh_ahead ahead;
};

/* A damaged chunk's header is read into memory of its file's reader, which threads share. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

struct tft_events *tfh_unpack_one(struct tfh_run *run, const struct tfh_chunk *c, int *rc,
				  struct tfh_lost *lost)
{
	struct tft_events *events;
	struct tfh_err err = {0};

	*rc = 0;
	if (!tft_events_open(run->file[c->file].reader, c->chunk, &events, &err)) {
		__atomic_fetch_add(run->unpacked, events->events, __ATOMIC_RELAXED);
		return events;
	}
	*rc = err.code == -ENOMEM ? -ENOMEM : 0;
	if (!*rc) {
		pthread_mutex_lock(&one_at_a_time);
		tfh_chunk_lost(run, c, lost);
		pthread_mutex_unlock(&one_at_a_time);
	}
	return NULL;
}

/* Decodes all records of a chunk to summarise them. NULL when out of memory; the reader then does
 * it. */
static struct tfh_row_sum *sum_chunk(struct tfh_run *run, uint32_t process,
				     const struct tfh_chunk *c, struct tft_events *events)
{
	struct tfh_model_side side = {.line = {.block = TFH_NO_LINE}};
	struct tfh_row_sum *rows = malloc((tfh_most_groups(events) + 1) * sizeof(*rows)),
			   *row = rows;
	struct tfh_open_chunk o = {
		.events = events, .stencils = tfh_stencils_make(NULL, &run->file[c->file], events)};
	bool good = rows && o.stencils;

	for (uint32_t i = 0; i < events->n_runs && good; i++) {
		struct tfh_model_series *s =
			tfh_series_new(run, &side, process, c->file, &o, i, row);
		row += tfh_groups_of(events->runs[i].count);
		good = s != NULL;
		while (good && tfh_series_look(s))
			;
		free(s);
	}
	free(o.stencils);
	if (good)
		return rows;
	free(rows);
	return NULL;
}

static bool fill(void *arg, void *block, uint64_t i)
{
	struct tfh_unpack *u = arg;
	struct unpacked *x = &u->ring[i % TFH_AHEAD_MOST];
	const struct tfh_chunk *c = &u->p->chunk[u->kept + i];

	x->row = NULL;
	x->events = tfh_unpack_one(u->run, c, &x->rc, &x->lost);
	if (x->events && __atomic_load_n(&u->sums, __ATOMIC_RELAXED))
		x->row = sum_chunk(u->run, (uint32_t)(u->p - u->run->proc), c, x->events);
	*(struct unpacked **)block = x;
	return u->kept + i + 1 < u->p->n_chunk;
}

void tfh_unpack_sums(struct tfh_unpack *u)
{
	__atomic_store_n(&u->sums, true, __ATOMIC_RELAXED);
}

/* Memory of a chunk that is kept; its columns are most of it. */
static size_t size_of(const struct tft_events *events)
{
	return events->payload_cap + events->shapes_cap +
	       tfh_most_groups(events) * sizeof(struct tfh_row_sum);
}

void tfh_unpacked_free(struct tfh_run *run)
{
	if (!run->kept_bytes)
		return;
	const struct tfh_model_proc *p = &run->proc[run->kept_of];
	for (uint32_t i = 0; i < p->n_chunk; i++) {
		tft_events_close(p->chunk[i].unpacked);
		free(p->chunk[i].row);
		p->chunk[i].unpacked = NULL;
		p->chunk[i].row = NULL;
	}
	run->kept_bytes = 0;
}

void tfh_unpack_keep(struct tfh_unpack *u, struct tfh_chunk *c, struct tft_events *events,
		     struct tfh_row_sum *row)
{
	struct tfh_run *run = u->run;

	if (c->unpacked || run->kept_bytes + size_of(events) > KEPT_BYTES) {
		tft_events_close(events);
		free(row);
		return;
	}
	c->unpacked = events;
	c->row = row;
	run->kept_bytes += size_of(events);
}

static struct tft_events *take_kept(struct tfh_unpack *u, struct tfh_row_sum **row)
{
	struct tfh_chunk *c = &u->p->chunk[u->taken++];
	struct tft_events *events = c->unpacked;

	*row = c->row;
	c->row = NULL;
	c->unpacked = NULL;
	u->run->kept_bytes -= size_of(events);
	__atomic_fetch_add(u->run->unpacked, events->events, __ATOMIC_RELAXED);
	return events;
}

/* How many threads decompress and decode. */
static uint32_t decoders(const struct tfh_run *run)
{
	cpu_set_t cpus;
	uint32_t n = run->decoders;

	if (!n)
		n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (uint32_t)CPU_COUNT(&cpus);
	return n < TFH_AHEAD_THREADS ? n : TFH_AHEAD_THREADS;
}

int tfh_unpack_open(struct tfh_run *run, uint32_t process, struct tfh_unpack **out)
{
	struct tfh_unpack *u = calloc(1, sizeof(*u));

	*out = u;
	if (!u)
		return -ENOMEM;
	u->run = run;
	u->p = &run->proc[process];
	if (run->kept_of != process)
		tfh_unpacked_free(run);
	run->kept_of = process;
	while (u->kept < u->p->n_chunk && u->p->chunk[u->kept].unpacked)
		u->kept++;
	uint32_t left = u->p->n_chunk - u->kept, threads = decoders(run);
	if (!left)
		return 0;
	/* A short pass is over before a thread would have started. */
	struct tfh_ahead_plan plan = {.fill = fill,
				      .arg = u,
				      .bytes = sizeof(struct unpacked *),
				      .blocks = left > 2 ? 2 * threads + 2 : 1,
				      .threads = threads,
				      .count = left};
	return tfh_ahead_start(&u->ahead, &plan);
}

void tfh_unpack_close(struct tfh_unpack *u)
{
	if (!u)
		return;
	tfh_ahead_stop(&u->ahead);
	for (uint32_t i = 0; i < TFH_AHEAD_MOST; i++) {
		tft_events_close(u->ring[i].events);
		free(u->ring[i].row);
	}
	free(u);
}

struct tft_events *tfh_unpack_next(struct tfh_unpack *u, struct tfh_row_sum **row, int *rc,
				   struct tfh_lost *lost)
{
	struct unpacked **block;
	struct tft_events *events;

	*rc = 0;
	if (u->taken < u->kept)
		return take_kept(u, row);
	block = tfh_ahead_next(&u->ahead);
	if (!block)
		return NULL;
	events = (*block)->events;
	*row = (*block)->row;
	(*block)->events = NULL;
	(*block)->row = NULL;
	*lost = (*block)->lost;
	*rc = (*block)->rc;
	return events;
}
