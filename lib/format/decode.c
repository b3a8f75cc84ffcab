/* gcc vectorizes loops over columns only at -O3. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include "format/decode.h"

#include <errno.h>
#include <stdlib.h>

#include "format/planes.h"

/* Stands in for planes that are not stored, so that reading a time needs no branch. */
static uint8_t no_plane[TFT_MAX_EVENTS];

static int grow(void *pointer, size_t *cap, size_t bytes)
{
	void **p = pointer;

	if (bytes <= *cap)
		return 0;
	free(*p);
	*cap = 0;
	*p = malloc(bytes);
	if (!*p)
		return -ENOMEM;
	*cap = bytes;
	return 0;
}

int tft_events_reserve(struct tft_events *ev, size_t bytes)
{
	return grow(&ev->payload, &ev->payload_cap, bytes);
}

void tft_events_free(struct tft_events *ev)
{
	if (!ev)
		return;
	free(ev->runs);
	free(ev->t_base);
	free(ev->run_column);
	free(ev->shapes);
	free(ev->payload);
	free(ev);
}

static int parse_runs(struct tft_events *ev, const uint8_t *header, size_t header_bytes)
{
	struct tft_chunk_head head;
	uint32_t start = 0;

	memcpy(&head, header, sizeof(head));
	const uint8_t *table = header + head.fixed_bytes;
	if (head.runs == 0 || head.events > TFT_MAX_EVENTS || head.runs > head.events ||
	    header_bytes - head.fixed_bytes < (uint64_t)head.runs * sizeof(struct tft_chunk_run))
		return -EBADMSG;
	if (head.runs > ev->runs_cap) {
		free(ev->runs);
		free(ev->t_base);
		ev->runs = malloc(head.runs * sizeof(*ev->runs));
		ev->t_base = malloc(head.runs * sizeof(*ev->t_base));
		ev->runs_cap = ev->runs && ev->t_base ? head.runs : 0;
		if (!ev->runs_cap)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < head.runs; i++) {
		struct tft_chunk_run run;
		memcpy(&run, table + i * sizeof(run), sizeof(run));
		if (run.count == 0 || run.count > head.events - start)
			return -EBADMSG;
		ev->runs[i] = (struct tft_run){run.thread, run.tid, run.first, run.count, start};
		ev->t_base[i] = run.t_base;
		start += run.count;
	}
	ev->n_runs = head.runs;
	ev->events = head.events;
	return start == head.events ? 0 : -EBADMSG;
}

static bool set_column(struct tft_column *c, const struct tft_section *s, const uint8_t *data,
		       uint32_t max_planes)
{
	if (c->data || s->planes == 0 || s->planes > max_planes || s->transform > TFT_REST)
		return false;
	c->data = data;
	c->count = s->count;
	c->planes = s->planes;
	c->transform = (enum tft_transform)s->transform;
	return true;
}

static bool set_bigs(struct tft_column *c, const struct tft_section *s, const uint8_t *data)
{
	if (c->big || s->planes != TFT_BIG_BYTES)
		return false;
	c->big = data;
	c->n_big = s->count;
	return true;
}

static int parse_classes(struct tft_events *ev, const struct tft_section *s, const uint8_t *data)
{
	if (s->count == 0 || s->count > TFT_MAX_CLASSES || s->bytes != s->count * 2)
		return -EBADMSG;
	for (uint32_t i = 0; i < s->count; i++) {
		ev->class_mask[i] = data[2 * i];
		ev->class_column[i] = data[2 * i + 1];
	}
	return 0;
}

static int parse_shapes(struct tft_events *ev, const struct tft_section *s, const uint8_t *data,
			uint32_t classes)
{
	const uint32_t n = s->count;

	if (n == 0 || n > TFT_MAX_SHAPES || s->planes != TFT_SHAPE_BYTES)
		return -EBADMSG;
	if (grow(&ev->shapes, &ev->shapes_cap, n * sizeof(*ev->shapes)) < 0)
		return -ENOMEM;
	memset(ev->shapes, 0, n * sizeof(*ev->shapes));
	for (uint32_t p = 0; p < TFT_SHAPE_BYTES; p++) {
		uint32_t at = TFT_SHAPE_OFFSET + (p == 0 ? 8 : p <= 8 ? p - 1 : p + 3);
		for (uint32_t i = 0; i < n; i++)
			((uint8_t *)&ev->shapes[i])[at] = data[p * n + i];
	}
	for (uint32_t i = 0; i < n; i++)
		if (ev->shapes[i].seq >= classes)
			return -EBADMSG;
	ev->n_shapes = n;
	return 0;
}

