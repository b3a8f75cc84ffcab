/* The inside of a merge: interleave.c puts the records of all series in order, a block at a time;
 * merge.c hands the events out. */
#ifndef TFH_MODEL_INTERLEAVE_H
#define TFH_MODEL_INTERLEAVE_H

#include <string.h>

#include "model/opened.h"

#define TFH_BLOCK_EVENTS 512
#define TFH_BLOCK_NOTES 64

/* One event: what it has alone, and the rest of it, which events of one shape share. */
struct tfh_entry {
	int64_t t0, t1;
	uint64_t number;
	struct tfh_event *ev; /* NULL: a NAME or EXT record, the next in `note` */
	uint32_t thread;      /* of the run; of a record in `note`: of the process */
};

struct tfh_block {
	uint32_t n, n_notes;
	struct tfh_entry entry[TFH_BLOCK_EVENTS];
	struct tfh_event own[TFH_BLOCK_EVENTS]; /* of the entry with the same index, where it
						   shares nothing */
	struct tfh_rec note[TFH_BLOCK_NOTES];
	uint32_t note_process[TFH_BLOCK_NOTES];
};

struct tfh_interleave;
/* `first`: not of a shadow. Then a thread may unpack chunks meanwhile, when they are of one
 * process, and damage is noted in the run. 0 or -ENOMEM. */
int tfh_interleave_open(struct tfh_run *run, uint32_t process, bool first,
			struct tfh_interleave **out);
void tfh_interleave_close(struct tfh_interleave *m);
/* Fills a block; what it held before may be gone. False: it is the last one. Touches nothing of the
 * run but its files and what says of damage. */
bool tfh_interleave_fill(struct tfh_interleave *m, struct tfh_block *b);
/* What ended it early, code 0 if nothing. */
const struct tfh_err *tfh_interleave_error(const struct tfh_interleave *m);

#endif
