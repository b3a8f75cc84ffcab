/*
 * Where a thread of a job was seen, by line of its program: what `tfhook run` can say about a job
 * that recorded nothing.
 */
#ifndef TFH_CLI_START_SEEN_H
#define TFH_CLI_START_SEEN_H

#include "cli/start_places.h"

struct tfh_start_seen;
/* NULL: out of memory. Freed with free(). */
struct tfh_start_seen *tfh_start_seen_new(void);
/* Adds a sample at this place (0: no line was seen) that represents that many microseconds. `p`
 * must remain valid. */
void tfh_start_seen_add(struct tfh_start_seen *s, const struct tfh_start_places *p, uint32_t place,
			uint32_t us);
/* Prints the lines with the largest shares, and why a framework that was seen recorded nothing.
 * Prints nothing if there are too few samples. */
void tfh_start_seen_say(struct tfh_start_seen *s);

#endif
