/*
 * Columns of an EVNT payload (FORMAT.md, section 2.3), shared by encoder and decoder; internal to
 * them.
 *
 * A record is split into its two times, its number and seven fields. A shape is one combination of
 * the seven fields. Shapes are interned per chunk, and each event holds its shape's id. Where one
 * field of a (kind, fn) has too many values for that (addresses, self times, counters), shapes
 * leave it out and it gets a column of its own.
 */
#ifndef TFH_FORMAT_CODEC_H
#define TFH_FORMAT_CODEC_H

#include <string.h>

#include "format/layout.h"
#include "format/tft_read.h"

/* The fields of a shape. Their numbers are the bits of a class mask and are on disk. */
enum tft_field {
	TFT_FIELD_FIXED = 0, /* fn:16 kind:8 flags:8 result:16 depth:8 flags2:8 */
	TFT_FIELD_STREAM = 1,
	TFT_FIELD_CTX = 2,
	TFT_FIELD_STACK = 3,
	TFT_FIELD_W0 = 4,
	TFT_FIELD_W1 = 5,
	TFT_FIELD_W2 = 6,
	TFT_FIELDS = 7,
	TFT_FIELD_TEXT = 7, /* not a field: the bytes of stream..w[2] are in the TEXT section */
};
#define TFT_MASK_ALL 0x7f
#define TFT_MASK_TEXT 0x80

/* Limits of one chunk; a reader rejects more. */
#define TFT_MAX_SHAPES 8192u
#define TFT_MAX_CLASSES 256u

/* Sections of an EVNT payload. */
enum tft_section_id {
	TFT_SEC_CLASS = 1, /* per class: mask u8 | first column u8 */
	TFT_SEC_SHAPE = 2, /* per shape: class u8, then the seven fields: 45 byte planes */
	TFT_SEC_IDS = 3,   /* per event: shape */
	TFT_SEC_GAP = 4,   /* per event: zigzag(t_begin - t_end of the previous record) */
	/* Per event: t_end - t_begin; after a negative gap t_end - the previous t_end. */
	TFT_SEC_SPAN = 5,
	TFT_SEC_GAP_BIG = 6, /* escapes: index u32 | value u64 */
	TFT_SEC_SPAN_BIG = 7,
	TFT_SEC_COLUMN = 8, /* values of one field of one class, `arg` = column number */
	TFT_SEC_COLUMN_BIG = 9,
	TFT_SEC_TEXT = 10, /* 36 bytes per EXT record */
	/* records whose seq is not the low half of their number: index u32 | seq u32 */
	TFT_SEC_SEQ = 11,
};

/* How a column's values are stored. */
enum tft_transform {
	TFT_RAW = 0,
	/* zigzag(value - previous value of this column in the run, 0 at its start). */
	TFT_DELTA = 1,
	TFT_REST = 2, /* zigzag((t_end - t_begin) - value) */
};

#define TFT_SHAPE_BYTES 45u
#define TFT_SHAPE_OFFSET 16 /* of the first field in a record */
#define TFT_EXT_OFFSET 28   /* of the bytes of an EXT record */
#define TFT_BIG_BYTES 12u

/* Directory entry of a section. Section data follow the directory in the same order. */
struct tft_section {
	uint8_t id; /* enum tft_section_id; unknown ones are skipped */
	uint8_t arg;
	uint8_t planes; /* bytes per element, one plane each; 0: stored as is */
	uint8_t transform;
	uint32_t count; /* elements */
	uint32_t bytes;
	uint32_t reserved;
};
static_assert(sizeof(struct tft_section) == 16, "on disk");

/* An EVNT payload starts with this, followed by `sections` directory entries. */
struct tft_events_head {
	uint32_t sections;
	uint32_t events;
};

static inline uint64_t tft_zigzag(uint64_t v)
{
	return v << 1 ^ (uint64_t)((int64_t)v >> 63);
}

static inline uint64_t tft_unzigzag(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

/* The bytes of TFT_FIELD_FIXED as a number. */
static inline uint64_t tft_rec_fixed(const struct tfh_rec *r)
{
	uint64_t v;

	memcpy(&v, (const char *)r + TFT_SHAPE_OFFSET, sizeof(v));
	return v;
}

#endif
