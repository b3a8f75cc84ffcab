#include "format/encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_c_stableInBuffer */
#include <zstd.h>

#include "base/crc32c.h"
#include "format/codec.h"
#include "format/planes.h"
#include "format/shapes.h"
#include "format/sketch_build.h"

/* zstd keeps one Huffman table per block; a block per plane saves 8 %. Smaller planes share a
 * block, which costs its table. */
#define MIN_BLOCK 2048u
#define MAX_SECTIONS (8u + 2 * TFT_MAX_COLUMNS)
#define MAX_CUTS 1024u

struct big {
	uint32_t event;
	uint64_t value;
};

struct bigs {
	struct big *v;
	uint32_t n;
};

struct tft_encoder {
	struct tft_shapes shapes;
	struct tft_sketch_build sketch;
	ZSTD_CCtx *zstd;
	struct tft_batch *sorted;
	uint32_t *gap, *span; /* truncated to 32 bits; larger values are also in the lists */
	uint16_t *ids;
	struct bigs gap_big, span_big, value_big;
	struct big *seq;
	uint32_t n_seq;
	struct tft_loose *values; /* all columns, one after another */
	uint64_t *work;		  /* one column as stored */
	/* the payload under construction */
	struct tft_section section[MAX_SECTIONS];
	uint32_t sections, events;
	uint8_t *raw;
	size_t raw_size, raw_cap;
	uint8_t *out;
	size_t out_cap;
};

/* Largest payload: every record a literal of CLASS_ALL, every time an escape. */
#define RAW_CAP ((size_t)TFT_MAX_EVENTS * 120 + TFT_MAX_SHAPES * TFT_SHAPE_BYTES + 65536)
#define HEAD_CAP                                                                                   \
	(sizeof(struct tft_chunk_head) + (size_t)TFT_MAX_EVENTS * sizeof(struct tft_chunk_run) +   \
	 TFT_SKETCH_MAX)

struct tft_encoder *tft_encoder_new(const struct tfh_fn_info *fn, uint32_t fn_count, int level)
{
	const size_t n = TFT_MAX_EVENTS;
	struct tft_encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	tft_sketch_init(&e->sketch, fn, fn_count);
	e->raw_cap = RAW_CAP;
	e->out_cap = HEAD_CAP + ZSTD_compressBound(RAW_CAP) + MAX_CUTS * 16;
	e->zstd = ZSTD_createCCtx();
	e->gap = malloc(n * sizeof(*e->gap));
	e->span = malloc(n * sizeof(*e->span));
	e->ids = malloc(n * sizeof(*e->ids));
	e->gap_big.v = malloc(n * sizeof(*e->gap_big.v));
	e->span_big.v = malloc(n * sizeof(*e->span_big.v));
	e->value_big.v = malloc(n * sizeof(*e->value_big.v));
	e->seq = malloc(n * sizeof(*e->seq));
	e->values = malloc(n * TFT_FIELDS * sizeof(*e->values));
	e->work = malloc(n * sizeof(*e->work));
	e->raw = malloc(e->raw_cap);
	e->out = malloc(e->out_cap);
	if (!e->zstd || !e->gap || !e->span || !e->ids || !e->gap_big.v || !e->span_big.v ||
	    !e->value_big.v || !e->seq || !e->values || !e->work || !e->raw || !e->out ||
	    tft_shapes_init(&e->shapes, fn, fn_count) < 0) {
		tft_encoder_free(e);
		return NULL;
	}
	ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_checksumFlag, 1);
#if ZSTD_VERSION_NUMBER >= 10504
	/* The payload stays in place, so zstd need not copy it (older releases forbid input that
	 * grows). */
	ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_stableInBuffer, 1);
#endif
	if (tft_encoder_level(e, level) < 0) {
		tft_encoder_free(e);
		return NULL;
	}
	return e;
}

int tft_encoder_level(struct tft_encoder *e, int level)
{
	size_t r = ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_compressionLevel, level);

	return ZSTD_isError(r) ? -EINVAL : 0;
}

