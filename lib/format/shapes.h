/*
 * The encoder's shape dictionary of one chunk, and what it has learnt about which fields do not
 * belong into it. Not for others than the encoder.
 */
#ifndef TFT_SHAPES_H
#define TFT_SHAPES_H

#include "base/fn.h"
#include "format/codec.h"

#define TFT_SHAPE_WORDS 6      /* a record's bytes 16..63 with the class in place of seq */
#define TFT_SHAPE_TABLE 16384u /* half full at most; 32 KiB stay in the first-level cache */
#define TFT_CONTEXTS 16384u
#define TFT_CLASS_SLOTS 16384u
#define TFT_DISTINCT_BITS 256u
#define TFT_DISTINCT_POOL 256u

/* One value of a field that is not in the dictionary, in the order of events. */
struct tft_loose {
	uint64_t value;
	uint64_t duration; /* of the record: t_end - t_begin */
	uint32_t run;
	uint32_t column;
};

/* What is known about one (kind, fn). */
struct tft_class {
	uint8_t mask;	 /* fields kept out of the dictionary; outlives the chunk */
	uint8_t id;	 /* class number in this chunk */
	uint8_t touched; /* by this chunk */
	uint8_t pad;
	uint16_t distinct; /* 1 + place in the pool of bit sets, 0 = none */
	uint16_t pad2;
	uint32_t events, fresh; /* in this chunk: events, and those that made a new shape */
};

struct tft_shapes {
	/* dictionary of this chunk */
	uint32_t n;
	uint32_t last;	  /* shape of the event before */
	uint32_t context; /* place in `next`, made of the last two shapes */
	uint64_t (*key)[TFT_SHAPE_WORDS];
	uint16_t *next;	 /* shape that followed the same two shapes the last time */
	uint16_t *table; /* open addressing: shape + 1, 0 = free */
	/* classes of this chunk */
	uint32_t n_classes, n_columns, n_touched;
	uint8_t class_mask[TFT_MAX_CLASSES];
	uint8_t class_column[TFT_MAX_CLASSES];
	uint16_t column_slot[TFT_MAX_COLUMNS]; /* which class slot and field a column belongs to */
	uint8_t column_field[TFT_MAX_COLUMNS];
	uint32_t column_count[TFT_MAX_COLUMNS];
	uint16_t *touched;
	/* values outside the dictionary */
	struct tft_loose *loose;
	uint32_t n_loose;
	uint8_t *text;
	uint32_t n_text; /* EXT records */
	/* knowledge */
	struct tft_class *slots;
	uint64_t (*distinct)[TFT_FIELDS][TFT_DISTINCT_BITS / 64];
	uint32_t n_distinct;
};

/* Allocates for TFT_MAX_EVENTS records a chunk and starts with what the function table says. 0 or
 * -ENOMEM. */
int tft_shapes_init(struct tft_shapes *s, const struct tfh_fn_info *fn, uint32_t fn_count);
void tft_shapes_free(struct tft_shapes *s);

/* A new chunk begins. */
void tft_shapes_reset(struct tft_shapes *s);

/* Shape of the next record, which belongs to run number `run` of the chunk; fields outside the
 * dictionary go to `loose` or `text`. */
uint32_t tft_shapes_add(struct tft_shapes *s, const struct tfh_rec *r, uint32_t run);

/* The chunk is complete: learn from its counts for the next ones. */
void tft_shapes_learn(struct tft_shapes *s);

/* How often a column's values repeat tells whether its field may go back: called with all its
 * values. */
void tft_shapes_judge_column(struct tft_shapes *s, uint32_t column, const struct tft_loose *values,
			     uint32_t n);

#endif
