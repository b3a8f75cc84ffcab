/*
 * A private copy of a journal, so that the data that was checked is the data that is read, even if
 * the file changes.
 */
#ifndef TFH_FORMAT_JOURNAL_COPY_H
#define TFH_FORMAT_JOURNAL_COPY_H

#include "format/journal_view.h"

struct tft_ring_copy {
	struct tft_ring ring;
	struct tfh_rec *records; /* published, and not yet in staging when copied */
	uint64_t first;		 /* number of the first */
	uint32_t n;
};

struct tft_journal_copy {
	struct tft_journal header;
	void *head; /* HEAD payload, NULL: none */
	size_t head_bytes;
	struct tft_ring_copy **ring; /* in use or retired */
	uint32_t n_rings;
	struct tfh_rec *staged;	  /* the batches' records in sequence */
	struct tft_staged *batch; /* offset: in `staged` */
	uint32_t n_batches;
	uint64_t torn; /* rings and batches whose position or number contradicts the rest */
};

/* Copies rings first, then staging: the direction in which records move, so that each record of a
 * running process is found at least once, here or in a segment that is read later. Takes at most
 * the file's size in memory, holes not counted. Returns 0, -ENOMEM, -EBADMSG (its constant fields
 * change while it is read) or another -errno. Free the copy in either case. */
int tft_journal_copy(const struct tft_view *v, struct tft_journal_copy *c);
/* Like tft_journal_copy(), without records: only counters, and the rings' headers with the calls in
 * flight. */
int tft_journal_calls(const struct tft_view *v, struct tft_journal_copy *c);
void tft_journal_copy_free(struct tft_journal_copy *c);

/* The newest complete clock triple. */
struct tft_clock_triple tft_journal_clock(const struct tft_journal *j);

#endif