static int parse_section(struct tft_events *ev, const struct tft_section *s, const uint8_t *data,
			 uint32_t *classes)
{
	bool good = true;

	switch (s->id) {
	case TFT_SEC_CLASS:
		*classes = s->count;
		return parse_classes(ev, s, data);
	case TFT_SEC_SHAPE:
		return parse_shapes(ev, s, data, *classes);
	case TFT_SEC_IDS:
		good = s->count == ev->events && (s->planes == 1 || s->planes == 2);
		ev->id[0] = data;
		ev->id[1] = s->planes == 2 ? data + ev->events : no_plane;
		break;
	case TFT_SEC_GAP:
		good = s->count == ev->events && set_column(&ev->gap, s, data, 4);
		break;
	case TFT_SEC_SPAN:
		good = s->count == ev->events && set_column(&ev->span, s, data, 4);
		break;
	case TFT_SEC_GAP_BIG:
		good = set_bigs(&ev->gap, s, data);
		break;
	case TFT_SEC_SPAN_BIG:
		good = set_bigs(&ev->span, s, data);
		break;
	case TFT_SEC_COLUMN:
		good = s->arg < TFT_MAX_COLUMNS && set_column(&ev->columns[s->arg], s, data, 8);
		if (good && s->arg >= ev->n_columns)
			ev->n_columns = s->arg + 1u;
		break;
	case TFT_SEC_COLUMN_BIG:
		good = s->arg < TFT_MAX_COLUMNS && set_bigs(&ev->columns[s->arg], s, data);
		break;
	case TFT_SEC_TEXT:
		good = s->bytes == (uint64_t)s->count * TFT_EXT_BYTES;
		ev->text = data;
		ev->n_text = s->count;
		break;
	case TFT_SEC_SEQ:
		good = s->planes == 8;
		ev->seq = data;
		ev->n_seq = s->count;
		break;
	default: /* section of a later minor version */
		break;
	}
	return good ? 0 : -EBADMSG;
}

static int parse_sections(struct tft_events *ev, size_t size)
{
	struct tft_events_head head;
	struct tft_section s;
	uint32_t classes = 0;

	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, ev->payload, sizeof(head));
	uint64_t at = sizeof(head) + (uint64_t)head.sections * sizeof(s);
	if (head.events != ev->events || at > size)
		return -EBADMSG;
	for (uint32_t i = 0; i < head.sections; i++) {
		memcpy(&s, ev->payload + sizeof(head) + i * sizeof(s), sizeof(s));
		if (s.bytes > size - at || (s.planes && s.bytes != (uint64_t)s.planes * s.count))
			return -EBADMSG;
		int err = parse_section(ev, &s, ev->payload + at, &classes);
		if (err < 0)
			return err;
		at += s.bytes;
	}
	return ev->n_shapes && ev->id[0] && ev->gap.data && ev->span.data ? 0 : -EBADMSG;
}

/* Whether every column of a class mask exists. */
static bool classes_sound(const struct tft_events *ev)
{
	for (uint32_t i = 0; i < TFT_MAX_CLASSES; i++) {
		uint32_t n = (uint32_t)__builtin_popcount(ev->class_mask[i] & TFT_MASK_ALL);
		if (ev->class_mask[i] & TFT_MASK_TEXT && n)
			return false;
		if (ev->class_column[i] + n > TFT_MAX_COLUMNS)
			return false;
	}
	return true;
}

/*
 * Walks all shape ids once: validates them and finds each run's start in each column. It also
 * checks that the columns are long enough, so cursors need not.
 */
static int find_starts(struct tft_events *ev)
{
	uint32_t at[TFT_MAX_COLUMNS + 1] = {0};
	uint32_t bare = UINT32_MAX; /* the last shape that uses no column */
	size_t row = ev->n_columns + 1;

	if (grow(&ev->run_column, &ev->run_column_cap, ev->n_runs * row * sizeof(uint32_t)) < 0)
		return -ENOMEM;
	for (uint32_t r = 0; r < ev->n_runs; r++) {
		const struct tft_run *run = &ev->runs[r];
		memcpy(ev->run_column + r * row, at, ev->n_columns * sizeof(uint32_t));
		ev->run_column[r * row + ev->n_columns] = at[TFT_MAX_COLUMNS];
		for (uint32_t i = run->start; i < run->start + run->count; i++) {
			uint32_t shape = tft_shape_of(ev, i);
			if (shape == bare)
				continue;
			if (shape >= ev->n_shapes)
				return -EBADMSG;
			uint32_t class = ev->shapes[shape].seq;
			uint32_t mask = ev->class_mask[class];
			bare = mask ? bare : shape;
			if (mask == TFT_MASK_TEXT)
				at[TFT_MAX_COLUMNS]++;
			else
				for (uint32_t c = ev->class_column[class]; mask; mask &= mask - 1)
					at[c++]++;
		}
	}
	for (uint32_t c = 0; c < TFT_MAX_COLUMNS; c++)
		if (at[c] > ev->columns[c].count)
			return -EBADMSG;
	return at[TFT_MAX_COLUMNS] > ev->n_text ? -EBADMSG : 0;
}

