/* Reads a digest. Everything except the steps is small, and is loaded when the digest is opened. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "digest/digest.h"
#include "format/codec.h"
#include "format/tft_read.h"

#define FORM "tfhook.digest/1"

#define UNNAMED SIZE_MAX

/* `name`: offset of the text by which a row is looked up. */
static const struct {
	uint32_t type;
	const struct tft_table *table;
	size_t name;
} small[] = {
	{TFT_DKEY, &tfh_digest_keys, offsetof(struct tfh_digest_key, name)},
	{TFT_DINP, &tfh_digest_inputs, UNNAMED},
	{TFT_DRNK, &tfh_digest_ranks, UNNAMED},
	{TFT_DNOD, &tfh_digest_nodes, UNNAMED},
	{TFT_DPLC, &tfh_digest_places, UNNAMED},
	{TFT_DKRN, &tfh_digest_kernels, offsetof(struct tfh_digest_kernel, name)},
	{TFT_DCPY, &tfh_digest_copies, UNNAMED},
	{TFT_DMTR, &tfh_digest_meters, UNNAMED},
	{TFT_DGON, &tfh_digest_gones, UNNAMED},
	{TFT_DCOM, &tfh_digest_comms, UNNAMED},
	{TFT_DOPN, &tfh_digest_opens, UNNAMED},
};
#define SMALL (sizeof(small) / sizeof(*small))

struct row_name {
	const char *text;
	uint32_t row;
};

struct tfh_run_digest {
	struct tft_reader *reader;
	struct tfh_digest_part part[SMALL + 1]; /* the last is empty */
	struct row_name *name[SMALL + 1]; /* [part.n] sorted by name, then row; NULL: unnamed */
};

static int by_name(const void *a, const void *b)
{
	const struct row_name *x = a, *y = b;
	int order = strcmp(x->text, y->text);

	return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

/* Sorts the names of a table. Searching an unsorted list for each name would take quadratic time
 * for a hostile file. */
static int sort_names(struct tfh_run_digest *d, size_t at)
{
	const struct tfh_digest_part *p = &d->part[at];
	const char *row = p->row;
	uint32_t offset;

	if (small[at].name == UNNAMED)
		return 0;
	d->name[at] = calloc(p->n + 1u, sizeof(*d->name[at]));
	if (!d->name[at])
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n; i++) {
		memcpy(&offset, row + i * small[at].table->row_bytes + small[at].name,
		       sizeof(offset));
		d->name[at][i] = (struct row_name){tfh_digest_text(p, offset), i};
	}
	qsort(d->name[at], p->n, sizeof(*d->name[at]), by_name);
	return 0;
}

static bool texts_are_short(const char *heap, uint32_t bytes)
{
	for (uint32_t at = 0, n; at < bytes; at += n + 1) {
		n = (uint32_t)strnlen(heap + at, bytes - at);
		if (n > TFH_DIGEST_TEXT)
			return false;
	}
	return true;
}

static int load(struct tfh_run_digest *d, size_t at, uint32_t chunk, struct tfh_err *err)
{
	struct tfh_digest_part *p = &d->part[at];
	struct tft_table_view view;
	const void *payload;
	size_t len;
	int rc = tft_chunk_payload(d->reader, chunk, &payload, &len, err);

	if (rc)
		return rc;
	if (tft_table_open(&view, payload, len) || view.rows > TFH_DIGEST_ROWS ||
	    !texts_are_short(view.heap, view.heap_bytes))
		return -EBADMSG;
	void *row = calloc(view.rows + 1u, small[at].table->row_bytes);
	char *heap = malloc(view.heap_bytes + 1u);
	if (!row || !heap) {
		free(row);
		free(heap);
		return -ENOMEM;
	}
	p->row = row;
	p->heap = heap;
	memcpy(heap, view.heap, view.heap_bytes);
	p->heap_bytes = view.heap_bytes;
	rc = tft_table_rows(&view, small[at].table, row);
	p->n = rc ? 0 : view.rows;
	return rc ? rc : sort_names(d, at);
}

/* Whether all units are powers of two that keep times within 64 bits. */
static bool ranks_are_sound(const struct tfh_run_digest *d)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DRNK);
	const struct tfh_digest_rank *rank = p->row;

	for (uint32_t i = 0; i < p->n; i++)
		if (!rank[i].unit || rank[i].unit > 1ull << 40)
			return false;
	return true;
}

