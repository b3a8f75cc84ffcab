#include "format/table.h"

#include <errno.h>
#include <string.h>

#include "format/codec.h"
#include "format/planes.h"

#define COLUMN(type, id, field, width, transform)                                                  \
	{                                                                                          \
		id, width, transform, sizeof(((struct type *)0)->field),                           \
			offsetof(struct type, field)                                               \
	}

static const struct tft_table_column gpu_columns[] = {
	COLUMN(tft_gpu_row, TFT_GPUS_START, start, 8, TFT_DELTA),
	COLUMN(tft_gpu_row, TFT_GPUS_END, end, 8, TFT_FROM_START),
	COLUMN(tft_gpu_row, TFT_GPUS_CORRELATION, correlation, 4, TFT_DELTA),
	COLUMN(tft_gpu_row, TFT_GPUS_DEVICE, device, 1, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_CTX, ctx, 4, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_STREAM, stream, 4, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_KIND, kind, 1, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_NAME, name, 4, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_BYTES, bytes, 8, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_SRC, src, 1, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_DST, dst, 1, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_FLAGS, flags, 1, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_GRID, grid, 8, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_BLOCK, block, 8, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_REGISTERS, registers, 2, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_SHARED, static_shared, 4, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_GRAPH, graph, 4, TFT_RAW),
	COLUMN(tft_gpu_row, TFT_GPUS_NODE, node, 8, TFT_DELTA),
	COLUMN(tft_gpu_row, TFT_GPUS_CHANNEL, channel, 4, TFT_RAW),
};
static const struct tft_table_column drvr_columns[] = {
	COLUMN(tft_drvr_row, TFT_GPUS_START, start, 8, TFT_DELTA),
	COLUMN(tft_drvr_row, TFT_GPUS_END, end, 8, TFT_FROM_START),
	COLUMN(tft_drvr_row, TFT_GPUS_CORRELATION, correlation, 4, TFT_DELTA),
	COLUMN(tft_drvr_row, TFT_DRVR_TID, tid, 4, TFT_RAW),
	COLUMN(tft_drvr_row, TFT_DRVR_CALLBACK, callback, 4, TFT_RAW),
	COLUMN(tft_drvr_row, TFT_DRVR_RESULT, result, 4, TFT_RAW),
	COLUMN(tft_drvr_row, TFT_DRVR_DOMAIN, domain, 1, TFT_RAW),
};
static const struct tft_table_column btrc_columns[] = {
	COLUMN(tft_btrc_row, 1, stack, 4, TFT_DELTA),
	COLUMN(tft_btrc_row, 2, index, 2, TFT_RAW),
	COLUMN(tft_btrc_row, 3, address, 8, TFT_RAW),
	COLUMN(tft_btrc_row, 4, place, 4, TFT_RAW),
};
static const struct tft_table_column pyco_columns[] = {
	COLUMN(tft_pyco_row, 1, code, 4, TFT_DELTA),
	COLUMN(tft_pyco_row, 2, file, 4, TFT_RAW),
	COLUMN(tft_pyco_row, 3, name, 4, TFT_RAW),
	COLUMN(tft_pyco_row, 4, first, 4, TFT_RAW),
};
static const struct tft_table_column pyfr_columns[] = {
	COLUMN(tft_pyfr_row, 1, place, 4, TFT_DELTA),
	COLUMN(tft_pyfr_row, 2, caller, 4, TFT_DELTA),
	COLUMN(tft_pyfr_row, 3, code, 4, TFT_RAW),
	COLUMN(tft_pyfr_row, 4, line, 4, TFT_RAW),
};
static const struct tft_table_column mods_columns[] = {
	COLUMN(tft_mods_row, 1, start, 8, TFT_RAW),    COLUMN(tft_mods_row, 2, end, 8, TFT_RAW),
	COLUMN(tft_mods_row, 3, offset, 8, TFT_RAW),   COLUMN(tft_mods_row, 4, path, 4, TFT_RAW),
	COLUMN(tft_mods_row, 5, build_id, 4, TFT_RAW), COLUMN(tft_mods_row, 6, loaded, 8, TFT_RAW),
	COLUMN(tft_mods_row, 7, unloaded, 8, TFT_RAW),
};
#define COUNT(a) (sizeof(a) / sizeof(*(a)))
const struct tft_table tft_gpus = {gpu_columns, COUNT(gpu_columns), sizeof(struct tft_gpu_row)};
const struct tft_table tft_drvr = {drvr_columns, COUNT(drvr_columns), sizeof(struct tft_drvr_row)};
const struct tft_table tft_btrc = {btrc_columns, COUNT(btrc_columns), sizeof(struct tft_btrc_row)};
const struct tft_table tft_pyco = {pyco_columns, COUNT(pyco_columns), sizeof(struct tft_pyco_row)};
const struct tft_table tft_pyfr = {pyfr_columns, COUNT(pyfr_columns), sizeof(struct tft_pyfr_row)};
const struct tft_table tft_mods = {mods_columns, COUNT(mods_columns), sizeof(struct tft_mods_row)};

