/*
 * Live objects of the job: names, allocations, graphs. They are tracked from the records of a
 * process, in order. They are repeated before records that are to be read without earlier ones: by
 * the flusher at the start of each segment, and by a reader of a recording's last part.
 */
#ifndef TFH_FORMAT_LIVE_H
#define TFH_FORMAT_LIVE_H

#include <stdbool.h>

#include "base/fn.h"
#include "format/layout.h"

#define TFT_LIVE_PARTS 64u /* records of one name: 2.2 KiB of text */

/* All fields but the function table are zero at first. Memory is mapped when the first object is
 * seen. */
struct tft_live {
	const struct tfh_fn_info *fn; /* [n_fn], indexed by the numbers in the records */
	uint32_t n_fn;
	struct tft_live_name *names;
	struct tfh_rec *records; /* of the names */
	struct tft_live_alloc *allocs;
	/* Of records; of slots, including those of freed memory. */
	uint32_t used, n_names, n_allocs;
	uint64_t lost; /* entries that did not fit */
	/* A name whose EXT records have not all arrived yet. */
	struct {
		uint32_t thread, have;
		struct tfh_rec part[TFT_LIVE_PARTS];
	} open;
};

/* Processes n consecutive records of one thread. */
void tft_live_see(struct tft_live *l, uint32_t thread, const struct tfh_rec *records, uint32_t n);

/*
 * Copies live state piece by piece: at most `room` records with TFT_F_REPEAT set. *at starts at 0
 * and is the position to continue from. Returns the number of records, 0 at the end. A NAME and its
 * EXT records stay together.
 */
uint32_t tft_live_copy(const struct tft_live *l, uint64_t *at, struct tfh_rec *out, uint32_t room);

/* Forgets everything and frees the pages; the addresses stay mapped. */
void tft_live_forget(struct tft_live *l);
/* Unmaps the addresses, too. Never called in the job, where another thread may be mapping them. */
void tft_live_free(struct tft_live *l);

#endif
