/* Times as columns. Converts ticks of a recorder's clock to nanoseconds, by straight lines between
 * points of the file's clock table, in blocks of about 20 ms at 3 GHz. That is cheap, and the same
 * for every record. */
#ifndef TFH_MODEL_TIMELINE_TICKS_H
#define TFH_MODEL_TIMELINE_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#define TFH_LINE_BITS 26

struct tfh_tick_line {
	uint64_t block; /* TFH_NO_LINE: none yet */
	int64_t ns;
	double rate; /* ns per tick */
};

#define TFH_NO_LINE UINT64_MAX

/* For a tick in the line's block. */
static inline int64_t tfh_tick_ns(const struct tfh_tick_line *l, uint64_t ticks)
{
	return l->ns + (int64_t)((double)(int32_t)(ticks & ((1u << TFH_LINE_BITS) - 1)) * l->rate);
}

/* The same for n ticks. If not all are in the line's block, returns false and writes nothing. */
bool tfh_ticks_ns(const struct tfh_tick_line *l, const uint64_t *ticks, uint32_t n, int64_t *ns);

/* Summary of a group of records that are decoded together: TFT_MANY, or the rest of a series. */
struct tfh_row_sum {
	int64_t t0, t1, first; /* as in struct tfh_launch_row */
	uint64_t last;	       /* end of the last record, ticks */
	uint32_t ns, apart, longest;
	uint32_t n; /* records; 0: they are no row */
};

/* Sums up n > 0 calls, except `last` and `n`. False, and nothing is written, if they overlap or
 * span a second. */
bool tfh_row_sum(const int64_t *t0, const int64_t *t1, uint32_t n, struct tfh_row_sum *out);

#endif
