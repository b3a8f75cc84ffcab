/* What a journal holds, in memory of one's own: whatever becomes of the file afterwards, what was
 * checked is what is read. */
#ifndef TFT_JOURNAL_COPY_H
#define TFT_JOURNAL_COPY_H

#include "format/journal_view.h"

struct tft_ring_copy {
	struct tft_ring ring;
	struct tfh_rec *records; /* published, and in no staging yet when they were copied */
	uint64_t first;		 /* number of the first */
	uint32_t n;
};

struct tft_journal_copy {
	struct tft_journal header;
	void *head; /* HEAD payload, NULL: none */
	size_t head_bytes;
	struct tft_ring_copy **ring; /* in use or retired */
	uint32_t n_rings;
	struct tfh_rec *staged;	  /* the batches' records, one after the other */
	struct tft_staged *batch; /* offset: in `staged` */
	uint32_t n_batches;
	uint64_t torn; /* rings and batches whose place or number contradicts the rest */
};

/* Rings first, then staging: in the direction in which records move, so that even a living process'
 * record is met at least once, there or in a segment that is looked at later. At most the file's
 * size in memory, holes not counted. 0, -ENOMEM, -EBADMSG (it changes its face while it is read) or
 * another -errno; to be freed in either case. */
int tft_journal_copy(const struct tft_view *v, struct tft_journal_copy *c);
void tft_journal_copy_free(struct tft_journal_copy *c);

/* The newest whole clock triple. */
struct tft_clock_triple tft_journal_clock(const struct tft_journal *j);

#endif
