/* Returns the rows of many chunks in order of their start. Chunks overlap little, so few are open
 * at a time. A thread decodes them ahead. */
#include <errno.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "model/ahead.h"
#include "model/ops/device_ops.h"

/* ---- the clock of a table ---- */

/* A clock that deviates this much within a second was set: no clock drifts by a millisecond. */
#define STEP_NS 1000000

bool tfh_axis_step(const struct tfh_axis *a, uint32_t i)
{
	int64_t d = (a->table[i + 1] - a->table[i]) - (a->run[i + 1] - a->run[i]);

	return d > STEP_NS || d < -STEP_NS;
}

int tfh_axis_make(struct tfh_axis *a, const struct tfh_run *run, uint32_t file,
		  const struct tft_table_view *v)
{
	*a = (struct tfh_axis){.steady = true};
	a->table = malloc((v->pairs + 1) * 2 * sizeof(*a->table));
	if (!a->table)
		return -ENOMEM;
	a->run = a->table + v->pairs + 1;
	for (uint32_t i = 0; i < v->pairs; i++) {
		struct tft_table_pair p = tft_table_pair_at(v, i);
		a->table[a->n] = (int64_t)p.ns;
		a->run[a->n] = tfh_run_ns(run, file, p.ticks);
		/* Readings must be in order of time. */
		if (a->n && a->run[a->n] <= a->run[a->n - 1])
			continue;
		a->steady &= !a->n || a->table[a->n] > a->table[a->n - 1];
		a->n++;
	}
	return 0;
}

void tfh_axis_free(struct tfh_axis *a)
{
	free(a->table);
}

/* The last reading not after t, or the first one. Skips readings that a clock set back has made
 * invalid. */
static uint32_t reading_at(const struct tfh_axis *a, int64_t t)
{
	uint32_t hi = a->n;

	if (a->steady)
		return (uint32_t)TFH_BISECT(i, 1, hi, a->table[i] <= t) - 1;
	while (hi-- > 0)
		if (a->table[hi] <= t)
			return hi;
	return 0;
}

/* Keeps the line through reading i for times in [from, to). */
static void keep_line(struct tfh_axis *a, uint32_t i, double rate, int64_t from, int64_t to)
{
	a->from = from;
	a->to = to;
	a->base = a->table[i];
	a->base_run = a->run[i];
	a->rate = rate;
}

int64_t tfh_axis_find(struct tfh_axis *a, uint64_t ns)
{
	int64_t t = (int64_t)ns;

	if (!a->n)
		return t;
	uint32_t i = reading_at(a, t);
	if (a->n == 1)
		keep_line(a, 0, 1, INT64_MIN, INT64_MAX);
	if (i + 1 == a->n && i > 0)
		i--; /* after the last reading: its line continues */
	if (i + 1 == a->n || tfh_axis_step(a, i)) {
		/* After a clock that was set forward: count back from the next reading. */
		if (i + 1 < a->n && t - a->table[i] > a->run[i + 1] - a->run[i])
			i++;
		return a->run[i] + (t - a->table[i]);
	}
	int64_t dt = a->table[i + 1] - a->table[i];
	if (dt <= 0)
		return a->run[i] + (t - a->table[i]);
	double rate = (double)(a->run[i + 1] - a->run[i]) / (double)dt;
	/* Readings close together do not determine the rate well. */
	if (dt < 100000000 && (t < a->table[i] || t > a->table[i + 1]))
		rate = 1;
	if (a->steady && t >= a->table[i] && t < a->table[i + 1])
		keep_line(a, i, rate, a->table[i], a->table[i + 1]);
	else if (a->steady && i + 2 == a->n && t > a->table[i + 1])
		keep_line(a, i, rate, a->table[i + 1] + 1, INT64_MAX);
	return a->run[i] + (int64_t)((double)(t - a->table[i]) * rate);
}

/* ---- chunks ---- */

