/* Internals of a merge: interleave.c puts the records of all series in order, a block at a time;
 * merge.c returns the events. */
#ifndef TFH_MODEL_TIMELINE_INTERLEAVE_H
#define TFH_MODEL_TIMELINE_INTERLEAVE_H

#include <string.h>

#include "model/opened.h"
#include "model/timeline/ticks.h"

#define TFH_BLOCK_EVENTS 512
#define TFH_BLOCK_NOTES 64

/* A row in a block: its summary, and the position of its records. */
struct tfh_block_row {
	struct tfh_row_sum sum;
	const struct tfh_model_series *series;
	uint64_t number, before; /* before: end of the record before the first, ticks */
	uint32_t pos;		 /* of the first in its chunk */
};

#define TFH_BLOCK_ROWS 64

/* Events and names, or rows. */
struct tfh_block {
	uint32_t n, n_notes, n_loops;
	struct tfh_entry entry[TFH_BLOCK_EVENTS];
	/* Event of the entry with the same index, if it shares none. */
	struct tfh_event own[TFH_BLOCK_EVENTS];
	struct tfh_rec note[TFH_BLOCK_NOTES];
	uint32_t note_process[TFH_BLOCK_NOTES];
	struct tfh_packed_loops loops[TFH_BLOCK_NOTES]; /* of samples */
	uint32_t n_rows;
	struct tfh_block_row row[TFH_BLOCK_ROWS];
};

struct tfh_interleave;
/* `first`: this is no pass over a shadow run. Then damage is noted in the run, and a thread may
 * decode chunks ahead if they belong to one process. 0 or -ENOMEM. */
int tfh_interleave_open(struct tfh_run *run, uint32_t process, bool first,
			struct tfh_interleave **out);
void tfh_interleave_close(struct tfh_interleave *m);
/* Fills a block, overwriting its contents. `rows`: launches are returned as rows where possible.
 * False for the last block. Uses only the run's files and its record of damage. */
bool tfh_interleave_fill(struct tfh_interleave *m, struct tfh_block *b, bool rows);
/* The kinds of launches in row number i. */
void tfh_interleave_row(const struct tfh_block *b, uint32_t i, struct tfh_launch_row *row);
/* Begins and ends of the launches of row number i, and the shape of each. */
void tfh_interleave_times(const struct tfh_block *b, uint32_t i, int64_t *t0, int64_t *t1,
			  uint16_t *shape);
/* Fills the entries of a block of rows with the launches of row number i. */
void tfh_interleave_split(struct tfh_block *b, uint32_t i);
/* The error that ended it early, code 0 if none. */
const struct tfh_err *tfh_interleave_error(const struct tfh_interleave *m);

#endif
