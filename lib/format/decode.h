/* Decodes EVNT chunks into runs and records. Payloads are untrusted: once tft_events_parse() has
 * returned 0, no cursor can leave its bounds. */
#ifndef TFH_FORMAT_DECODE_H
#define TFH_FORMAT_DECODE_H

#include "format/codec.h"
#include "format/planes.h"
#include "format/tft_read.h"

struct tft_column {
	const uint8_t *data;
	const uint8_t *big;
	uint32_t count, planes, n_big;
	enum tft_transform transform;
};

struct tft_events {
	uint32_t events, n_runs, n_shapes, n_columns;
	struct tft_run *runs;
	uint64_t *t_base;	/* per run */
	uint32_t *run_column;	/* per run: its start in each column, then in the text */
	struct tfh_rec *shapes; /* records with the fields of the shape; seq is the class */
	uint8_t class_mask[TFT_MAX_CLASSES];
	uint8_t class_column[TFT_MAX_CLASSES];
	struct tft_column columns[TFT_MAX_COLUMNS];
	struct tft_column gap, span;
	const uint8_t *id[2];
	const uint8_t *text;
	uint32_t n_text;
	const uint8_t *seq;
	uint32_t n_seq;
	uint8_t *payload;
	size_t payload_cap, shapes_cap, runs_cap, run_column_cap;
};

/* Parses the run table in a chunk header and the decompressed payload in ev->payload. Returns 0,
 * -EBADMSG or -ENOMEM. */
int tft_events_parse(struct tft_events *ev, const uint8_t *header, size_t header_bytes,
		     size_t payload_bytes);

/* Allocates ev->payload for at least `bytes` bytes. 0 or -ENOMEM. */
int tft_events_reserve(struct tft_events *ev, size_t bytes);

void tft_events_free(struct tft_events *ev);

/* ---- decoding in two steps: most records are a shape and two times ---- */

struct tft_times {
	uint64_t t_begin, t_end;
	uint32_t shape;
};

static inline uint32_t tft_shape_of(const struct tft_events *ev, uint32_t event)
{
	return ev->id[0][event] | (uint32_t)ev->id[1][event] << 8;
}

/* Whether a record of this shape has no fields besides the shape, its times and its number. */
static inline bool tft_shape_is_whole(const struct tft_events *ev, uint32_t shape)
{
	return !ev->class_mask[ev->shapes[shape].seq];
}

/* Looks an escape up in its list, which is sorted by index. A missing entry means a corrupt file;
 * `otherwise` is then as good as any value. */
uint64_t tft_find_big(const uint8_t *list, uint32_t n, uint32_t value_bytes, uint32_t index,
		      uint64_t otherwise);

static inline uint64_t tft_time_get(const struct tft_column *c, uint32_t i)
{
	const uint8_t *p = c->data + i;
	const size_t n = c->count;
	uint64_t v;

	switch (c->planes) {
	case 1:
		v = p[0];
		break;
	case 2:
		v = p[0] | (uint32_t)p[n] << 8;
		break;
	case 3:
		v = p[0] | (uint32_t)p[n] << 8 | (uint32_t)p[2 * n] << 16;
		break;
	default:
		v = p[0] | (uint32_t)p[n] << 8 | (uint32_t)p[2 * n] << 16 |
		    (uint64_t)p[3 * n] << 24;
		break;
	}
	if (__builtin_expect(v == tft_plane_escape(c->planes), 0))
		return tft_find_big(c->big, c->n_big, 8, i, v);
	return v;
}

/* Times and shape of the next record; false at the end of the run. tft_complete() must follow
 * before the next call, unless tft_shape_is_whole(). */
static inline bool tft_next_times(struct tft_cursor *c, struct tft_times *t)
{
	const struct tft_events *ev = c->ev;
	const uint32_t i = c->pos;

	if (i == c->end)
		return false;
	uint64_t gap = tft_unzigzag(tft_time_get(&ev->gap, i));
	t->t_begin = c->t + gap;
	t->t_end = ((int64_t)gap < 0 ? c->t : t->t_begin) + tft_time_get(&ev->span, i);
	t->shape = tft_shape_of(ev, i);
	c->t = t->t_end;
	c->number++;
	c->pos = i + 1;
	return true;
}

/* Times and shapes of up to `max` <= TFT_MANY following records, as columns; returns their number,
 * 0 at the end of the run. tft_complete() must follow for each whose shape is not whole, in
 * order. */
#define TFT_MANY 64u
uint32_t tft_next_many(struct tft_cursor *c, uint64_t *restrict begin, uint64_t *restrict end,
		       uint16_t *restrict shape, uint32_t max);

/* The shapes of n records from number `at` of the chunk on. */
void tft_shapes(const struct tft_events *ev, uint32_t at, uint32_t n, uint16_t *restrict shape);

/* Builds the whole record from its times. `event` is its index in the chunk, `number` its number in
 * the thread. */
void tft_complete(struct tft_cursor *c, const struct tft_times *t, uint32_t event, uint64_t number,
		  struct tfh_rec *rec);

#endif
