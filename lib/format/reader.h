/* Parts of the reader for copying chunks: repair, salvage, digest. */
#ifndef TFH_FORMAT_READER_H
#define TFH_FORMAT_READER_H

#include "format/tft_read.h"

/* The stored bytes of a chunk, checked (only the header unless `whole`); owned by the reader until
 * its next call. Returns 0, -EBADMSG or -errno. */
int tft_chunk_raw(struct tft_reader *r, uint32_t i, bool whole, const void **data, size_t *len,
		  struct tfh_err *err);

#endif
