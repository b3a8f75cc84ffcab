/* Encodes records as an EVNT chunk, and payloads as any other chunk. */
#ifndef TFH_FORMAT_ENCODE_H
#define TFH_FORMAT_ENCODE_H

#include <stddef.h>

#include "base/fn.h"
#include "format/layout.h"
#include "format/tft_write.h"

struct tft_encoder;

/* Full chunks of host calls touch about 8 MiB. `fn` must outlive the encoder. NULL when out of
 * memory. */
struct tft_encoder *tft_encoder_new(const struct tfh_fn_info *fn, uint32_t fn_count, int level);
int tft_encoder_level(struct tft_encoder *e, int level);
void tft_encoder_free(struct tft_encoder *e);

/*
 * Encodes the batches as one EVNT chunk, valid in `*out` until the next call. Batches may come in
 * any order; consecutive batches of one thread become one run. Returns 0, -EINVAL (no records or
 * too many) or -ENOMEM.
 */
int tft_encode_events(struct tft_encoder *e, const struct tft_batch *batches, uint32_t n,
		      uint64_t dropped, uint64_t number, const void **out, size_t *len);

/* Encodes a chunk of any other type. `head` gives type, times, events, dropped and number. */
int tft_encode_chunk(struct tft_encoder *e, const struct tft_chunk_head *head, const void *payload,
		     size_t size, const void **out, size_t *len);

/* Writes lengths and checksums into the header of a chunk that is followed by a frame of `packed`
 * bytes. */
void tft_chunk_seal(void *chunk, size_t header, size_t packed);

#endif