/* The column of each cell. */
static const uint8_t gpus_column[TFH_CELLS] = {[TFH_CELL_CORRELATION] = TFT_GPUS_CORRELATION,
					       [TFH_CELL_BYTES] = TFT_GPUS_BYTES,
					       [TFH_CELL_GRID] = TFT_GPUS_GRID,
					       [TFH_CELL_BLOCK] = TFT_GPUS_BLOCK,
					       [TFH_CELL_NODE] = TFT_GPUS_NODE,
					       [TFH_CELL_CTX] = TFT_GPUS_CTX,
					       [TFH_CELL_STREAM] = TFT_GPUS_STREAM,
					       [TFH_CELL_GRAPH] = TFT_GPUS_GRAPH,
					       [TFH_CELL_DEVICE] = TFT_GPUS_DEVICE,
					       [TFH_CELL_KIND] = TFT_GPUS_KIND,
					       [TFH_CELL_SRC] = TFT_GPUS_SRC,
					       [TFH_CELL_DST] = TFT_GPUS_DST,
					       [TFH_CELL_FLAGS] = TFT_GPUS_FLAGS};
static const uint8_t drvr_column[TFH_CELLS] = {
	[TFH_CELL_CORRELATION] = TFT_GPUS_CORRELATION, [TFH_CELL_TID] = TFT_DRVR_TID};

/* Memory of one open chunk, reused for the next one. */
struct open_table {
	uint64_t *memory;
	uint32_t cap; /* capacity in rows */
	uint32_t n, at;
	uint32_t number; /* of the chunk; decides between rows with equal start */
	int64_t *t0, *t1;
	uint32_t *order;   /* row indexes by t0; NULL: already sorted */
	const char **name; /* NULL: no row has a name */
	struct tfh_cells cells;
};

/* Chunks that are decoded ahead. */
#define ROWS_AHEAD 2u

/* A chunk that was read; `table` is NULL where it is damaged or empty. */
struct read_chunk {
	struct open_table *table;
	int err;
};

struct tfh_rows {
	struct tfh_run *run;
	bool gpus;
	const struct tfh_table_chunk *chunk;
	uint32_t n, next;
	struct tfh_ahead ahead;
	struct read_chunk ring[ROWS_AHEAD];
	uint32_t made;
	pthread_mutex_t *reading; /* lock for reading chunks; NULL: no second thread */
	/* Heap by start: no chunk starts before its parent, (i - 1) / 2. */
	struct open_table **open;
	uint32_t n_open, cap_open;
	struct open_table *best; /* open[0], while its row is returned */
	struct open_table *spare;
	pthread_mutex_t spares; /* lock for `spare` */
	struct tfh_row row;	/* row of `best` */
	struct tfh_texts *texts;
	int err;
};

/* Arrays of 8 bytes per row: two of times, names, order, and the cells. */
#define ARRAYS (TFH_CELLS + 4)

/* Exchanges the spare buffer for another one. */
static struct open_table *swap_spare(struct tfh_rows *r, struct open_table *o)
{
	pthread_mutex_lock(&r->spares);
	struct open_table *old = r->spare;
	r->spare = o;
	pthread_mutex_unlock(&r->spares);
	return old;
}

static struct open_table *new_table(struct tfh_rows *r, uint32_t rows)
{
	struct open_table *o = swap_spare(r, NULL);

	if (!o && !(o = calloc(1, sizeof(*o))))
		return NULL;
	if (o->cap < rows) {
		free(o->memory);
		o->cap = rows;
		o->memory = malloc((size_t)rows * ARRAYS * sizeof(*o->memory));
		if (!o->memory) {
			free(o);
			return NULL;
		}
	}
	o->n = rows;
	o->at = 0;
	o->order = NULL;
	o->name = NULL;
	return o;
}

static void free_table(struct open_table *o)
{
	if (o)
		free(o->memory);
	free(o);
}

