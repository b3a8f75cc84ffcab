/*
 * The encoder's shape dictionary of one chunk, and what it has learnt about fields that are better
 * stored outside it. Internal to the encoder.
 */
#ifndef TFH_FORMAT_SHAPES_H
#define TFH_FORMAT_SHAPES_H

#include "base/fn.h"
#include "format/codec.h"

#define TFT_SHAPE_WORDS 6      /* bytes 16..63 of a record, the class in place of seq */
#define TFT_SHAPE_TABLE 16384u /* at most half full; 32 KiB fit the L1 cache */
#define TFT_CONTEXTS 16384u
#define TFT_CLASS_SLOTS 16384u
#define TFT_DISTINCT_BITS 256u
#define TFT_DISTINCT_POOL 256u

/* A field value stored outside the dictionary, in event order. */
struct tft_loose {
	uint64_t value;
	uint64_t duration; /* of the record: t_end - t_begin */
	uint32_t run;
	uint32_t column;
};

/* Statistics of one (kind, fn). */
struct tft_class {
	uint8_t mask;	 /* fields kept out of the dictionary; survives the chunk */
	uint8_t id;	 /* class number in this chunk */
	uint8_t touched; /* used in this chunk */
	uint8_t pad;
	uint16_t distinct; /* 1 + index in the pool of bit sets, 0 = none */
	uint16_t pad2;
	uint32_t events, fresh; /* in this chunk: events, and how many created a shape */
};

struct tft_shapes {
	/* dictionary of this chunk */
	uint32_t n;
	uint32_t last;	  /* shape of the previous event */
	uint32_t context; /* index in `next`, from the last two shapes */
	uint64_t (*key)[TFT_SHAPE_WORDS];
	uint16_t *next;	 /* shape that last followed the same two shapes */
	uint16_t *table; /* open addressing: shape + 1, 0 = free */
	/* classes of this chunk */
	uint32_t n_classes, n_columns, n_touched;
	uint8_t class_mask[TFT_MAX_CLASSES];
	uint8_t class_column[TFT_MAX_CLASSES];
	uint16_t column_slot[TFT_MAX_COLUMNS]; /* class slot and field of a column */
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

/* Allocates for TFT_MAX_EVENTS records per chunk and starts from the function table. 0 or -ENOMEM.
 */
int tft_shapes_init(struct tft_shapes *s, const struct tfh_fn_info *fn, uint32_t fn_count);
void tft_shapes_free(struct tft_shapes *s);

/* Starts a new chunk. */
void tft_shapes_reset(struct tft_shapes *s);

/* Shape of the next record, in run number `run` of the chunk. Fields outside the dictionary go to
 * `loose` or `text`. */
uint32_t tft_shapes_add(struct tft_shapes *s, const struct tfh_rec *r, uint32_t run);

/* Ends the chunk: adapts to its counts. */
void tft_shapes_learn(struct tft_shapes *s);

/* Decides by how often a column's values repeat whether its field returns to the dictionary.
 * `values`: all of the column. */
void tft_shapes_judge_column(struct tft_shapes *s, uint32_t column, const struct tft_loose *values,
			     uint32_t n);

#endif
