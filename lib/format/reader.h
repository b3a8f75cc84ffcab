/* Parts of the reader that copying needs: repair, salvage, digest. Not for others. */
#ifndef TFT_READER_H
#define TFT_READER_H

#include "format/tft_read.h"

/* The bytes of a chunk as they lie in the file (header alone unless `whole`), checked; owned by the
 * reader until its next call. 0, -EBADMSG or -errno. */
int tft_chunk_raw(struct tft_reader *r, uint32_t i, bool whole, const void **data, size_t *len,
		  struct tfh_err *err);

#endif