static uint64_t field(const uint8_t *row, const struct tft_table_column *c)
{
	uint64_t v = 0;

	memcpy(&v, row + c->offset, c->size); /* little endian */
	return v;
}

/* ---- writing ---- */

size_t tft_table_bound(const struct tft_table *t, uint32_t n, const struct tft_table_extra *e)
{
	size_t bytes =
		sizeof(struct tft_events_head) + (t->columns + 3) * sizeof(struct tft_section);

	for (uint32_t i = 0; i < t->columns; i++)
		bytes += (size_t)t->column[i].width * n;
	return bytes + e->heap_bytes + e->pairs * sizeof(*e->pair) + e->spans * sizeof(*e->span);
}

/* A value as it is stored; the start is the first column. */
static uint64_t coded(const struct tft_table *t, const struct tft_table_column *c,
		      const uint8_t *row, uint64_t v, uint64_t before)
{
	if (c->transform == TFT_DELTA)
		return tft_zigzag(v - before);
	return c->transform == TFT_FROM_START ? tft_zigzag(v - field(row, t->column)) : v;
}

/* Number of bytes that hold every value of the column; 0 if all values are 0. */
static uint8_t planes_of(const struct tft_table *t, const struct tft_table_column *c,
			 const uint8_t *rows, uint32_t n)
{
	uint64_t all = 0, before = 0, values = 0;
	uint8_t planes = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *row = rows + (size_t)i * t->row_bytes;
		uint64_t v = field(row, c);
		values |= v;
		all |= coded(t, c, row, v, before);
		before = v;
	}
	for (; values && all; all >>= 8)
		planes++;
	/* Ends equal to their starts are stored in one plane: no plane would mean 0. */
	return planes || !values ? planes : 1;
}

static uint8_t *put_column(const struct tft_table *t, const struct tft_table_column *c,
			   uint8_t planes, const uint8_t *rows, uint32_t n, uint8_t *out)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *row = rows + (size_t)i * t->row_bytes;
		uint64_t v = field(row, c), x = coded(t, c, row, v, before);
		before = v;
		for (uint8_t p = 0; p < planes; p++)
			out[(size_t)p * n + i] = (uint8_t)(x >> 8 * p);
	}
	return out + (size_t)planes * n;
}

struct packer {
	struct tft_section section[TFT_TABLE_SECTIONS_MAX];
	uint32_t n;
};

static void announce(struct packer *p, uint8_t id, uint8_t planes, uint8_t transform,
		     uint32_t count, size_t bytes)
{
	p->section[p->n++] = (struct tft_section){.id = id,
						  .planes = planes,
						  .transform = transform,
						  .count = count,
						  .bytes = (uint32_t)bytes};
}

static uint8_t *put(uint8_t *out, const void *data, size_t bytes)
{
	if (bytes)
		memcpy(out, data, bytes);
	return out + bytes;
}

size_t tft_table_pack(const struct tft_table *t, const void *rows, uint32_t n,
		      const struct tft_table_extra *e, void *buf)
{
	struct packer p = {.n = 0};
	struct tft_events_head head = {.events = n};
	uint8_t planes[TFT_TABLE_SECTIONS_MAX];
	uint8_t *out = buf;

	for (uint32_t i = 0; i < t->columns; i++) {
		const struct tft_table_column *c = &t->column[i];
		planes[i] = planes_of(t, c, rows, n);
		if (planes[i])
			announce(&p, c->id, planes[i], c->transform, n, (size_t)planes[i] * n);
	}
	if (e->heap_bytes)
		announce(&p, TFT_SEC_HEAP, 0, 0, 1, e->heap_bytes);
	if (e->pairs)
		announce(&p, TFT_SEC_PAIRS, 0, 0, e->pairs, e->pairs * sizeof(*e->pair));
	if (e->spans)
		announce(&p, TFT_SEC_SPANS, 0, 0, e->spans, e->spans * sizeof(*e->span));
	head.sections = p.n;
	out = put(out, &head, sizeof(head));
	out = put(out, p.section, p.n * sizeof(*p.section));
	for (uint32_t i = 0; i < t->columns; i++)
		out = put_column(t, &t->column[i], planes[i], rows, n, out);
	out = put(out, e->heap, e->heap_bytes);
	out = put(out, e->pair, e->pairs * sizeof(*e->pair));
	out = put(out, e->span, e->spans * sizeof(*e->span));
	return (size_t)(out - (uint8_t *)buf);
}

