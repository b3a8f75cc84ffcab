/* The inside of a merge: weave.c puts the records of all series in order, a block at a time;
 * merge.c has it done ahead by a thread and hands the events out. */
#ifndef TFH_MODEL_WEAVE_H
#define TFH_MODEL_WEAVE_H

#include "model/internal.h"

#define TFH_BLOCK_EVENTS 512
#define TFH_BLOCK_NOTES 64

struct tfh_block {
	uint32_t n, n_notes;
	bool last;
	/* fn NULL: a NAME or EXT record, the next in `note`; `thread` is then that of the process.
	 */
	struct tfh_event ev[TFH_BLOCK_EVENTS];
	struct tfh_rec note[TFH_BLOCK_NOTES];
};

struct tfh_weave;
/* 0 or -ENOMEM. */
int tfh_weave_open(struct tfh_run *run, uint32_t process, struct tfh_weave **out);
void tfh_weave_close(struct tfh_weave *m);
/* Fills a block; false: it is the last one. Touches nothing of the run but its files. */
bool tfh_weave_fill(struct tfh_weave *m, struct tfh_block *b);
/* What ended it early, code 0 if nothing. */
const struct tfh_err *tfh_weave_error(const struct tfh_weave *m);

#endif