void tft_encoder_free(struct tft_encoder *e)
{
	if (!e)
		return;
	tft_shapes_free(&e->shapes);
	ZSTD_freeCCtx(e->zstd);
	free(e->sorted);
	free(e->gap);
	free(e->span);
	free(e->ids);
	free(e->gap_big.v);
	free(e->span_big.v);
	free(e->value_big.v);
	free(e->seq);
	free(e->values);
	free(e->work);
	free(e->raw);
	free(e->out);
	free(e);
}

/* ---- chunk header ---- */

void tft_chunk_seal(void *chunk, size_t header, size_t packed)
{
	struct tft_chunk_head *h = chunk;

	h->zstd_magic = TFT_ZSTD_SKIPPABLE;
	h->zstd_length = (uint32_t)(header - 8);
	h->magic = TFT_MAGIC;
	h->version = TFT_VERSION;
	if (!h->fixed_bytes)
		h->fixed_bytes = sizeof(*h);
	h->packed_bytes = packed;
	h->payload_crc = tfh_crc32c(0, (uint8_t *)chunk + header, packed);
	h->header_crc = 0;
	h->header_crc = tfh_crc32c(0, chunk, header);
}

static int pack(struct tft_encoder *e, const void *payload, size_t size, const uint32_t *cuts,
		uint32_t n_cuts, size_t header, size_t *packed)
{
	ZSTD_outBuffer out = {e->out + header, e->out_cap - header, 0};
	ZSTD_inBuffer in = {payload, 0, 0};
	size_t left;

	*packed = 0;
	if (size == 0)
		return 0;
	ZSTD_CCtx_reset(e->zstd, ZSTD_reset_session_only);
	if (ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(e->zstd, size)))
		return -EINVAL;
	for (uint32_t i = 0; i < n_cuts; i++) {
		in.size = cuts[i];
		left = ZSTD_compressStream2(e->zstd, &out, &in, ZSTD_e_flush);
		if (ZSTD_isError(left) || left)
			return -ENOMEM;
	}
	in.size = size;
	left = ZSTD_compressStream2(e->zstd, &out, &in, ZSTD_e_end);
	if (ZSTD_isError(left) || left)
		return -ENOMEM;
	*packed = out.pos;
	return 0;
}

int tft_encode_chunk(struct tft_encoder *e, const struct tft_chunk_head *head, const void *payload,
		     size_t size, const void **out, size_t *len)
{
	const size_t header = sizeof(*head);
	size_t packed;

	if (size > TFT_MAX_CHUNK)
		return -EINVAL;
	if (e->out_cap < header + ZSTD_compressBound(size)) {
		size_t cap = header + ZSTD_compressBound(size);
		uint8_t *grown = realloc(e->out, cap);
		if (!grown)
			return -ENOMEM;
		e->out = grown;
		e->out_cap = cap;
	}
	int err = pack(e, payload, size, NULL, 0, header, &packed);
	if (err < 0)
		return err;
	struct tft_chunk_head *h = (struct tft_chunk_head *)e->out;
	*h = *head;
	h->raw_bytes = size;
	h->runs = h->sketch_bytes = h->reserved = 0;
	tft_chunk_seal(e->out, header, packed);
	*out = e->out;
	*len = header + packed;
	return 0;
}

/* ---- rows to columns ---- */