/* ---- reading ---- */

static struct tft_section section_at(const struct tft_table_view *v, uint32_t i)
{
	struct tft_section s;

	memcpy(&s, v->data + sizeof(struct tft_events_head) + i * sizeof(s), sizeof(s));
	return s;
}

static bool sound(const struct tft_section *s, uint32_t rows)
{
	if (s->id >= TFT_SEC_SPANS)
		return s->id != TFT_SEC_PAIRS ? s->id != TFT_SEC_SPANS ||
							s->bytes % sizeof(struct tft_gpu_span) == 0
					      : s->bytes % sizeof(struct tft_table_pair) == 0;
	return s->planes <= 8 && (s->transform <= TFT_DELTA || s->transform == TFT_FROM_START) &&
	       s->count == rows && (uint64_t)s->planes * s->count == s->bytes;
}

int tft_table_open(struct tft_table_view *v, const void *payload, size_t len)
{
	struct tft_events_head head;
	size_t at;

	memset(v, 0, sizeof(*v));
	v->heap = "";
	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, payload, sizeof(head));
	at = sizeof(head) + (size_t)head.sections * sizeof(struct tft_section);
	if (head.sections > TFT_TABLE_SECTIONS_MAX || head.events > TFT_TABLE_ROWS_MAX || at > len)
		return -EBADMSG;
	v->data = payload;
	v->rows = head.events;
	v->sections = head.sections;
	for (uint32_t i = 0; i < v->sections; i++) {
		struct tft_section s = section_at(v, i);
		const uint8_t *data = v->data + at;
		if (s.bytes > len - at || !sound(&s, v->rows))
			return -EBADMSG;
		at += s.bytes;
		if (s.id == TFT_SEC_HEAP && s.bytes && !data[s.bytes - 1]) {
			v->heap = (const char *)data;
			v->heap_bytes = s.bytes;
		} else if (s.id == TFT_SEC_PAIRS) {
			v->pair = data;
			v->pairs = s.bytes / (uint32_t)sizeof(struct tft_table_pair);
		} else if (s.id == TFT_SEC_SPANS) {
			v->span = data;
			v->spans = s.bytes / (uint32_t)sizeof(struct tft_gpu_span);
		}
	}
	return 0;
}

/* Reads rows [from, to) of one column; `before` is the value of the preceding row. Inlined for each
 * number of planes. */
static inline __attribute__((always_inline)) uint64_t
take_planes(const struct tft_table *t, const struct tft_table_column *c,
	    const struct tft_section *s, const uint32_t planes, const uint8_t *data, uint32_t from,
	    uint32_t to, uint64_t before, uint8_t *out)
{
	const uint8_t *end = data + to;

	for (data += from; data < end; data++, out += t->row_bytes) {
		uint64_t v = 0;
		for (uint32_t p = 0; p < planes; p++)
			v |= (uint64_t)data[(size_t)p * s->count] << 8 * p;
		if (s->transform == TFT_DELTA)
			v = before + tft_unzigzag(v);
		else if (s->transform == TFT_FROM_START)
			v = field(out - c->offset, t->column) + tft_unzigzag(v);
		before = v;
		if (c->size == 8)
			memcpy(out, &v, 8);
		else if (c->size == 4)
			memcpy(out, &v, 4);
		else
			memcpy(out, &v, c->size == 2 ? 2 : 1);
	}
	return before;
}

static uint64_t take_column(const struct tft_table *t, const struct tft_table_column *c,
			    const struct tft_section *s, const uint8_t *data, uint32_t from,
			    uint32_t to, uint64_t before, uint8_t *rows)
{
	uint8_t *out = rows + (size_t)from * t->row_bytes + c->offset;

	switch (s->planes) {
	case 1:
		return take_planes(t, c, s, 1, data, from, to, before, out);
	case 2:
		return take_planes(t, c, s, 2, data, from, to, before, out);
	case 3:
		return take_planes(t, c, s, 3, data, from, to, before, out);
	case 4:
		return take_planes(t, c, s, 4, data, from, to, before, out);
	default:
		return take_planes(t, c, s, s->planes, data, from, to, before, out);
	}
}

/* Rows that are filled column by column at a time, few enough for the L1 cache. */
#define ROWS_AT_ONCE 128u

