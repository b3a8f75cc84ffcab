/* Rows of many chunks in order of their start. Chunks overlap little, so few are open at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "model/device.h"
#include "model/open.h"

/* ---- the clock of a table ---- */

/* A second's difference that no clock drifts. */
#define STEP_NS 1000000

bool tfh_axis_step(const struct tfh_axis *a, uint32_t i)
{
	int64_t d = (a->table[i + 1] - a->table[i]) - (a->run[i + 1] - a->run[i]);

	return d > STEP_NS || d < -STEP_NS;
}

int tfh_axis_make(struct tfh_axis *a, const struct tfh_run *run, uint32_t file,
		  const struct tft_table_view *v)
{
	a->n = 0;
	a->steady = true;
	a->table = malloc((v->pairs + 1) * 2 * sizeof(*a->table));
	if (!a->table)
		return -ENOMEM;
	a->run = a->table + v->pairs + 1;
	for (uint32_t i = 0; i < v->pairs; i++) {
		struct tft_table_pair p = tft_table_pair_at(v, i);
		a->table[a->n] = (int64_t)p.ns;
		a->run[a->n] = tfh_run_ns(run, file, p.ticks);
		/* Readings are taken one after the other. */
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

/* The last reading not after t, the first if there is none; a clock set back makes readings that
 * are passed over. */
static uint32_t reading_at(const struct tfh_axis *a, int64_t t)
{
	uint32_t lo = 0, hi = a->n;

	while (a->steady && hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (a->table[mid] <= t)
			lo = mid;
		else
			hi = mid;
	}
	if (a->steady)
		return lo;
	while (hi-- > 0)
		if (a->table[hi] <= t)
			return hi;
	return 0;
}

int64_t tfh_axis_ns(const struct tfh_axis *a, uint64_t ns)
{
	int64_t t = (int64_t)ns;

	if (!a->n)
		return t;
	uint32_t i = reading_at(a, t);
	if (i + 1 == a->n && i > 0)
		i--; /* beyond the last one: its line goes on */
	if (i + 1 == a->n || tfh_axis_step(a, i)) {
		/* Behind a clock set forward: counted back from there. */
		if (i + 1 < a->n && t - a->table[i] > a->run[i + 1] - a->run[i])
			i++;
		return a->run[i] + (t - a->table[i]);
	}
	int64_t dt = a->table[i + 1] - a->table[i];
	if (dt <= 0)
		return a->run[i] + (t - a->table[i]);
	double rate = (double)(a->run[i + 1] - a->run[i]) / (double)dt;
	/* Readings close together say little about the pace. */
	if (dt < 100000000 && (t < a->table[i] || t > a->table[i + 1]))
		rate = 1;
	return a->run[i] + (int64_t)((double)(t - a->table[i]) * rate);
}

/* ---- chunks ---- */

struct open_table {
	uint8_t *rows;
	struct tfh_row *row; /* by t0 */
	uint32_t n, at;
};

struct tfh_rows {
	struct tfh_run *run;
	const struct tft_table *table;
	const struct tfh_table_chunk *chunk;
	uint32_t n, next;
	struct open_table *open;
	uint32_t n_open, cap_open;
	uint32_t best; /* index of the one with the next row */
	bool has_best;
	struct tfh_arena *arena;
	const char **name; /* open-addressed set of texts */
	uint32_t n_name, cap_name;
	int err;
};

static int by_start(const void *a, const void *b)
{
	const struct tfh_row *x = a, *y = b;

	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* Rows come as ops ended, so they are nearly in order: each moves up a few places. Where they are
 * not, after a number of moves that sorting would take, the general way. */
static void sort_rows(struct tfh_row *row, uint32_t n)
{
	uint64_t moves = 0;

	for (uint32_t i = 1; i < n && moves <= 16ull * n; i++) {
		struct tfh_row x = row[i];
		uint32_t k = i;
		for (; k && by_start(&x, &row[k - 1]) < 0; k--)
			row[k] = row[k - 1];
		row[k] = x;
		moves += i - k;
	}
	if (moves > 16ull * n)
		qsort(row, n, sizeof(*row), by_start);
}

static bool grow_names(struct tfh_rows *r)
{
	uint32_t cap = r->cap_name ? r->cap_name * 2 : 256;
	const char **v = calloc(cap, sizeof(*v));

	if (!v)
		return false;
	for (uint32_t i = 0; i < r->cap_name; i++) {
		if (!r->name[i])
			continue;
		uint32_t at = (uint32_t)tfh_hash_str(r->name[i]) & (cap - 1);
		while (v[at])
			at = (at + 1) & (cap - 1);
		v[at] = r->name[i];
	}
	free(r->name);
	r->name = v;
	r->cap_name = cap;
	return true;
}

static const char *keep_name(struct tfh_rows *r, const char *text)
{
	if (!*text)
		return "";
	if (r->n_name * 2 >= r->cap_name && !grow_names(r))
		return NULL;
	uint32_t at = (uint32_t)tfh_hash_str(text) & (r->cap_name - 1);
	for (; r->name[at]; at = (at + 1) & (r->cap_name - 1))
		if (!strcmp(r->name[at], text))
			return r->name[at];
	r->name[at] = tfh_arena_strdup(r->arena, text);
	r->n_name += r->name[at] != NULL;
	return r->name[at];
}

static int fill(struct tfh_rows *r, struct open_table *o, const struct tfh_axis *axis,
		const struct tft_table_view *v)
{
	uint32_t before = 0;
	const char *name = "";

	for (uint32_t i = 0; i < v->rows; i++) {
		const uint8_t *row = o->rows + (size_t)i * r->table->row_bytes;
		uint64_t t[2];
		memcpy(t, row, sizeof(t)); /* both tables begin with start and end */
		o->row[i] = (struct tfh_row){.t0 = tfh_axis_ns(axis, t[0]),
					     .t1 = tfh_axis_ns(axis, t[1]),
					     .row = row,
					     .name = ""};
		if (o->row[i].t1 < o->row[i].t0)
			o->row[i].t1 = o->row[i].t0;
		if (r->table != &tft_gpus)
			continue;
		const struct tft_gpu_row *g = (const void *)row;
		if (g->name && g->name != before) {
			before = g->name;
			name = keep_name(r, tft_table_text(v, g->name));
			if (!name)
				return -ENOMEM;
		}
		o->row[i].name = g->name ? name : "";
	}
	sort_rows(o->row, v->rows);
	o->n = v->rows;
	return 0;
}

static int open_chunk(struct tfh_rows *r, const struct tfh_table_chunk *c)
{
	struct tft_table_view v;
	struct open_table o = {0};
	struct tfh_axis axis;
	struct tfh_err err;
	const void *data;
	size_t len;
	int rc;

	if (tft_chunk_payload(r->run->file[c->file].reader, c->chunk, &data, &len, &err) ||
	    tft_table_open(&v, data, len) || !v.rows)
		return 0;
	if (tfh_room_for((void **)&r->open, &r->cap_open, r->n_open, sizeof(*r->open)) ||
	    tfh_axis_make(&axis, r->run, c->file, &v))
		return -ENOMEM;
	o.rows = malloc((size_t)v.rows * r->table->row_bytes);
	o.row = malloc((size_t)v.rows * sizeof(*o.row));
	rc = o.rows && o.row ? tft_table_rows(&v, r->table, o.rows) : -ENOMEM;
	if (!rc)
		rc = fill(r, &o, &axis, &v);
	tfh_axis_free(&axis);
	if (rc) {
		free(o.rows);
		free(o.row);
		return rc;
	}
	r->open[r->n_open++] = o;
	return 0;
}

static void find_best(struct tfh_rows *r)
{
	r->has_best = false;
	for (uint32_t i = 0; i < r->n_open; i++)
		if (!r->has_best || r->open[i].row[r->open[i].at].t0 <
					    r->open[r->best].row[r->open[r->best].at].t0) {
			r->best = i;
			r->has_best = true;
		}
}

const struct tfh_row *tfh_rows_peek(struct tfh_rows *r)
{
	while (!r->err) {
		if (!r->has_best)
			find_best(r);
		const struct tfh_row *best =
			r->has_best ? &r->open[r->best].row[r->open[r->best].at] : NULL;
		if (r->next == r->n || (best && r->chunk[r->next].first > best->t0))
			return best;
		r->err = open_chunk(r, &r->chunk[r->next++]);
		r->has_best = false;
	}
	return NULL;
}

void tfh_rows_take(struct tfh_rows *r)
{
	struct open_table *o = &r->open[r->best];

	r->has_best = false;
	if (++o->at < o->n) {
		/* Alone it stays the first. */
		r->has_best = r->n_open == 1;
		return;
	}
	free(o->rows);
	free(o->row);
	*o = r->open[--r->n_open];
}

struct tfh_rows *tfh_rows_open(struct tfh_run *shadow, const struct tft_table *t,
			       const struct tfh_table_chunk *chunk, uint32_t n,
			       struct tfh_arena *names)
{
	struct tfh_rows *r = calloc(1, sizeof(*r));

	if (r) {
		r->run = shadow;
		r->table = t;
		r->chunk = chunk;
		r->n = n;
		r->arena = names;
	}
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
	for (uint32_t i = 0; i < r->n_open; i++) {
		free(r->open[i].rows);
		free(r->open[i].row);
	}
	free(r->open);
	free(r->name);
	free(r);
}
