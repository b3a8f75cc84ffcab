/* Internals of a merge: interleave.c puts the records of all series in order, a block at a time;
 * merge.c returns the events. */
#ifndef TFH_MODEL_INTERLEAVE_H
#define TFH_MODEL_INTERLEAVE_H

#include <string.h>

#include "model/opened.h"

#define TFH_BLOCK_EVENTS 512
#define TFH_BLOCK_NOTES 64

struct tfh_block {
	uint32_t n, n_notes;
	struct tfh_entry entry[TFH_BLOCK_EVENTS];
	struct tfh_event own[TFH_BLOCK_EVENTS]; /* event of the entry with the same index, if it
						 * shares none */
	struct tfh_rec note[TFH_BLOCK_NOTES];
	uint32_t note_process[TFH_BLOCK_NOTES];
};

struct tfh_interleave;
/* `first`: this is no pass over a shadow run. Then damage is noted in the run, and a thread may
 * decode chunks ahead if they belong to one process. 0 or -ENOMEM. */
int tfh_interleave_open(struct tfh_run *run, uint32_t process, bool first,
			struct tfh_interleave **out);
void tfh_interleave_close(struct tfh_interleave *m);
/* Fills a block, overwriting its contents. False for the last one. Uses only the run's files and
 * its record of damage. */
bool tfh_interleave_fill(struct tfh_interleave *m, struct tfh_block *b);
/* The error that ended it early, code 0 if none. */
const struct tfh_err *tfh_interleave_error(const struct tfh_interleave *m);

#endif
