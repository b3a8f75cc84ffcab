/*
 * Live objects of the job: names, allocations, graphs. Tracked from the records that pass through
 * the flusher, and repeated at the start of each segment, so that a segment can be read without
 * earlier ones.
 */
#ifndef TFH_RECORD_LIVE_H
#define TFH_RECORD_LIVE_H

#include <stdbool.h>

#include "format/layout.h"

/* Processes n consecutive records of one thread. */
void tfh_live_see(uint32_t thread, const struct tfh_rec *records, uint32_t n);

/*
 * Copies live state piece by piece: at most `room` records with TFT_F_REPEAT set. *at starts at 0
 * and is the position to continue from. Returns the number of records, 0 at the end. A NAME and its
 * EXT records stay together.
 */
uint32_t tfh_live_copy(uint64_t *at, struct tfh_rec *out, uint32_t room);

/* Entries that did not fit. */
uint64_t tfh_live_lost(void);

void tfh_live_forget(void);

#endif
