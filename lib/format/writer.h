/* Parts of the writer for copying chunks: repair. */
#ifndef TFH_FORMAT_WRITER_H
#define TFH_FORMAT_WRITER_H

#include <stddef.h>

#include "format/tft_write.h"

/* A new file without HEAD, for existing chunks. */
int tft_writer_create_bare(const char *path, const struct tfh_access *access,
			   struct tft_writer **out);

/* Appends a finished chunk. */
int tft_write_raw(struct tft_writer *w, const void *chunk, size_t len);

#endif
