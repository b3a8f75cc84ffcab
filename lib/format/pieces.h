/* Sets of record ranges: what a journal holds, minus what the segments hold. Internal to salvage.
 */
#ifndef TFH_FORMAT_PIECES_H
#define TFH_FORMAT_PIECES_H

#include "format/layout.h"

/* Consecutive records of one thread. */
struct tft_piece {
	uint64_t first;
	uint32_t thread, tid;
	uint32_t count;
	const struct tfh_rec *records; /* NULL: only the numbers are known */
};

struct tft_pieces {
	struct tft_piece *v;
	uint32_t n, cap;
};

/* 0 or -ENOMEM. Empty pieces are ignored. */
int tft_pieces_add(struct tft_pieces *s, struct tft_piece p);
void tft_pieces_free(struct tft_pieces *s);

/* Sorts by (thread, first) and removes overlaps, so that every number occurs once. */
void tft_pieces_normalise(struct tft_pieces *s);

/* Whether a normalised set contains any number of this range. */
int tft_pieces_overlap(const struct tft_pieces *s, uint32_t thread, uint64_t first, uint32_t count);

/* Adds the records in `a` that are not in `b` (both normalised) to `out`. 0 or -ENOMEM. */
int tft_pieces_minus(const struct tft_pieces *a, const struct tft_pieces *b,
		     struct tft_pieces *out);

#endif
