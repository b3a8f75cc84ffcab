/* Converts ticks of a recorder's clock to nanoseconds, by straight lines between points of the file's clock
 * table, in blocks of about 20 ms at 3 GHz. That is cheap, and the same for every record. */
#ifndef TFH_MODEL_TICKS_H
#define TFH_MODEL_TICKS_H

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

#endif
