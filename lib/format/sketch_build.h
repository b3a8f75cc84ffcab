/* Sketches under construction (encoder) and in packed form (chunk header, FORMAT.md section 2.2).
 */
#ifndef TFH_FORMAT_SKETCH_BUILD_H
#define TFH_FORMAT_SKETCH_BUILD_H

#include <stddef.h>

#include "base/fn.h"
#include "format/layout.h"
#include "format/sketch.h"

#define TFT_SKETCH_FN_SLOTS 1024u

struct tft_sketch_build {
	struct tft_sketch sketch;
	const struct tfh_fn_info *fn;
	uint32_t fn_count;
	uint32_t thread; /* of the current run, + 1 */
	uint32_t fn_calls[TFT_SKETCH_FN_SLOTS];
	uint64_t fn_ticks[TFT_SKETCH_FN_SLOTS];
	uint16_t stage_at[1024]; /* open addressing: index + 1 */
	uint8_t clock_at[256];
	uint32_t clock_thread[TFT_SKETCH_CLOCKS]; /* last thread that issued it, + 1 */
};

/* Initialises an empty sketch. `fn` must outlive the builder. */
void tft_sketch_init(struct tft_sketch_build *b, const struct tfh_fn_info *fn, uint32_t fn_count);
void tft_sketch_reset(struct tft_sketch_build *b);

/* Counts one record of the thread set by tft_sketch_thread(). */
void tft_sketch_thread(struct tft_sketch_build *b, uint32_t thread);
void tft_sketch_add(struct tft_sketch_build *b, const struct tfh_rec *r);

/* Completes b->sketch. */
const struct tft_sketch *tft_sketch_done(struct tft_sketch_build *b);

/* Largest packed size in bytes. */
#define TFT_SKETCH_MAX 32768u

/* Packs into `out` (TFT_SKETCH_MAX bytes); returns the length. */
size_t tft_sketch_pack(const struct tft_sketch *s, uint8_t *out);

/* Unpacks; 0 bytes are an empty sketch. Returns 0 or -EBADMSG (then *s is empty). */
int tft_sketch_unpack(struct tft_sketch *s, const uint8_t *in, size_t len);

#endif