static int by_start(const void *a, const void *b, void *arg)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const int64_t *t0 = arg;

	if (t0[x] != t0[y])
		return t0[x] < t0[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Rows come in the order in which ops ended, so they are nearly sorted by start, and each moves up
 * a few places. If that takes more moves than sorting would, sorts them. */
static void sort_rows(struct open_table *o, uint32_t *order)
{
	uint64_t moves = 0;
	uint32_t i = 1;

	while (i < o->n && o->t0[i] >= o->t0[i - 1])
		i++;
	if (i >= o->n)
		return;
	o->order = order;
	for (uint32_t k = 0; k < o->n; k++)
		order[k] = k;
	for (; i < o->n && moves <= 16ull * o->n; i++) {
		uint32_t k = i;
		for (; k && o->t0[i] < o->t0[order[k - 1]]; k--)
			order[k] = order[k - 1];
		order[k] = i;
		moves += i - k;
	}
	if (moves > 16ull * o->n)
		qsort_r(order, o->n, sizeof(*order), by_start, o->t0);
}

#define NEAR_NAMES 64u

/* Converts offsets in the chunk's heap to interned texts; few different ones are used. */
static int take_names(struct tfh_rows *r, struct open_table *o, const struct tft_table_view *v,
		      uint64_t *offset)
{
	const char **name = (const char **)offset, *kept[NEAR_NAMES];
	uint64_t known[NEAR_NAMES] = {0}, same;

	static_assert(sizeof(*name) == sizeof(*offset), "names lie where the offsets were");
	if (!tft_table_values(v, TFT_GPUS_NAME, offset, &same)) {
		if (!same)
			return 0;
		for (uint32_t i = 0; i < v->rows; i++)
			offset[i] = same;
	}
	o->name = name;
	for (uint32_t i = 0; i < v->rows; i++) {
		uint64_t at = offset[i];
		uint32_t near = (uint32_t)(at ^ at >> 6) % NEAR_NAMES;
		if (!at) {
			name[i] = "";
			continue;
		}
		if (known[near] != at) {
			known[near] = at;
			kept[near] = tfh_texts_keep(r->texts, tft_table_text(v, (uint32_t)at));
			if (!kept[near])
				return -ENOMEM;
		}
		name[i] = kept[near];
	}
	return 0;
}

static int64_t *run_times(struct tfh_axis *axis, uint64_t *values, uint32_t n)
{
	int64_t *t = (int64_t *)values;

	for (uint32_t i = 0; i < n; i++)
		t[i] = tfh_axis_ns(axis, values[i]);
	return t;
}

static int fill(struct tfh_rows *r, struct open_table *o, struct tfh_axis *axis,
		const struct tft_table_view *v)
{
	const uint8_t *column = r->gpus ? gpus_column : drvr_column;
	uint64_t *free_at = o->memory;

	tft_table_times(v, free_at, free_at + o->n);
	o->t0 = run_times(axis, free_at, o->n);
	o->t1 = run_times(axis, free_at += o->n, o->n);
	for (uint32_t i = 0; i < o->n; i++)
		o->t1[i] = o->t1[i] < o->t0[i] ? o->t0[i] : o->t1[i];
	sort_rows(o, (uint32_t *)(free_at += o->n));
	for (uint32_t c = 0; c < TFH_CELLS; c++) {
		uint64_t *values = free_at + o->n;
		bool differ =
			column[c] && tft_table_values(v, column[c], values, &o->cells.same[c]);
		o->cells.v[c] = differ ? values : NULL;
		free_at += differ ? o->n : 0;
	}
	return r->gpus ? take_names(r, o, v, free_at + o->n) : 0;
}

static uint32_t place(const struct open_table *o)
{
	return o->order ? o->order[o->at] : o->at;
}

static bool before(const struct open_table *a, const struct open_table *b)
{
	int64_t x = a->t0[place(a)], y = b->t0[place(b)];

	return x != y ? x < y : a->number < b->number;
}

/* Copies of files can make many chunks overlap. */
static void add_open(struct tfh_rows *r, struct open_table *o)
{
	uint32_t i = r->n_open++;

	for (; i && before(o, r->open[(i - 1) / 2]); i = (i - 1) / 2)
		r->open[i] = r->open[(i - 1) / 2];
	r->open[i] = o;
}

/* Puts `o` first in the heap and moves it to its place. */
static void settle(struct tfh_rows *r, struct open_table *o)
{
	uint32_t i = 0, child;

	for (; (child = 2 * i + 1) < r->n_open; i = child) {
		if (child + 1 < r->n_open && before(r->open[child + 1], r->open[child]))
			child++;
		if (!before(r->open[child], o))
			break;
		r->open[i] = r->open[child];
	}
	r->open[i] = o;
}

/* Decodes a chunk. *out stays NULL if it is damaged or empty. */
static int make_table(struct tfh_rows *r, const struct tfh_table_chunk *c, struct open_table **out)
{
	struct tft_table_view v;
	struct tfh_axis axis;
	struct tfh_err err;
	const void *data;
	size_t len;

	*out = NULL;
	if (tft_chunk_payload(r->run->file[c->file].reader, c->chunk, &data, &len, &err) ||
	    tft_table_open(&v, data, len) || !v.rows)
		return 0;
	if (tfh_axis_make(&axis, r->run, c->file, &v))
		return -ENOMEM;
	struct open_table *o = new_table(r, v.rows);
	int rc = o ? fill(r, o, &axis, &v) : -ENOMEM;
	tfh_axis_free(&axis);
	if (rc) {
		free_table(o);
		return rc;
	}
	o->number = (uint32_t)(c - r->chunk);
	*out = o;
	return 0;
}

static bool read_ahead(void *arg, void *block, uint64_t i)
{
	struct tfh_rows *r = arg;
	struct read_chunk *x = &r->ring[i % r->ahead.n];

	if (r->reading)
		pthread_mutex_lock(r->reading);
	x->err = make_table(r, &r->chunk[r->made++], &x->table);
	if (r->reading)
		pthread_mutex_unlock(r->reading);
	*(struct read_chunk **)block = x;
	return r->made < r->n;
}

static int open_next(struct tfh_rows *r)
{
	/* A few chunks are read before a thread would have started. */
	uint32_t ahead = r->reading && r->n > 2 ? ROWS_AHEAD : 1;

	struct tfh_ahead_plan plan = {.fill = read_ahead,
				      .arg = r,
				      .bytes = sizeof(struct read_chunk *),
				      .blocks = ahead,
				      .threads = 1,
				      .count = UINT64_MAX};

	if (!r->next++ && tfh_ahead_start(&r->ahead, &plan))
		return -ENOMEM;
	if (tfh_room_for((void **)&r->open, &r->cap_open, r->n_open, sizeof(struct open_table *)))
		return -ENOMEM;
	struct read_chunk **x = tfh_ahead_next(&r->ahead);
	if (!x || !(*x)->table)
		return x ? (*x)->err : 0;
	add_open(r, (*x)->table);
	(*x)->table = NULL;
	return 0;
}

static void show(struct tfh_rows *r)
{
	const struct open_table *o = r->best;
	uint32_t at = place(o);

	r->row = (struct tfh_row){.t0 = o->t0[at],
				  .t1 = o->t1[at],
				  .cells = &o->cells,
				  .at = at,
				  .name = o->name ? o->name[at] : ""};
}

const struct tfh_row *tfh_rows_peek(struct tfh_rows *r)
{
	while (!r->err) {
		if (!r->best && r->n_open) {
			r->best = r->open[0];
			show(r);
		}
		if (r->next == r->n || (r->best && r->chunk[r->next].first > r->row.t0))
			return r->best ? &r->row : NULL;
		r->err = open_next(r);
		r->best = NULL;
	}
	return NULL;
}

void tfh_rows_take(struct tfh_rows *r)
{
	struct open_table *o = r->best;

	if (++o->at < o->n) {
		/* With only one chunk open, the heap does not change. */
		if (r->n_open == 1) {
			show(r);
		} else {
			settle(r, o);
			r->best = NULL;
		}
		return;
	}
	r->best = NULL;
	if (--r->n_open)
		settle(r, r->open[r->n_open]);
	free_table(swap_spare(r, o));
}

struct tfh_rows *tfh_rows_open(struct tfh_run *shadow, struct tfh_gpu *g, bool gpus,
			       pthread_mutex_t *reading)
{
	struct tfh_rows *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->run = shadow;
	r->gpus = gpus;
	r->chunk = gpus ? g->gpus : g->drvr;
	r->n = gpus ? g->n_gpus : g->n_drvr;
	r->texts = &g->texts;
	r->reading = reading;
	pthread_mutex_init(&r->spares, NULL);
	return r;
}

int tfh_rows_error(const struct tfh_rows *r)
{
	return r->err;
}

void tfh_rows_close(struct tfh_rows *r)
{
	if (!r)
		return;
	tfh_ahead_stop(&r->ahead);
	for (uint32_t i = 0; i < ROWS_AHEAD; i++)
		free_table(r->ring[i].table);
	for (uint32_t i = 0; i < r->n_open; i++)
		free_table(r->open[i]);
	free_table(r->spare);
	free(r->open);
	pthread_mutex_destroy(&r->spares);
	free(r);
}
