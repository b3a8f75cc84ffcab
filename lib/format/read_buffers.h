/*
 * Large buffers that are needed briefly. All readers, which may be thousands, share them. There is
 * at most one of each kind per thread that reads at the same time.
 */
#ifndef TFH_FORMAT_READ_BUFFERS_H
#define TFH_FORMAT_READ_BUFFERS_H

#include <zstd.h>

#include "format/decode.h"

struct tft_buffer {
	uint8_t *data;
	size_t cap;
};

/* NULL when out of memory. */
ZSTD_DCtx *tft_borrow_zstd(void);
void tft_return_zstd(ZSTD_DCtx *z);
/* NULL when out of memory; given back by tft_events_close(). */
struct tft_events *tft_borrow_events(void);
/* May be empty. */
struct tft_buffer tft_borrow_packed(void);
void tft_return_packed(struct tft_buffer b);

#endif
