/*
 * The staging area of the journal: records that have left their ring but are not in a chunk yet.
 * Used only on the flusher.
 */
#ifndef TFH_RECORD_RING_STAGING_H
#define TFH_RECORD_RING_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "format/journal_layout.h"

/* Stages records of the flusher's own series, all or none. Returns false if there is no space. */
bool tfh_stage_own(const struct tfh_rec *records, uint32_t n);
/* Copies records of a ring up to `head`, the end of the ring's memory or the end of staging.
 * Returns their number; 0 means that staging is full. */
uint32_t tfh_stage_ring(struct tft_ring *ring, const struct tfh_rec *records, uint64_t head);
/* Takes the next n numbers of the flusher's own series and returns the first. */
uint64_t tfh_own_numbers(uint32_t n);
/* In a forked child, or for a new recording of the same process. */
void tfh_staging_forget(void);

#endif
