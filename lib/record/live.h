/*
 * What is alive in the job: names, allocations, graphs. Followed from the records that pass through
 * the flusher, and written again at the head of each segment, so that a segment can be read without
 * those before it.
 */
#ifndef TFH_RECORD_LIVE_H
#define TFH_RECORD_LIVE_H

#include <stdbool.h>

#include "format/layout.h"

/* Looks at n consecutive records of one thread. */
void tfh_live_see(uint32_t thread, const struct tfh_rec *records, uint32_t n);

/*
 * Hands out what is alive, piece by piece: copies at most `room` records with TFT_F_REPEAT set; *at
 * starts at 0 and is the place to go on. Returns the number of records, 0 at the end. A NAME and
 * its EXT records stay together.
 */
uint32_t tfh_live_copy(uint64_t *at, struct tfh_rec *out, uint32_t room);

/* Entries that found no place. */
uint64_t tfh_live_lost(void);

void tfh_live_forget(void);

#endif