static int by_thread_and_number(const void *pa, const void *pb)
{
	const struct tft_batch *a = pa, *b = pb;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

/* Copies the non-empty batches, sorted. Returns their number or -errno. */
static long sort_batches(struct tft_encoder *e, const struct tft_batch *batches, uint32_t n)
{
	uint64_t records = 0;
	uint32_t kept = 0;

	struct tft_batch *sorted = realloc(e->sorted, (n ? n : 1) * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	e->sorted = sorted;
	for (uint32_t i = 0; i < n; i++) {
		records += batches[i].count;
		if (batches[i].count)
			sorted[kept++] = batches[i];
	}
	if (records == 0 || records > TFT_MAX_EVENTS)
		return -EINVAL;
	qsort(sorted, kept, sizeof(*sorted), by_thread_and_number);
	return kept;
}

static uint32_t cut32(struct bigs *list, uint64_t v, uint32_t event)
{
	if (v < UINT32_MAX)
		return (uint32_t)v;
	list->v[list->n].event = event;
	list->v[list->n++].value = v;
	return UINT32_MAX;
}

/* Adds the records of one batch; `last` is the end time of the previous record in the run. */
static uint64_t add_batch(struct tft_encoder *e, const struct tft_batch *batch, uint64_t last,
			  struct tft_chunk_head *head)
{
	const uint32_t run = head->runs - 1;
	uint32_t event = e->events;

	for (uint32_t i = 0; i < batch->count; i++, event++) {
		const struct tfh_rec *r = &batch->records[i];
		uint64_t gap = r->t_begin - last;
		uint64_t from = (int64_t)gap < 0 ? last : r->t_begin;

		__builtin_prefetch(r + 12);

		e->gap[event] = cut32(&e->gap_big, tft_zigzag(gap), event);
		e->span[event] = cut32(&e->span_big, r->t_end - from, event);
		last = r->t_end;
		e->ids[event] = (uint16_t)tft_shapes_add(&e->shapes, r, run);
		if (r->seq != (uint32_t)(batch->first + i)) {
			e->seq[e->n_seq].event = event;
			e->seq[e->n_seq++].value = r->seq;
		}
		tft_sketch_add(&e->sketch, r);
		if (r->t_end < head->t_first)
			head->t_first = r->t_end;
		if (r->t_end > head->t_last)
			head->t_last = r->t_end;
	}
	e->events = event;
	return last;
}

static void add_batches(struct tft_encoder *e, uint32_t n, struct tft_chunk_head *head,
			struct tft_chunk_run *runs)
{
	struct tft_chunk_run *run = NULL;
	uint64_t last = 0;

	head->t_first = UINT64_MAX;
	for (uint32_t i = 0; i < n; i++) {
		const struct tft_batch *b = &e->sorted[i];
		bool joins = run && run->thread == b->thread && run->first + run->count == b->first;
		if (!joins) {
			run = &runs[head->runs++];
			*run = (struct tft_chunk_run){.thread = b->thread,
						      .tid = b->tid,
						      .first = b->first,
						      .t_base = b->records[0].t_begin};
			last = run->t_base;
			tft_sketch_thread(&e->sketch, b->thread);
		}
		run->count += b->count;
		last = add_batch(e, b, last, head);
	}
}

/* ---- sections ---- */

static uint8_t *add_section(struct tft_encoder *e, enum tft_section_id id, uint32_t arg,
			    uint32_t planes, uint32_t transform, uint32_t count, size_t bytes)
{
	struct tft_section *s = &e->section[e->sections++];
	uint8_t *data = e->raw + e->raw_size;

	*s = (struct tft_section){.id = (uint8_t)id,
				  .arg = (uint8_t)arg,
				  .planes = (uint8_t)planes,
				  .transform = (uint8_t)transform,
				  .count = count,
				  .bytes = (uint32_t)bytes};
	e->raw_size += bytes;
	return data;
}

static void add_bigs(struct tft_encoder *e, enum tft_section_id id, uint32_t arg,
		     const struct big *v, uint32_t n, uint32_t value_bytes)
{
	if (n == 0)
		return;
	uint8_t *out =
		add_section(e, id, arg, 4 + value_bytes, TFT_RAW, n, (size_t)n * (4 + value_bytes));
	for (uint32_t p = 0; p < 4 + value_bytes; p++)
		for (uint32_t i = 0; i < n; i++)
			*out++ = (uint8_t)(p < 4 ? v[i].event >> 8 * p : v[i].value >> 8 * (p - 4));
}

/* Times take 1 to 4 planes. Values beyond the planes join the list of those beyond 32 bits. */
static void add_times(struct tft_encoder *e, enum tft_section_id id, enum tft_section_id big_id,
		      uint32_t *v, struct bigs *list)
{
	uint32_t n = e->events;
	uint32_t planes = tft_planes_width_u32(v, n, 4);
	uint32_t escape = (uint32_t)tft_plane_escape(planes);

	if (planes < 4) {
		/* the list must stay in event order: merges new entries from its end */
		uint32_t extra = 0, at;
		for (uint32_t i = 0; i < n; i++)
			extra += v[i] >= escape && v[i] != UINT32_MAX;
		at = list->n + extra;
		uint32_t old = list->n;
		list->n = at;
		for (uint32_t i = n; i-- && extra;) {
			if (v[i] < escape)
				continue;
			if (v[i] == UINT32_MAX) {
				list->v[--at] = list->v[--old];
				continue;
			}
			list->v[--at] = (struct big){i, v[i]};
			v[i] = escape;
			extra--;
		}
	}
	tft_planes_u32(add_section(e, id, 0, planes, TFT_RAW, n, (size_t)n * planes), v, n, planes);
	add_bigs(e, big_id, 0, list->v, list->n, 8);
}

static void add_dictionary(struct tft_encoder *e)
{
	const struct tft_shapes *s = &e->shapes;
	uint8_t *out = add_section(e, TFT_SEC_CLASS, 0, 0, TFT_RAW, s->n_classes, s->n_classes * 2);

	for (uint32_t i = 0; i < s->n_classes; i++) {
		*out++ = s->class_mask[i];
		*out++ = s->class_column[i];
	}
	out = add_section(e, TFT_SEC_SHAPE, 0, TFT_SHAPE_BYTES, TFT_RAW, s->n,
			  s->n * TFT_SHAPE_BYTES);
	/* Bytes of the keys in the order class, fixed, stream, ctx, stack, words. In a key, seq
	 * holds the class. */
	for (uint32_t p = 0; p < TFT_SHAPE_BYTES; p++) {
		uint32_t at = p == 0 ? 8 : p <= 8 ? p - 1 : p + 3;
		for (uint32_t i = 0; i < s->n; i++)
			*out++ = ((const uint8_t *)s->key[i])[at];
	}
}

static uint64_t cost_of(uint64_t v)
{
	return 64 - (uint64_t)__builtin_clzll(v | 1);
}

/* Writes the stored form of the values to e->work, and returns which transform it is. */
static enum tft_transform transform_column(struct tft_encoder *e, const struct tft_loose *v,
					   uint32_t n)
{
	uint64_t cost[3] = {0};

	for (uint32_t i = 0; i < n; i++) {
		uint64_t previous = i && v[i].run == v[i - 1].run ? v[i - 1].value : 0;
		e->work[i] = tft_zigzag(v[i].value - previous);
		cost[TFT_RAW] += cost_of(v[i].value);
		cost[TFT_DELTA] += cost_of(e->work[i]);
		cost[TFT_REST] += cost_of(tft_zigzag(v[i].duration - v[i].value));
	}
	if (cost[TFT_DELTA] < cost[TFT_RAW] && cost[TFT_DELTA] <= cost[TFT_REST])
		return TFT_DELTA;
	bool rest = cost[TFT_REST] < cost[TFT_RAW];
	for (uint32_t i = 0; i < n; i++)
		e->work[i] = rest ? tft_zigzag(v[i].duration - v[i].value) : v[i].value;
	return rest ? TFT_REST : TFT_RAW;
}

static void add_column(struct tft_encoder *e, uint32_t column, const struct tft_loose *values,
		       uint32_t n)
{
	enum tft_transform transform = transform_column(e, values, n);
	uint32_t planes = tft_planes_width_u64(e->work, n);
	uint64_t escape = tft_plane_escape(planes);
	uint8_t *out;

	e->value_big.n = 0;
	for (uint32_t i = 0; planes < 8 && i < n; i++) {
		if (e->work[i] < escape)
			continue;
		e->value_big.v[e->value_big.n++] = (struct big){i, e->work[i]};
		e->work[i] = escape;
	}
	out = add_section(e, TFT_SEC_COLUMN, column, planes, transform, n, (size_t)n * planes);
	tft_planes_u64(out, e->work, n, planes);
	add_bigs(e, TFT_SEC_COLUMN_BIG, column, e->value_big.v, e->value_big.n, 8);
	tft_shapes_judge_column(&e->shapes, column, values, n);
}

static void add_columns(struct tft_encoder *e)
{
	struct tft_shapes *s = &e->shapes;
	uint32_t place[TFT_MAX_COLUMNS], start = 0;

	for (uint32_t c = 0; c < s->n_columns; c++) {
		place[c] = start;
		start += s->column_count[c];
	}
	for (uint32_t i = 0; i < s->n_loose; i++)
		e->values[place[s->loose[i].column]++] = s->loose[i];
	for (uint32_t c = 0; c < s->n_columns; c++) {
		uint32_t n = s->column_count[c];
		if (n)
			add_column(e, c, e->values + place[c] - n, n);
	}
	if (s->n_text)
		memcpy(add_section(e, TFT_SEC_TEXT, 0, 0, TFT_RAW, s->n_text,
				   (size_t)s->n_text * TFT_EXT_BYTES),
		       s->text, (size_t)s->n_text * TFT_EXT_BYTES);
}

/* Joins directory and sections, and lists where compressed blocks should end. Returns the number of
 * these cuts. */
static uint32_t lay_out(struct tft_encoder *e, size_t directory, uint32_t *cuts, uint32_t max)
{
	struct tft_events_head head = {e->sections, e->events};
	size_t at = directory, last = 0;
	uint32_t n = 0;

	memcpy(e->raw, &head, sizeof(head));
	memcpy(e->raw + sizeof(head), e->section, e->sections * sizeof(*e->section));
	for (uint32_t i = 0; i < e->sections; i++) {
		const struct tft_section *s = &e->section[i];
		uint32_t planes = s->planes ? s->planes : 1;
		for (uint32_t p = 0; p < planes; p++) {
			at += s->bytes / planes;
			if (at - last < MIN_BLOCK || n == max)
				continue;
			cuts[n++] = (uint32_t)at;
			last = at;
		}
	}
	return n;
}

/* Writes the sections of the events after space for the longest possible directory, and closes the
 * gap that is left. Returns the directory's size. */
static size_t add_sections(struct tft_encoder *e)
{
	const size_t directory =
		sizeof(struct tft_events_head) + MAX_SECTIONS * sizeof(struct tft_section);
	uint8_t id_bytes = e->shapes.n > 256 ? 2 : 1;

	e->raw_size = directory;
	add_dictionary(e);
	tft_planes_u16(add_section(e, TFT_SEC_IDS, 0, id_bytes, TFT_RAW, e->events,
				   (size_t)e->events * id_bytes),
		       e->ids, e->events, id_bytes);
	add_times(e, TFT_SEC_GAP, TFT_SEC_GAP_BIG, e->gap, &e->gap_big);
	add_times(e, TFT_SEC_SPAN, TFT_SEC_SPAN_BIG, e->span, &e->span_big);
	add_columns(e);
	add_bigs(e, TFT_SEC_SEQ, 0, e->seq, e->n_seq, 4);
	size_t real = sizeof(struct tft_events_head) + e->sections * sizeof(struct tft_section);
	memmove(e->raw + real, e->raw + directory, e->raw_size - directory);
	e->raw_size -= directory - real;
	return real;
}

int tft_encode_events(struct tft_encoder *e, const struct tft_batch *batches, uint32_t n,
		      uint64_t dropped, uint64_t number, const void **out, size_t *len)
{
	struct tft_chunk_head *head = (struct tft_chunk_head *)e->out;
	struct tft_chunk_run *runs = (struct tft_chunk_run *)(head + 1);
	uint32_t cuts[MAX_CUTS];
	size_t header, packed;

	long kept = sort_batches(e, batches, n);
	if (kept < 0)
		return (int)kept;
	e->events = e->sections = e->n_seq = 0;
	e->gap_big.n = e->span_big.n = 0;
	tft_shapes_reset(&e->shapes);
	tft_sketch_reset(&e->sketch);
	memset(head, 0, sizeof(*head));
	add_batches(e, (uint32_t)kept, head, runs);
	tft_shapes_learn(&e->shapes);
	uint32_t n_cuts = lay_out(e, add_sections(e), cuts, MAX_CUTS);

	head->type = TFT_EVNT;
	head->raw_bytes = e->raw_size;
	head->dropped = dropped;
	head->number = number;
	head->events = e->events;
	head->sketch_bytes = (uint32_t)tft_sketch_pack(tft_sketch_done(&e->sketch),
						       (uint8_t *)(runs + head->runs));
	header = sizeof(*head) + head->runs * sizeof(*runs) + head->sketch_bytes;
	int err = pack(e, e->raw, e->raw_size, cuts, n_cuts, header, &packed);
	if (err < 0)
		return err;
	tft_chunk_seal(e->out, header, packed);
	*out = e->out;
	*len = header + packed;
	return 0;
}