static int read_all(struct tfh_run_digest *d, const char *path, struct tfh_err *err)
{
	if (!tft_is_digest(d->reader))
		return tfh_err_set(err, -ENOMSG, "%s: a recording, or a digest that was cut short",
				   path);
	for (uint32_t i = 0; i < tft_chunk_count(d->reader); i++) {
		for (size_t k = 0; k < SMALL; k++) {
			if (tft_chunk(d->reader, i)->type != small[k].type || d->part[k].row)
				continue;
			int rc = load(d, k, i, err);
			if (rc == -ENOMEM)
				return tfh_err_set(err, rc, "out of memory");
			if (rc)
				return tfh_err_set(
					err, rc,
					"%s: damaged digest; make it again: tfhook digest DIR",
					path);
		}
	}
	const char *form = tfh_digest_fact(d, "digest");
	if (form && strcmp(form, FORM))
		return tfh_err_set(err, -EPROTO, "%s: a digest of an unsupported version (%.40s)",
				   path, form);
	if (!form || !tft_closed(d->reader) || !ranks_are_sound(d))
		return tfh_err_set(
			err, -EBADMSG,
			"%s: damaged or unfinished digest; make it again: tfhook digest DIR", path);
	return 0;
}

int tfh_digest_open(const char *path, struct tfh_run_digest **out, struct tfh_err *err)
{
	struct tfh_run_digest *d = calloc(1, sizeof(*d));
	int rc = d ? tft_open(path, &d->reader, err) : tfh_err_set(err, -ENOMEM, "out of memory");

	*out = NULL;
	if (!rc)
		rc = read_all(d, path, err);
	if (rc)
		tfh_digest_close(d);
	else
		*out = d;
	return rc;
}

void tfh_digest_close(struct tfh_run_digest *d)
{
	if (!d)
		return;
	for (size_t k = 0; k < SMALL; k++) {
		free((void *)d->part[k].row);
		free((void *)d->part[k].heap);
		free(d->name[k]);
	}
	tft_close(d->reader);
	free(d);
}

static size_t part_at(uint32_t type)
{
	size_t k = 0;

	while (k < SMALL && small[k].type != type)
		k++;
	return k;
}

const struct tfh_digest_part *tfh_digest_part_of(const struct tfh_run_digest *d, uint32_t type)
{
	return &d->part[part_at(type)];
}

uint32_t tfh_digest_named(const struct tfh_run_digest *d, uint32_t type, const char *name)
{
	size_t k = part_at(type);
	uint32_t from = 0, to = d->name[k] ? d->part[k].n : 0, end = to;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;
		if (strcmp(d->name[k][middle].text, name) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from < end && !strcmp(d->name[k][from].text, name) ? d->name[k][from].row
								  : UINT32_MAX;
}

int tfh_digest_chunk(struct tfh_run_digest *d, uint32_t type, const void **data, size_t *n,
		     struct tfh_err *err)
{
	for (uint32_t i = 0; i < tft_chunk_count(d->reader); i++)
		if (tft_chunk(d->reader, i)->type == type)
			return tft_chunk_payload(d->reader, i, data, n, err);
	return -ENOENT;
}

const char *tfh_digest_text(const struct tfh_digest_part *p, uint32_t offset)
{
	return offset < p->heap_bytes ? p->heap + offset : "";
}

const char *tfh_digest_fact(const struct tfh_run_digest *d, const char *name)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DKEY);
	const struct tfh_digest_key *key = p->row;
	uint32_t row = tfh_digest_named(d, TFT_DKEY, name);

	return row == UINT32_MAX ? NULL : tfh_digest_text(p, key[row].value);
}

double tfh_digest_number(const struct tfh_run_digest *d, const char *name)
{
	const char *text = tfh_digest_fact(d, name);
	char *end;
	double x = text ? strtod(text, &end) : NAN;

	return text && *text && !*end ? x : NAN;
}

bool tfh_digest_is_fresh(const struct tfh_run_digest *d, const struct tfh_inputs *in)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DINP);
	const struct tfh_digest_input *row = p->row;
	const char *judge = tfh_digest_fact(d, "judge");

	if (!in->n || p->n != in->n || !judge || strcmp(judge, tfh_judge_id()))
		return false;
	for (uint32_t i = 0; i < p->n; i++)
		if (row[i].bytes != in->v[i].bytes || row[i].check != in->v[i].check ||
		    strcmp(tfh_digest_text(p, row[i].name), in->v[i].name))
			return false;
	return true;
}

static int explain(int rc, struct tfh_err *err)
{
	if (rc == -EBADMSG)
		tfh_err_set(err, rc,
			    "the digest's rows are damaged; make it again: tfhook digest DIR");
	if (rc == -ENOMEM)
		tfh_err_set(err, rc, "out of memory");
	return rc;
}

/* ---- steps ---- */

struct step_pass {
	struct tfh_run_digest *d;
	const struct tfh_digest_rank *rank;
	uint32_t n_rank;
	tfh_digest_step_fn fn;
	void *arg;
};

/* A member of a vocabulary; -1: none, or one of a newer version. */
static int member(uint8_t stored, int count)
{
	return stored && stored <= count ? stored - 1 : -1;
}

#define FARTHEST (INT64_MAX / 4)

/* Passes one row to the callback. *end: end of the preceding row, in units. -EBADMSG: impossible
 * times. */
