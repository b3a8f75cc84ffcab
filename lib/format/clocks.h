/* Converts ticks to nanoseconds with the (ticks, MONOTONIC, REALTIME) triples of a file. */
#ifndef TFH_FORMAT_CLOCKS_H
#define TFH_FORMAT_CLOCKS_H

#include "format/journal_layout.h"
#include "format/tft_read.h"

struct tft_clocks {
	struct tft_clock_triple *t; /* ascending ticks */
	uint32_t n, cap;
	uint64_t tick_hz; /* from HEAD; used while there is only one triple */
	bool ticks_are_ns;
};

/* Beyond this many triples (18 hours at one per second), every second one is dropped. */
#define TFT_CLOCKS_MAX 65536u

/* Adds n triples as stored in a CLKS payload. 0 or -ENOMEM. */
int tft_clocks_add(struct tft_clocks *c, const void *triples, uint32_t n);

/* Sorts the triples and drops those that do not ascend or are closer than 10 ms to their neighbour.
 * Call once, before converting. */
void tft_clocks_finish(struct tft_clocks *c);
void tft_clocks_free(struct tft_clocks *c);

uint64_t tft_clocks_monotonic(const struct tft_clocks *c, uint64_t ticks);
uint64_t tft_clocks_realtime(const struct tft_clocks *c, uint64_t ticks);

/* How much later or earlier the triple that is farthest off is than its neighbours imply. */
uint64_t tft_clocks_residual_ns(const struct tft_clocks *c);

#endif
