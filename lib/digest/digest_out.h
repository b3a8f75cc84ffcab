/* Writes the tables of a digest one after another. */
#ifndef TFH_DIGEST_DIGEST_OUT_H
#define TFH_DIGEST_DIGEST_OUT_H

#include <math.h>

#include "digest/digest.h"
#include "digest/slow_steps.h"
#include "format/tft_write.h"
#include "model/symbols/last_seen.h"

struct tfh_digest_out {
	struct tft_writer *w;
	char *heap; /* texts of the next table */
	uint32_t heap_bytes, heap_cap;
	void *payload;
	size_t payload_cap;
	struct tfh_digest_comm *comm; /* of all ranks so far */
	uint32_t comms;
	bool full; /* out of memory for a text */
};

/* Seconds as a column of nanoseconds; what is unknown or before the run's start is 0. */
static inline uint64_t tfh_digest_ns(double s)
{
	return s > 0 ? (uint64_t)llround(s * 1e9) : 0;
}

/* Adds a text of the next table, cut at 4,095 bytes, and returns its offset; 0 for NULL and "". */
uint32_t tfh_digest_add_text(struct tfh_digest_out *o, const char *text);
/* Writes a table with the texts that were added since the last one, or nothing if it has no rows.
 * 0 or -errno. */
int tfh_digest_put(struct tfh_digest_out *o, uint32_t type, const struct tft_table *table,
		   const void *rows, uint32_t n);
void tfh_digest_out_free(struct tfh_digest_out *o);

/* digest_fill.c: the tree, lines, kernels, copies, meters; the files. 0 or -errno. */
int tfh_digest_fill(struct tfh_digest_out *o, const struct tfh_result *r);
int tfh_digest_fill_inputs(struct tfh_digest_out *o, const struct tfh_inputs *in);
/* The last sample of a rank's thread after its last call: where it is outside calls. look 0:
 * none. */
struct tfh_digest_idle {
	int64_t begin, sample; /* end of the call */
	uint32_t thread, place;
	uint16_t state;
	struct tfh_last_seen seen;
};

/* digest_anchors.c: anchors of one process that is a rank; `rank`: its number in DRNK. At most one
 * anchor per step, or 256; the first and the last one of each communicator in each of its slowest
 * steps, which are sorted; and the last one of each communicator. Adds its communicators to
 * `comm`. */
int tfh_digest_put_anchors(struct tfh_digest_out *o, struct tfh_run *run, uint32_t process,
			   uint32_t rank, uint64_t steps, const struct tfh_slow_steps *slow,
			   struct tfh_digest_idle *idle);
/* digest_fill.c: one call that was open at the end, of the rank of that number. */
void tfh_digest_fill_open(struct tfh_digest_out *o, struct tfh_run *run,
			  const struct tfh_in_flight *open, uint32_t rank,
			  struct tfh_digest_open *out);
/* The same of a rank that failed outside calls, by where it was last seen. False: not known. */
bool tfh_digest_fill_seen(struct tfh_digest_out *o, struct tfh_run *run, uint32_t process,
			  const struct tfh_digest_idle *idle, int64_t until,
			  struct tfh_digest_open *out, uint32_t rank);
/* digest_result.c: the whole result, and what the outputs query of the run. 0 or -errno. */
int tfh_digest_put_result(struct tfh_digest_out *o, const struct tfh_result *r);
/* digest_facts.c. `critical`: number of the rank that the verdict is about. */
int tfh_digest_fill_facts(struct tfh_digest_out *o, const struct tfh_result *r, uint32_t critical);

#endif
