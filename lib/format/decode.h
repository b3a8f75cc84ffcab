/* From an EVNT chunk to runs and records. Everything in a payload is distrusted: after
 * tft_events_parse returned 0 no cursor can leave its bounds. */
#ifndef TFT_DECODE_H
#define TFT_DECODE_H

#include "format/codec.h"
#include "format/tft_read.h"

struct tft_column {
	const uint8_t *data;
	const uint8_t *big;
	uint32_t count, planes, n_big;
	enum tft_transform transform;
};

struct tft_events {
	struct tft_reader *reader; /* takes the buffers back */
	uint32_t events, n_runs, n_shapes, n_columns;
	struct tft_run *runs;
	uint64_t *t_base;	/* per run */
	uint32_t *run_column;	/* per run: where it starts in each column, then in the text */
	struct tfh_rec *shapes; /* records with the fields of the shape; seq = class */
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

/* Reads the run table of a chunk header and the unpacked payload in ev->payload. 0, -EBADMSG,
 * -ENOMEM. */
int tft_events_parse(struct tft_events *ev, const uint8_t *header, size_t header_bytes,
		     size_t payload_bytes);

/* Makes room in ev->payload. 0 or -ENOMEM. */
int tft_events_reserve(struct tft_events *ev, size_t bytes);

void tft_events_free(struct tft_events *ev);

#endif