int tft_table_rows(const struct tft_table_view *v, const struct tft_table *t, void *rows)
{
	const uint8_t *data[TFT_TABLE_SECTIONS_MAX], *at;
	const struct tft_table_column *column[TFT_TABLE_SECTIONS_MAX];
	struct tft_section s[TFT_TABLE_SECTIONS_MAX];
	uint64_t before[TFT_TABLE_SECTIONS_MAX] = {0};
	uint32_t n = 0;

	at = v->data + sizeof(struct tft_events_head) + v->sections * sizeof(struct tft_section);
	for (uint32_t i = 0; i < v->sections; i++) {
		s[n] = section_at(v, i);
		data[n] = at;
		at += s[n].bytes;
		for (uint32_t c = 0; c < t->columns && s[n].id < TFT_SEC_SPANS; c++)
			if (t->column[c].id == s[n].id) {
				column[n++] = &t->column[c];
				break;
			}
	}
	memset(rows, 0, (size_t)v->rows * t->row_bytes);
	for (uint32_t from = 0, to; from < v->rows; from = to) {
		to = v->rows - from > ROWS_AT_ONCE ? from + ROWS_AT_ONCE : v->rows;
		for (uint32_t i = 0; i < n; i++)
			before[i] = take_column(t, column[i], &s[i], data[i], from, to, before[i],
						rows);
	}
	return 0;
}

static bool find_column(const struct tft_table_view *v, uint8_t id, struct tft_section *s,
			const uint8_t **data)
{
	*data = v->data + sizeof(struct tft_events_head) + v->sections * sizeof(*s);
	for (uint32_t i = 0; i < v->sections; i++, *data += s->bytes) {
		*s = section_at(v, i);
		if (s->id == id)
			return s->planes > 0;
	}
	return false;
}

static inline __attribute__((always_inline)) void add_spans(uint64_t *out, const uint8_t *data,
							    uint32_t n, const uint32_t planes)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] += tft_unzigzag(tft_plane_get(data, n, planes, i));
}

/* Adds ends, stored as distances to the starts in `out`. */
static void take_ends(const struct tft_table_view *v, const struct tft_section *s,
		      const uint8_t *data, uint64_t *out)
{
	switch (s->planes) {
	case 1:
		add_spans(out, data, v->rows, 1);
		break;
	case 2:
		add_spans(out, data, v->rows, 2);
		break;
	default:
		add_spans(out, data, v->rows, s->planes);
	}
}

/* Reads the whole column, even if all its values are equal. */
static void whole_column(const struct tft_table_view *v, uint8_t id, uint64_t *out)
{
	uint64_t same;

	if (!tft_table_values(v, id, out, &same))
		for (uint32_t i = 0; i < v->rows; i++)
			out[i] = same;
}

bool tft_table_values(const struct tft_table_view *v, uint8_t id, uint64_t *out, uint64_t *same)
{
	struct tft_section s;
	const uint8_t *data;
	uint64_t sum = 0;

	*same = 0;
	if (!v->rows || !find_column(v, id, &s, &data))
		return false;
	if (s.transform == TFT_FROM_START && id != TFT_GPUS_START) {
		whole_column(v, TFT_GPUS_START, out);
		take_ends(v, &s, data, out);
		return true;
	}
	if (!tft_planes_join_u64(out, data, v->rows, s.planes, same)) {
		if (s.transform != TFT_DELTA)
			return false;
		for (uint32_t i = 0; i < v->rows; i++)
			out[i] = *same;
	}
	if (s.transform == TFT_DELTA)
		for (uint32_t i = 0; i < v->rows; i++)
			out[i] = sum += tft_unzigzag(out[i]);
	return true;
}

void tft_table_times(const struct tft_table_view *v, uint64_t *start, uint64_t *end)
{
	struct tft_section s;
	const uint8_t *data;

	whole_column(v, TFT_GPUS_START, start);
	if (!find_column(v, TFT_GPUS_END, &s, &data) || s.transform != TFT_FROM_START) {
		whole_column(v, TFT_GPUS_END, end);
		return;
	}
	memcpy(end, start, v->rows * sizeof(*end));
	take_ends(v, &s, data, end);
}

const char *tft_table_text(const struct tft_table_view *v, uint32_t offset)
{
	return offset < v->heap_bytes ? v->heap + offset : "";
}

struct tft_table_pair tft_table_pair_at(const struct tft_table_view *v, uint32_t i)
{
	struct tft_table_pair pair = {0, 0};

	if (i < v->pairs)
		memcpy(&pair, v->pair + i * sizeof(pair), sizeof(pair));
	return pair;
}

struct tft_gpu_span tft_table_span_at(const struct tft_table_view *v, uint32_t i)
{
	struct tft_gpu_span span = {0, 0, 0};

	if (i < v->spans)
		memcpy(&span, v->span + i * sizeof(span), sizeof(span));
	return span;
}