int tft_events_parse(struct tft_events *ev, const uint8_t *header, size_t header_bytes,
		     size_t payload_bytes)
{
	ev->n_shapes = ev->n_columns = ev->n_text = ev->n_seq = 0;
	memset(ev->class_mask, 0, sizeof(ev->class_mask));
	memset(ev->class_column, 0, sizeof(ev->class_column));
	memset(ev->columns, 0, sizeof(ev->columns));
	memset(&ev->gap, 0, sizeof(ev->gap));
	memset(&ev->span, 0, sizeof(ev->span));
	ev->id[0] = ev->id[1] = ev->text = ev->seq = NULL;

	int err = parse_runs(ev, header, header_bytes);
	if (err == 0)
		err = parse_sections(ev, payload_bytes);
	if (err == 0 && !classes_sound(ev))
		err = -EBADMSG;
	return err ? err : find_starts(ev);
}

/* ---- cursor ---- */

void tft_cursor_init(struct tft_cursor *c, const struct tft_events *ev, uint32_t run)
{
	const uint32_t *start = ev->run_column + (size_t)run * (ev->n_columns + 1);

	c->ev = ev;
	c->pos = ev->runs[run].start;
	c->end = c->pos + ev->runs[run].count;
	c->t = ev->t_base[run];
	c->number = ev->runs[run].first;
	memcpy(c->column, start, ev->n_columns * sizeof(uint32_t));
	memset(c->previous, 0, ev->n_columns * sizeof(uint64_t));
	c->text = start[ev->n_columns];
}

uint64_t tft_find_big(const uint8_t *list, uint32_t n, uint32_t value_bytes, uint32_t index,
		      uint64_t otherwise)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t at = (uint32_t)tft_plane_get(list, n, 4, middle);
		if (at == index)
			return tft_plane_get(list + 4 * (size_t)n, n, value_bytes, middle);
		if (at < index)
			low = middle + 1;
		else
			high = middle;
	}
	return otherwise;
}

static uint64_t column_get(const struct tft_column *c, uint32_t i)
{
	uint64_t v = tft_plane_get(c->data, c->count, c->planes, i);

	if (c->planes < 8 && v == tft_plane_escape(c->planes))
		return tft_find_big(c->big, c->n_big, 8, i, v);
	return v;
}

static void set_field(struct tfh_rec *r, uint32_t f, uint64_t v)
{
	switch (f) {
	case TFT_FIELD_FIXED:
		memcpy((char *)r + TFT_SHAPE_OFFSET, &v, sizeof(v));
		break;
	case TFT_FIELD_STREAM:
		r->stream = (uint32_t)v;
		break;
	case TFT_FIELD_CTX:
		r->ctx = (uint32_t)v;
		break;
	case TFT_FIELD_STACK:
		r->stack = (uint32_t)v;
		break;
	default:
		r->w[f - TFT_FIELD_W0] = v;
		break;
	}
}

static void fill_loose(struct tft_cursor *c, struct tfh_rec *rec, uint32_t class, uint32_t mask)
{
	const struct tft_events *ev = c->ev;
	uint32_t column = ev->class_column[class];

	if (mask == TFT_MASK_TEXT) {
		memcpy((char *)rec + TFT_EXT_OFFSET, ev->text + (size_t)c->text++ * TFT_EXT_BYTES,
		       TFT_EXT_BYTES);
		return;
	}
	for (; mask; mask &= mask - 1, column++) {
		const struct tft_column *col = &ev->columns[column];
		uint64_t v = column_get(col, c->column[column]++);
		if (col->transform == TFT_DELTA)
			v = c->previous[column] += tft_unzigzag(v);
		else if (col->transform == TFT_REST)
			v = rec->t_end - rec->t_begin - tft_unzigzag(v);
		set_field(rec, (uint32_t)__builtin_ctz(mask), v);
	}
}