static int give_row(const struct step_pass *x, const struct tfh_digest_step *s, int64_t *end)
{
	struct tfh_digest_row row = {.index = s->index, .rank = s->rank, .tier = (char)s->tier};
	int64_t gap = (int64_t)tft_unzigzag(s->gap), rest = (int64_t)tft_unzigzag(s->rest), begin;
	uint64_t sum = s->compute;

	if (s->rank >= x->n_rank)
		return -EBADMSG;
	double unit = (double)x->rank[s->rank].unit * 1e-9;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		sum += s->part[c];
		row.cause_s[c] = (double)s->part[c] * unit;
	}
	if (gap > FARTHEST || gap < -FARTHEST || rest > FARTHEST || rest < -FARTHEST)
		return -EBADMSG;
	begin = *end + gap;
	*end = begin + rest + (int64_t)sum;
	if (begin < 0 || begin > FARTHEST || *end < begin || *end > FARTHEST)
		return -EBADMSG;
	row.start_s = (double)begin * unit;
	row.dur_s = (double)(*end - begin) * unit;
	row.compute_s = (double)s->compute * unit;
	row.rest_s = (double)rest * unit;
	row.segment = member(s->segment, TFH_SEGMENT_COUNT);
	row.cls = member(s->cls, TFH_CLASS_COUNT);
	row.cause = member(s->cause, TFH_CAUSE_COUNT);
	return x->fn(x->arg, &row);
}

static int view_of(const struct tfh_run_digest *d, uint32_t chunk, struct tft_table_view *view,
		   struct tfh_err *err)
{
	const void *payload;
	size_t len;
	int rc = tft_chunk_payload(d->reader, chunk, &payload, &len, err);

	return rc ? rc : tft_table_open(view, payload, len);
}

int tfh_digest_each_view(struct tfh_run_digest *d, uint32_t type, tfh_digest_view_fn fn, void *arg,
			 struct tfh_err *err)
{
	struct tft_table_view view;
	int rc = 0;

	for (uint32_t i = 0; i < tft_chunk_count(d->reader) && !rc; i++) {
		if (tft_chunk(d->reader, i)->type != type)
			continue;
		rc = view_of(d, i, &view, err);
		if (!rc)
			rc = fn(arg, &view);
	}
	return explain(rc, err);
}

/* The rows of one chunk, which the caller frees. */
static int rows_of(const struct tfh_run_digest *d, uint32_t chunk, const struct tft_table *table,
		   size_t size, void **row, uint32_t *n, struct tfh_err *err)
{
	struct tft_table_view view;
	int rc = view_of(d, chunk, &view, err);

	*row = NULL;
	if (rc)
		return rc;
	*n = view.rows;
	*row = calloc(view.rows + 1u, size);
	return *row ? tft_table_rows(&view, table, *row) : -ENOMEM;
}

static int give_chunk(const struct step_pass *x, uint32_t chunk, struct tfh_err *err)
{
	void *rows;
	uint32_t n;
	int64_t end = 0;
	int rc = rows_of(x->d, chunk, &tfh_digest_steps, sizeof(struct tfh_digest_step), &rows, &n,
			 err);
	const struct tfh_digest_step *step = rows;

	for (uint32_t i = 0; !rc && i < n; i++)
		rc = give_row(x, &step[i], &end);
	free(rows);
	return rc;
}

int tfh_digest_each_step(struct tfh_run_digest *d, tfh_digest_step_fn fn, void *arg,
			 struct tfh_err *err)
{
	const struct tfh_digest_part *ranks = tfh_digest_part_of(d, TFT_DRNK);
	struct step_pass x = {.d = d, .rank = ranks->row, .n_rank = ranks->n, .fn = fn, .arg = arg};
	int rc = 0;

	for (uint32_t i = 0; i < tft_chunk_count(d->reader) && !rc; i++)
		if (tft_chunk(d->reader, i)->type == TFT_DSTP)
			rc = give_chunk(&x, i, err);
	return explain(rc, err);
}

static int give_anchors(struct tfh_run_digest *d, uint32_t chunk, tfh_digest_anchor_fn fn,
			void *arg, struct tfh_err *err)
{
	uint32_t ranks = tfh_digest_part_of(d, TFT_DRNK)->n, n;
	void *rows;
	int rc = rows_of(d, chunk, &tfh_digest_anchors, sizeof(struct tfh_digest_anchor), &rows, &n,
			 err);
	const struct tfh_digest_anchor *row = rows;

	for (uint32_t i = 0; !rc && i < n; i++)
		rc = row[i].rank < ranks ? fn(arg, &row[i]) : -EBADMSG;
	free(rows);
	return rc;
}

int tfh_digest_each_anchor(struct tfh_run_digest *d, tfh_digest_anchor_fn fn, void *arg,
			   struct tfh_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < tft_chunk_count(d->reader) && !rc; i++)
		if (tft_chunk(d->reader, i)->type == TFT_DCOL)
			rc = give_anchors(d, i, fn, arg, err);
	return explain(rc, err);
}