/* Turns distances and lengths into times. Any of them may be escapes. */
static uint64_t times_any(const struct tft_events *ev, uint32_t at, uint32_t n, uint64_t last,
			  const uint32_t *gap, const uint32_t *span, uint64_t *begin, uint64_t *end)
{
	const uint64_t no_gap = tft_plane_escape(ev->gap.planes);
	const uint64_t no_span = tft_plane_escape(ev->span.planes);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t g = gap[i], s = span[i];
		if (g == no_gap)
			g = tft_find_big(ev->gap.big, ev->gap.n_big, 8, at + i, g);
		if (s == no_span)
			s = tft_find_big(ev->span.big, ev->span.n_big, 8, at + i, s);
		g = tft_unzigzag(g);
		begin[i] = last + g;
		last = end[i] = ((int64_t)g < 0 ? last : last + g) + s;
	}
	return last;
}

/* Like times_any(), if no record begins before its predecessor has ended and none is an escape. */
static uint64_t times_in_turn(uint32_t n, uint64_t last, const uint32_t *gap, const uint32_t *span,
			      uint64_t *begin, uint64_t *end)
{
	for (uint32_t i = 0; i < n; i++) {
		begin[i] = last + (gap[i] >> 1);
		last = end[i] = begin[i] + span[i];
	}
	return last;
}

void tft_shapes(const struct tft_events *ev, uint32_t at, uint32_t n, uint16_t *restrict shape)
{
	const uint8_t *low = ev->id[0] + at, *high = ev->id[1] + at;

	for (uint32_t i = 0; i < n; i++)
		shape[i] = (uint16_t)(low[i] | high[i] << 8);
}

uint32_t tft_next_many(struct tft_cursor *c, uint64_t *restrict begin, uint64_t *restrict end,
		       uint16_t *restrict shape, uint32_t max)
{
	const struct tft_events *ev = c->ev;
	const uint32_t at = c->pos, left = c->end - at, n = left < max ? left : max;
	const uint32_t no_gap = (uint32_t)tft_plane_escape(ev->gap.planes);
	const uint32_t no_span = (uint32_t)tft_plane_escape(ev->span.planes);
	uint32_t gap[TFT_MANY], span[TFT_MANY], other = 0;

	tft_planes_some_u32(gap, ev->gap.data + at, ev->gap.count, ev->gap.planes, n);
	tft_planes_some_u32(span, ev->span.data + at, ev->span.count, ev->span.planes, n);
	for (uint32_t i = 0; i < n; i++)
		other |= (gap[i] & 1) | (gap[i] == no_gap ? 2u : 0u) |
			 (span[i] == no_span ? 2u : 0u);
	c->t = other ? times_any(ev, at, n, c->t, gap, span, begin, end)
		     : times_in_turn(n, c->t, gap, span, begin, end);
	tft_shapes(ev, at, n, shape);
	c->pos += n;
	c->number += n;
	return n;
}

void tft_complete(struct tft_cursor *c, const struct tft_times *t, uint32_t event, uint64_t number,
		  struct tfh_rec *rec)
{
	const struct tft_events *ev = c->ev;

	*rec = ev->shapes[t->shape];
	rec->t_begin = t->t_begin;
	rec->t_end = t->t_end;
	uint32_t class = rec->seq;
	rec->seq = (uint32_t)number;
	if (ev->class_mask[class])
		fill_loose(c, rec, class, ev->class_mask[class]);
	if (__builtin_expect(ev->n_seq, 0))
		rec->seq = (uint32_t)tft_find_big(ev->seq, ev->n_seq, 4, event, rec->seq);
}

bool tft_next(struct tft_cursor *c, struct tfh_rec *rec)
{
	struct tft_times t;

	if (!tft_next_times(c, &t))
		return false;
	tft_complete(c, &t, c->pos - 1, c->number - 1, rec);
	return true;
}

uint32_t tft_run_count(const struct tft_events *ev)
{
	return ev->n_runs;
}

const struct tft_run *tft_run(const struct tft_events *ev, uint32_t i)
{
	return &ev->runs[i];
}

double tft_entropy_bytes(const struct tft_events *ev)
{
	struct tft_events_head head;
	struct tft_section s;
	double bits = 0;

	memcpy(&head, ev->payload, sizeof(head));
	size_t at = sizeof(head) + head.sections * sizeof(s);
	for (uint32_t i = 0; i < head.sections; i++) {
		memcpy(&s, ev->payload + sizeof(head) + i * sizeof(s), sizeof(s));
		uint32_t planes = s.planes ? s.planes : 1;
		for (uint32_t p = 0; p < planes; p++)
			bits += tft_planes_entropy(ev->payload + at +
							   (size_t)p * (s.bytes / planes),
						   s.bytes / planes);
		at += s.bytes;
	}
	return bits / 8;
}
